//! What a run over linear layers comes to: ratios by tokens and sparsity, and the least of them.

use std::fmt::Write;

use super::record::Row;
use super::report::{Grid, is_ours};
use crate::statistics::geometric_mean;

/// A dense W of so many bytes is large: its bandwidth is reported apart, since a short launch has a beginning and an end.
const LARGE_BYTES: u64 = 100_000_000;

/// The problem of a row, in the report's words.
pub fn linear_title(row: &Row) -> String {
    let [m, n, k] = [row.m, row.n, row.k].map(|size| size.unwrap_or(0));
    let percent = 100.0 * row.sparsity.unwrap_or(0.0);
    format!("{n} tokens, W of {m} x {k}, {percent:.0} % zeros ({}), {}", row.mask, row.dtype)
}

/// For each pair of a rival and somebody else who was timed, a line for each number of tokens and sparsity: the geometric mean and the
/// least of their ratios, bytes per weight and the part of copy bandwidth. Each of ours meets every vendor, and vendors meet the one
/// that speed-ups are over. Nothing where no linear layer was timed by two.
pub fn linear_means(rows: &[Row]) -> String {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.operation == "linear" && row.median_us.is_some()).collect();
    let names = distinct(rows.iter().map(|row| row.implementation.as_str()));
    let is_peer = |name: &str| rows.iter().any(|row| row.peer == name);
    let mut out = String::new();
    for &who in &names {
        for &rival in names.iter().filter(|rival| **rival != who && !rival.starts_with("ours/")) {
            let ours = rows.iter().any(|row| row.implementation == who && is_ours(row));
            if ours || (is_peer(rival) && !is_peer(who)) {
                out.push_str(&table(&rows, who, rival));
            }
        }
    }
    out
}

/// Where `who` and `rival` were both timed: who's row, and the rival's time over that.
fn pairs<'r>(rows: &[&'r Row], who: &str, rival: &str) -> Vec<(&'r Row, f64)> {
    let of = |name: &str, workload: &str| {
        rows.iter().copied().find(|row| row.implementation == name && row.workload == workload)
    };
    let mine = rows.iter().copied().filter(|row| row.implementation == who);
    mine.filter_map(|row| Some((row, of(rival, &row.workload)?.median_us? / row.median_us?))).collect()
}

fn table(rows: &[&Row], who: &str, rival: &str) -> String {
    let mut all = pairs(rows, who, rival);
    let mut out = String::new();
    if all.is_empty() {
        return out;
    }
    all.sort_by(|(left, _), (right, _)| (left.n, &left.mask).cmp(&(right.n, &right.mask)));
    all.sort_by(|(left, _), (right, _)| left.sparsity.unwrap_or(0.0).total_cmp(&right.sparsity.unwrap_or(0.0)));
    let _ = writeln!(out, "\nTime of {rival} over that of {who}");
    let mut grid = Grid::default();
    let head = ["", "N", "mean", "of", "least", "where", "bytes/weight", "of copy", "of copy, large W"];
    grid.push(head.map(str::to_owned));
    for group in all.chunk_by(|(left, _), (right, _)| key(left) == key(right)) {
        let first = group[0].0;
        let ratios: Vec<f64> = group.iter().map(|(_, ratio)| *ratio).collect();
        let least = group.iter().min_by(|(_, left), (_, right)| left.total_cmp(right)).unwrap_or(&group[0]);
        let of_copy = |is_counted: &dyn Fn(&Row) -> bool| {
            let parts: Vec<f64> =
                group.iter().filter(|(row, _)| is_counted(row)).filter_map(|(row, _)| row.of_copy).collect();
            let least = parts.iter().copied().reduce(f64::min);
            let mean = geometric_mean(&parts).zip(least);
            mean.map_or("-".to_owned(), |(mean, least)| format!("{:.0} % ({:.0} %)", 100.0 * mean, 100.0 * least))
        };
        let stored: Vec<f64> = group.iter().filter_map(|(row, _)| row.bytes_per_element).collect();
        grid.push([
            format!("{:.0} % {}", 100.0 * first.sparsity.unwrap_or(0.0), first.mask),
            first.n.unwrap_or(0).to_string(),
            number(geometric_mean(&ratios), 3),
            ratios.len().to_string(),
            number(Some(least.1), 3),
            shape_name(least.0),
            number(geometric_mean(&stored), 3),
            of_copy(&|_| true),
            of_copy(&is_large),
        ]);
    }
    grid.render("  ", &mut out);
    out
}

/// What rows of one line share.
fn key(row: &Row) -> (Option<u64>, Option<u64>, &str) {
    (row.sparsity.map(f64::to_bits), row.n, &row.mask)
}

/// Model and layer: the first two words of the workload's name.
fn shape_name(row: &Row) -> String {
    row.workload.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

fn is_large(row: &Row) -> bool {
    row.m.zip(row.k).is_some_and(|(m, k)| 2 * m * k >= LARGE_BYTES)
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.decimals$}"))
}

fn distinct<'n>(names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(layer: &str, n: u64, sparsity: f64, implementation: &str, median_us: f64) -> Row {
        Row {
            operation: "linear".to_owned(),
            workload: format!("opt {layer} wanda {:.0}% n{n}", 100.0 * sparsity),
            mask: "wanda".to_owned(),
            implementation: implementation.to_owned(),
            peer: "vendor/linear/cublaslt".to_owned(),
            m: Some(if layer == "fc1" { 28672 } else { 1024 }),
            k: Some(7168),
            n: Some(n),
            sparsity: Some(sparsity),
            bytes_per_element: Some(1.125),
            of_copy: Some(if layer == "fc1" { 0.9 } else { 0.4 }),
            median_us: Some(median_us),
            ..Row::default()
        }
    }

    fn cells(text: &str, first: &str) -> Vec<String> {
        let line = text.lines().find(|line| line.trim_start().starts_with(first)).expect(first);
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn means_and_the_least_are_by_tokens_and_sparsity() {
        let (ours, dense) = ("ours/linear/bitmap", "vendor/linear/cublaslt");
        let rows = [
            row("fc1", 16, 0.7, ours, 10.0),
            row("fc1", 16, 0.7, dense, 30.0),
            row("fc1", 16, 0.5, ours, 10.0),
            row("fc1", 16, 0.5, dense, 40.0),
            row("out", 16, 0.5, ours, 10.0),
            row("out", 16, 0.5, dense, 10.0),
            row("out", 64, 0.5, ours, 10.0),
        ];
        let text = linear_means(&rows);
        assert!(text.contains(&format!("Time of {dense} over that of {ours}")), "{text}");
        assert!(!text.contains(&format!("Time of {ours} over")), "{text}");
        let half = cells(&text, "50 % wanda");
        assert_eq!(half[3..9], ["16", "2.000", "2", "1.000", "opt", "out"], "{text}");
        assert_eq!(half[9..], ["1.125", "60", "%", "(40", "%)", "90", "%", "(90", "%)"], "{text}");
        assert_eq!(cells(&text, "70 % wanda")[4..7], ["3.000", "1", "3.000"], "{text}");
        assert_eq!(text.lines().filter(|line| line.contains("wanda")).count(), 2, "{text}");
        assert!(linear_title(&rows[0]).starts_with("16 tokens, W of 28672 x 7168, 70 % zeros (wanda)"));
    }

    #[test]
    fn ours_meets_every_vendor_and_vendors_the_peer() {
        let rows = [
            row("out", 8, 0.5, "ours/linear/bitmap", 1.0),
            row("out", 8, 0.5, "vendor/linear/cublaslt", 4.0),
            row("out", 8, 0.5, "vendor/linear/cusparselt", 2.0),
        ];
        let text = linear_means(&rows);
        let titles: Vec<_> = text.lines().filter(|line| line.starts_with("Time of ")).collect();
        let over = |rival: &str, who: &str| format!("Time of {rival} over that of {who}");
        assert_eq!(
            titles,
            [
                over("vendor/linear/cublaslt", "ours/linear/bitmap"),
                over("vendor/linear/cusparselt", "ours/linear/bitmap"),
                over("vendor/linear/cublaslt", "vendor/linear/cusparselt"),
            ]
        );
        assert_eq!(linear_means(&rows[..1]), "");
    }
}
