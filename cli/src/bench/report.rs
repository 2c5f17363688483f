//! Tables for people.

use std::fmt::Write;

use super::launch::Launch;
use super::linear_report::{linear_means, linear_title};
use super::load::Load;
use super::means::means;
use super::record::{Row, Status};
use crate::statistics::geometric_mean;

/// Columns, aligned: the first to the left, the others to the right.
#[derive(Default)]
pub(super) struct Grid {
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// Adds a row.
    pub(super) fn push(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Writes the rows.
    pub(super) fn render(&self, indent: &str, out: &mut String) {
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
                status if status.is_timed() => grid.push([
                    match status {
                        Status::Near => format!("{} (beyond the bound)", row.implementation),
                        _ => row.implementation.clone(),
                    },
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
    out.push_str(&ratios(rows));
    out.push_str(&means(rows));
    out.push_str(&linear_means(rows));
    out
}

/// The ratios of a run whose workloads differ in length, head size or mask: a line for each, and the means.
///
/// Nothing where no attention was timed.
fn ratios(rows: &[Row]) -> String {
    let mut rivals: Vec<&str> = Vec::new();
    let attention = || rows.iter().filter(|row| row.operation == "attention");
    for row in attention().filter(|row| !is_ours(row)) {
        if !rivals.contains(&row.implementation.as_str()) {
            rivals.push(&row.implementation);
        }
    }
    let mut out = String::new();
    let ours: Vec<&Row> = attention().filter(|row| is_ours(row) && row.median_us.is_some()).collect();
    let (Some(first), false) = (ours.first(), rivals.is_empty()) else { return out };
    let _ = writeln!(out, "\nTime of each over that of {}", first.implementation);
    let mut grid = Grid::default();
    let head = ["", "TFLOP/s"].into_iter().chain(rivals.iter().copied());
    grid.push(head.map(str::to_owned));
    let mut all = vec![Vec::new(); rivals.len()];
    for row in ours.iter().filter(|row| row.implementation == first.implementation) {
        let mut cells = vec![row.workload.clone(), number(row.tflops, 0)];
        for (rival, ratios) in rivals.iter().zip(&mut all) {
            let other = attention().find(|other| other.workload == row.workload && other.implementation == *rival);
            let ratio = other.and_then(|other| Some(other.median_us? / row.median_us?));
            ratios.extend(ratio);
            cells.push(ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")));
        }
        grid.push(cells);
    }
    let means =
        all.iter().map(|ratios| geometric_mean(ratios).map_or_else(|| "-".to_owned(), |mean| format!("{mean:.3}")));
    grid.push(["geometric mean".to_owned(), String::new()].into_iter().chain(means));
    grid.render("  ", &mut out);
    out
}

/// Whether the row is that of an implementation of this library.
pub(super) fn is_ours(row: &Row) -> bool {
    row.implementation.starts_with("ours/")
}

fn title(row: &Row) -> String {
    let problem = match row.operation.as_str() {
        "attention" => attention_title(row),
        "linear" => linear_title(row),
        _ => product_title(row),
    };
    let peer = if row.peer.is_empty() { "nobody" } else { &row.peer };
    let class = if row.class.is_empty() { String::new() } else { format!(" ({})", row.class) };
    let launch = if row.launch == Launch::Graph.name() { ", replayed from a graph" } else { "" };
    format!(
        "{}{class}: {problem}, {} cache, {} load{launch}; speed-up over {peer}",
        row.workload,
        row.cache,
        load_of(row)
    )
}

fn attention_title(row: &Row) -> String {
    let show = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let heads =
        if row.heads == row.kv_heads { show(row.heads) } else { format!("{}/{}", show(row.heads), show(row.kv_heads)) };
    format!(
        "{} sequences of up to {} queries and {} keys, {heads} heads of {}, {}, {}",
        show(row.batch),
        show(row.queries),
        show(row.keys),
        show(row.head_dim),
        row.mask,
        row.dtype,
    )
}

fn product_title(row: &Row) -> String {
    let [m, n, k] = [row.m, row.n, row.k].map(|size| size.unwrap_or(0));
    let share = row.stored.unwrap_or(0) as f64 / (m as f64 * k as f64).max(1.0);
    let block = if row.block.is_empty() { String::new() } else { format!(" in {} blocks", row.block) };
    format!(
        "{m} x {n} x {k}, {:.3} % stored{block}, {} -> {}, B {}, C {}",
        100.0 * share,
        row.dtype,
        row.c_dtype,
        row.b_layout,
        row.c_layout,
    )
}

/// What the card did between samples; records that do not say so are from before there was a choice.
fn load_of(row: &Row) -> &str {
    if row.load.is_empty() { Load::default().name() } else { &row.load }
}

/// How launches reached the device; records that do not say so are from before there was a choice, or the processor computed.
fn launch_of(row: &Row) -> &str {
    if row.launch.is_empty() { Launch::default().name() } else { &row.launch }
}

/// Two records side by side: a line for each implementation of each workload that both timed.
pub fn comparison(before: &[Row], after: &[Row]) -> String {
    let mut grid = Grid::default();
    grid.push(["", "before us", "after us", "before/after", "spreads"].map(str::to_owned));
    let mut ratios = Vec::new();
    for row in after {
        let same = |other: &&Row| {
            (&other.suite, &other.workload, &other.implementation) == (&row.suite, &row.workload, &row.implementation)
                && (&other.cache, load_of(other), launch_of(other)) == (&row.cache, load_of(row), launch_of(row))
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
            m: Some(10),
            k: Some(10),
            stored: Some(10),
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
    fn attention_ends_with_ratios_to_each_peer_and_their_means() {
        let attention = |workload: &str, implementation: &str, median_us| Row {
            operation: "attention".to_owned(),
            workload: workload.to_owned(),
            heads: Some(8),
            kv_heads: Some(2),
            ..row(implementation, median_us)
        };
        let mut lost = attention("long", "peer/attention/b", 0.0);
        lost.median_us = None;
        let rows = [
            attention("short", "ours/attention/dense", 10.0),
            attention("short", "peer/attention/a", 20.0),
            attention("short", "peer/attention/b", 30.0),
            attention("long", "ours/attention/dense", 10.0),
            attention("long", "peer/attention/a", 5.0),
            lost,
        ];
        let text = table(&rows);
        let line = |name: &str| {
            let mut lines = text.lines().filter(|line| line.trim_start().starts_with(name));
            lines.next_back().expect(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(line("short")[1..], ["2.00", "3.00"], "{text}");
        assert_eq!(line("long")[1..], ["0.50", "-"], "{text}");
        assert_eq!(line("geometric mean")[2..], ["1.000", "3.000"], "{text}");
        assert!(text.contains("8/2 heads"), "{text}");
        assert!(!table(&[row("ours/spmm/bcsr", 1.0)]).contains("geometric mean"));
    }

    #[test]
    fn the_comparison_tells_replays_from_launches() {
        let launched = |launch: &str, median_us| Row { launch: launch.to_owned(), ..row("a", median_us) };
        let before = [launched("", 8.0), launched("graph", 3.0)];
        let text = comparison(&before, &[launched("graph", 1.0), launched("stream", 2.0)]);
        assert!(text.contains("3.000") && text.contains("4.000"), "{text}");
        assert!(table(&[launched("graph", 1.0)]).contains("replayed from a graph"));
        assert!(!table(&[launched("stream", 1.0)]).contains("replayed"));
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
