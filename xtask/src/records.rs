//! `cargo xtask records`: what has been measured, on what, when.

use crate::{Result, root};
use std::fs;
use std::path::{Path, PathBuf};

/// What every record states in every row; where the processor does the work there is no driver, and its cell is empty.
const COLUMNS: [&str; 4] = ["commit", "card", "driver", "date"];

pub(crate) fn run() -> Result {
    let mut files = Vec::new();
    list(&root().join("bench/records"), &mut files)?;
    files.sort();
    for path in &files {
        let text = fs::read_to_string(path)?;
        let name = path.strip_prefix(root()).unwrap_or(path).display();
        let (first, num_rows) = inspect(&text).map_err(|problem| format!("{name}: {problem}"))?;
        println!("{name}: {num_rows} rows, {}", first.join(", "));
    }
    println!("{} records", files.len());
    Ok(())
}

/// The first row's commit, card, driver and date, and the number of rows.
fn inspect(text: &str) -> std::result::Result<(Vec<String>, usize), String> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).map(cells);
    let header = lines.next().ok_or("is empty")?;
    let position = |column| header.iter().position(|cell| cell == column);
    let places: Vec<usize> = COLUMNS
        .iter()
        .map(|column| position(column).ok_or_else(|| format!("has no column `{column}`")))
        .collect::<std::result::Result<_, _>>()?;
    let rows: Vec<Vec<String>> = lines.collect();
    for (index, row) in rows.iter().enumerate() {
        if row.len() != header.len() {
            return Err(format!("row {} has {} cells, expected {}", index + 1, row.len(), header.len()));
        }
        if let Some(column) =
            places.iter().zip(COLUMNS).find(|&(&place, column)| row[place].is_empty() && column != "driver")
        {
            return Err(format!("row {} states no {}", index + 1, column.1));
        }
    }
    let first = rows.first().ok_or("has no rows")?;
    Ok((places.iter().map(|&place| first[place].clone()).collect(), rows.len()))
}

/// The cells of a CSV line; a quoted cell may hold commas, and quotes written twice.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    let mut characters = line.trim_end().chars().peekable();
    while let Some(c) = characters.next() {
        let cell = cells.last_mut().expect("there is always a last cell");
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cell.push(c),
        }
    }
    cells
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in folder.read_dir()? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "csv") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_states_its_machine_in_every_row() {
        let good = "date,m,commit,card,driver\n2026-01-02,8,abc,\"H200, 141 GB\",580.1\n2026-01-02,9,abc,H200,580.1\n";
        let first = ["abc", "H200, 141 GB", "580.1", "2026-01-02"].map(str::to_owned).to_vec();
        assert_eq!(inspect(good), Ok((first, 2)));
        assert_eq!(inspect("date,commit,card\n"), Err("has no column `driver`".to_owned()));
        assert_eq!(inspect("commit,card,driver,date\n"), Err("has no rows".to_owned()));
        assert_eq!(inspect("commit,card,driver,date\na,,c,d\n"), Err("row 1 states no card".to_owned()));
        assert!(inspect("commit,card,driver,date\na,a processor,,d\n").is_ok());
        assert_eq!(inspect("commit,card,driver,date\na,b\n"), Err("row 1 has 2 cells, expected 4".to_owned()));
    }

    #[test]
    fn quotes_are_read_as_csv_writes_them() {
        assert_eq!(cells("a,\"b,\"\"c\"\"\",,d\r"), ["a", "b,\"c\"", "", "d"]);
    }
}
