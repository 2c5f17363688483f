//! Tables for people.

use std::fmt::Write;

use super::record::{Row, Status};
use crate::statistics::geometric_mean;

/// Columns, aligned: the first to the left, the others to the right.
#[derive(Default)]
struct Grid {
    rows: Vec<Vec<String>>,
}

impl Grid {
    fn push(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    fn render(&self, indent: &str, out: &mut String) {
        let num_columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        // A row of two cells is a name and a sentence: the sentence is not part of the columns.
        let widths: Vec<usize> = (0..num_columns)
            .map(|column| {
                let in_columns = self.rows.iter().filter(|row| column == 0 || row.len() != 2);
                in_columns.filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        for row in &self.rows {
            out.push_str(indent);
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                let _ = match column {
                    0 => write!(out, "{cell:width$}"),
                    1 if row.len() == 2 => write!(out, "  {cell}"),
                    _ => write!(out, "  {cell:>width$}"),
                };
            }
            out.truncate(out.trim_end().len());
            out.push('\n');
        }
    }
}

/// The table of a run: a block for each workload.
pub fn table(rows: &[Row]) -> String {
    let mut out = String::new();
    for group in rows.chunk_by(|left, right| left.workload == right.workload) {
        let first = &group[0];
        let _ = writeln!(out, "\n{}", title(first));
        let mut grid = Grid::default();
        let head = ["", "median us", "least", "spread", "TFLOP/s", "speed-up", "of limit", "prepare ms", "error"];
        grid.push(head.map(str::to_owned));
        for row in group {
            match row.status {
                Status::Right => grid.push([
                    row.implementation.clone(),
                    number(row.median_us, 1),
                    number(row.min_us, 1),
                    percent(row.spread_pct, 1.0),
                    number(row.tflops, if row.tflops.is_some_and(|value| value < 10.0) { 3 } else { 0 }),
                    number(row.speedup, 2),
                    percent(row.of_limit, 100.0),
                    number(row.prepare_ms, 1),
                    row.error.map(|error| format!("{error:.1e}")).unwrap_or_default(),
                ]),
                status => grid.push([row.implementation.clone(), format!("{}: {}", status.name(), row.note)]),
            }
        }
        grid.render("  ", &mut out);
    }
    if let Some(first) = rows.iter().find(|row| row.copy_gbps.is_some()) {
        let _ = writeln!(
            out,
            "\n{}, driver {}: copy {} GB/s, dense {} TFLOP/s in this run",
            first.card,
            first.driver,
            number(first.copy_gbps, 0),
            number(first.dense_tflops, 0),
        );
    }
    out
}

fn title(row: &Row) -> String {
    let share = row.stored as f64 / (row.m as f64 * row.k as f64).max(1.0);
    let block = if row.block.is_empty() { String::new() } else { format!(" in {} blocks", row.block) };
    format!(
        "{}: {} x {} x {}, {:.3} % stored{block}, {} -> {}, B {}, C {}, {} cache; speed-up over {}",
        row.workload,
        row.m,
        row.n,
        row.k,
        100.0 * share,
        row.dtype,
        row.c_dtype,
        row.b_layout,
        row.c_layout,
        row.cache,
        if row.peer.is_empty() { "nobody" } else { &row.peer },
    )
}

/// Two records side by side: a line for each implementation of each workload that both timed.
pub fn comparison(before: &[Row], after: &[Row]) -> String {
    let mut grid = Grid::default();
    grid.push(["", "before us", "after us", "before/after", "spreads"].map(str::to_owned));
    let mut ratios = Vec::new();
    for row in after {
        let same = |other: &&Row| {
            (&other.suite, &other.workload, &other.implementation, &other.cache)
                == (&row.suite, &row.workload, &row.implementation, &row.cache)
        };
        let Some(other) = before.iter().find(same) else { continue };
        let (Some(old), Some(new)) = (other.median_us, row.median_us) else { continue };
        ratios.push(old / new);
        grid.push([
            format!("{}  {}", row.workload, row.implementation),
            number(other.median_us, 1),
            number(row.median_us, 1),
            number(Some(old / new), 3),
            format!("{} {}", percent(other.spread_pct, 1.0), percent(row.spread_pct, 1.0)),
        ]);
    }
    let mut out = String::new();
    if let (Some(before), Some(after)) = (before.first(), after.first()) {
        let _ = writeln!(out, "before: {} on {}, {}", before.commit, before.card, before.date);
        let _ = writeln!(out, "after:  {} on {}, {}", after.commit, after.card, after.date);
    }
    grid.render("", &mut out);
    match geometric_mean(&ratios) {
        Some(mean) => {
            let _ = writeln!(out, "geometric mean of {}: {mean:.3}", ratios.len());
        }
        None => out.push_str("the two records have no timed implementation in common\n"),
    }
    out
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map(|value| format!("{value:.decimals$}")).unwrap_or_default()
}

fn percent(value: Option<f64>, scale: f64) -> String {
    value.map(|value| format!("{:.1} %", value * scale)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(implementation: &str, median_us: f64) -> Row {
        Row {
            suite: "s".to_owned(),
            workload: "w".to_owned(),
            implementation: implementation.to_owned(),
            m: 10,
            k: 10,
            stored: 10,
            median_us: Some(median_us),
            speedup: Some(2.0),
            ..Row::default()
        }
    }

    #[test]
    fn the_table_shows_times_and_reasons() {
        let refused = Row {
            status: Status::Refused,
            median_us: None,
            note: "it has no kernel for 3x3 blocks".to_owned(),
            ..row("b", 0.0)
        };
        let text = table(&[row("a", 12.34), refused]);
        assert!(text.contains("10.000 % stored"), "{text}");
        assert!(text.contains("12.3"), "{text}");
        assert!(text.contains("b  refused: it has no kernel for 3x3 blocks"), "{text}");
    }

    #[test]
    fn the_comparison_pairs_rows_by_name() {
        let before = [row("a", 10.0), row("gone", 1.0)];
        let after = [row("a", 5.0), row("new", 1.0)];
        let text = comparison(&before, &after);
        assert!(text.contains("2.000"), "{text}");
        assert!(!text.contains("gone") && !text.contains("new"), "{text}");
        assert!(text.contains("geometric mean of 1: 2.000"), "{text}");
        assert!(comparison(&before, &[]).contains("no timed implementation"));
    }
}
