//! Text for people: aligned labels, and numbers with units.

use std::io::{self, Write};

/// Lines of a label and a value, the values aligned.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<(&'static str, String)>,
}

impl Table {
    /// Adds a line.
    pub fn row(&mut self, label: &'static str, value: impl Into<String>) -> &mut Self {
        self.rows.push((label, value.into()));
        self
    }

    /// Adds a line that continues the one above.
    pub fn more(&mut self, value: impl Into<String>) -> &mut Self {
        self.row("", value)
    }

    /// Writes every line.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let width = self.rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
        for (label, value) in &self.rows {
            writeln!(out, "{label:width$}  {value}")?;
        }
        Ok(())
    }
}

/// A whole number with its thousands apart: `1,234,567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in the unit that leaves one to four digits before the point: `1.5 MiB`.
pub fn bytes(value: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if value < 1024 {
        return format!("{value} B");
    }
    let mut scaled = value as f64 / 1024.0;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{scaled:.1} {}", UNITS[unit])
}

/// Seconds in the unit that suits: `12.3 us`, `4.56 ms`, `1.23 s`.
pub fn seconds(value: f64) -> String {
    if value < 1e-3 {
        format!("{} us", significant(value * 1e6))
    } else if value < 1.0 {
        format!("{} ms", significant(value * 1e3))
    } else {
        format!("{} s", significant(value))
    }
}

/// A rate given in units a second, in giga or tera: `1.23 TFLOP/s`.
pub fn rate(per_second: f64, unit: &str) -> String {
    if per_second >= 1e12 {
        format!("{} T{unit}/s", significant(per_second / 1e12))
    } else {
        format!("{} G{unit}/s", significant(per_second / 1e9))
    }
}

/// A fraction as a percentage with three significant digits.
pub fn percent(fraction: f64) -> String {
    format!("{} %", significant(fraction * 100.0))
}

/// Three significant digits, without an exponent between 0.001 and a million.
pub fn significant(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || !value.is_finite() {
        format!("{value}")
    } else if !(1e-3..1e6).contains(&magnitude) {
        format!("{value:.2e}")
    } else {
        let decimals = (2 - magnitude.log10().floor() as i32).max(0) as usize;
        format!("{value:.decimals$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(12_345_678), "12,345,678");
    }

    #[test]
    fn units_suit_the_size() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(3 << 30), "3.0 GiB");
        assert_eq!(seconds(12.34e-6), "12.3 us");
        assert_eq!(seconds(0.004_56), "4.56 ms");
        assert_eq!(seconds(1.234), "1.23 s");
        assert_eq!(rate(1.234e12, "FLOP"), "1.23 TFLOP/s");
        assert_eq!(rate(45.6e9, "B"), "45.6 GB/s");
        assert_eq!(percent(0.0987), "9.87 %");
    }

    #[test]
    fn significant_digits() {
        assert_eq!(significant(0.0), "0");
        assert_eq!(significant(1234.5), "1234");
        assert_eq!(significant(0.001_234), "0.00123");
        assert_eq!(significant(1.0e-7), "1.00e-7");
        assert_eq!(significant(f64::NAN), "NaN");
    }

    #[test]
    fn values_are_aligned() {
        let mut table = Table::default();
        table.row("a", "1").row("label", "2").more("3");
        let mut text = Vec::new();
        table.write(&mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "a      1\nlabel  2\n       3\n");
    }
}
