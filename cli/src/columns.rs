//! Text for people: a heading, and lines of values below one another.

use std::io::{self, Write};

/// Lines of as many values as the heading has; the first value is aligned left, all others right.
#[derive(Debug)]
pub struct Columns<const N: usize> {
    lines: Vec<[String; N]>,
}

impl<const N: usize> Columns<N> {
    /// A heading alone.
    pub fn new(heading: [&str; N]) -> Self {
        Self { lines: vec![heading.map(str::to_owned)] }
    }

    /// Adds a line.
    pub fn line(&mut self, values: [String; N]) {
        self.lines.push(values);
    }

    /// Writes every line.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let width = |column: usize| self.lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; N] = core::array::from_fn(width);
        for line in &self.lines {
            for (column, (value, width)) in line.iter().zip(widths).enumerate() {
                match column {
                    0 => write!(out, "{value:width$}")?,
                    _ => write!(out, "  {value:>width$}")?,
                }
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_below_one_another() {
        let mut columns = Columns::new(["name", "n"]);
        columns.line(["a longer one".to_owned(), "12".to_owned()]);
        let mut text = Vec::new();
        columns.write(&mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "name           n\na longer one  12\n");
    }
}
