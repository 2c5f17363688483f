//! The geometric means of a run over matrices: for each class of them, and over all.

use super::record::Row;
use super::report::{Grid, is_ours};
use crate::statistics::geometric_mean;

/// A table for each of our implementations, and one for the fastest of them on each workload: the speed-up over the peer,
/// by class and number of columns. Nothing where no matrix has a class or no speed-up is known.
pub fn means(rows: &[Row]) -> String {
    let of_matrices = rows.iter().filter(|row| !row.class.is_empty() && row.operation != "linear");
    let ours: Vec<&Row> = of_matrices.filter(|row| is_ours(row) && row.speedup.is_some()).collect();
    let implementations = distinct(ours.iter().map(|row| row.implementation.clone()));
    let mut out = String::new();
    for implementation in &implementations {
        let its: Vec<&Row> = ours.iter().filter(|row| row.implementation == *implementation).copied().collect();
        table(implementation, &its, &mut out);
    }
    if implementations.len() > 1 {
        table("the fastest of ours", &fastest(&ours), &mut out);
    }
    out
}

/// Of each workload, the row with the greatest speed-up.
fn fastest<'r>(rows: &[&'r Row]) -> Vec<&'r Row> {
    let mut best: Vec<&Row> = Vec::new();
    for row in rows {
        match best.iter_mut().find(|other| other.workload == row.workload) {
            Some(other) if row.speedup > other.speedup => *other = row,
            Some(_) => {}
            None => best.push(row),
        }
    }
    best
}

fn table(who: &str, rows: &[&Row], out: &mut String) {
    let classes = distinct(rows.iter().map(|row| row.class.clone()));
    let mut columns = distinct(rows.iter().map(|row| row.n.unwrap_or(0)));
    columns.sort_unstable();
    out.push_str(&format!("\nSpeed-up of {who} over the peer, geometric means (and of how many)\n"));
    let mut grid = Grid::default();
    grid.push(core::iter::once(String::new()).chain(columns.iter().map(|n| format!("N = {n}"))));
    let mut line = |name: &str, is_in: &dyn Fn(&Row) -> bool| {
        let cell = |&n: &u64| {
            let speedups: Vec<f64> =
                rows.iter().filter(|row| row.n == Some(n) && is_in(row)).filter_map(|row| row.speedup).collect();
            geometric_mean(&speedups).map_or("-".to_owned(), |mean| format!("{mean:.2} ({})", speedups.len()))
        };
        let cells: Vec<String> = columns.iter().map(cell).collect();
        grid.push(core::iter::once(name.to_owned()).chain(cells));
    };
    for class in &classes {
        line(class, &|row| row.class == *class);
    }
    line("all", &|_| true);
    grid.render("  ", out);
}

fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(workload: &str, class: &str, implementation: &str, n: u64, speedup: f64) -> Row {
        Row {
            workload: format!("{workload} n{n}"),
            class: class.to_owned(),
            implementation: implementation.to_owned(),
            n: Some(n),
            speedup: Some(speedup),
            ..Row::default()
        }
    }

    #[test]
    fn means_are_by_class_and_columns_and_the_fastest_is_by_workload() {
        let rows = [
            row("a", "road", "ours/spmm/csr", 32, 4.0),
            row("a", "road", "ours/spmm/wcsr", 32, 1.0),
            row("a", "road", "vendor/spmm/cusparse-csr-alg2", 32, 1.0),
            row("b", "road", "ours/spmm/csr", 32, 1.0),
            row("b", "road", "ours/spmm/wcsr", 32, 9.0),
            row("c", "web", "ours/spmm/csr", 32, 0.5),
            row("c", "web", "ours/spmm/csr", 128, 3.0),
            row("d", "", "ours/spmm/csr", 32, 100.0),
        ];
        let text = means(&rows);
        let tables: Vec<&str> = text.split("\nSpeed-up of ").skip(1).collect();
        let cells = |table: &str, name: &str| -> Vec<String> {
            let line = table.lines().find(|line| line.trim_start().starts_with(name)).expect(name);
            line.split_whitespace().skip(1).map(str::to_owned).collect()
        };
        assert_eq!(tables.len(), 3, "{text}");
        assert_eq!(cells(tables[0], "road"), ["2.00", "(2)", "-"], "{text}");
        assert_eq!(cells(tables[0], "web"), ["0.50", "(1)", "3.00", "(1)"], "{text}");
        assert_eq!(cells(tables[0], "all"), ["1.26", "(3)", "3.00", "(1)"], "{text}");
        assert_eq!(cells(tables[2], "road"), ["6.00", "(2)", "-"], "{text}");
        assert_eq!(means(&rows[7..]), "");
    }
}
