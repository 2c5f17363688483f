//! What a run leaves behind: one row for each implementation of each workload, as CSV and JSON.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use super::error::BenchError;

/// How an implementation fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Its result is right, and it was timed.
    #[default]
    Right,
    /// A peer's result that is beyond the bound, though by less than [`NEAR`](super::operands::NEAR) times: it was timed, and the
    /// note says by how much.
    Near,
    /// Its result is wrong; it was not timed.
    Wrong,
    /// It does not take the workload.
    Refused,
    /// It, or the device, failed.
    Failed,
}

impl Status {
    const ALL: [Self; 5] = [Self::Right, Self::Near, Self::Wrong, Self::Refused, Self::Failed];

    /// Whether it was timed.
    pub fn is_timed(self) -> bool {
        matches!(self, Self::Right | Self::Near)
    }

    /// The word in the records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Near => "near",
            Self::Wrong => "wrong",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// A value that a cell of a record can hold.
trait Cell: Sized {
    /// As text, without quotes.
    fn to_text(&self) -> String;
    /// Back from text.
    fn from_text(text: &str) -> Option<Self>;
    /// As JSON.
    fn to_json(&self) -> Value;
}

impl Cell for String {
    fn to_text(&self) -> String {
        // A record is one line.
        self.replace(['\n', '\r'], " ")
    }
    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
    fn to_json(&self) -> Value {
        Value::from(self.as_str())
    }
}

impl Cell for u64 {
    fn to_text(&self) -> String {
        self.to_string()
    }
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn to_json(&self) -> Value {
        Value::from(*self)
    }
}

impl Cell for Option<u64> {
    fn to_text(&self) -> String {
        self.map(|value| value.to_string()).unwrap_or_default()
    }
    fn from_text(text: &str) -> Option<Self> {
        if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) }
    }
    fn to_json(&self) -> Value {
        self.map_or(Value::Null, Value::from)
    }
}

impl Cell for Option<f64> {
    fn to_text(&self) -> String {
        self.map(six_digits).unwrap_or_default()
    }
    fn from_text(text: &str) -> Option<Self> {
        if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) }
    }
    fn to_json(&self) -> Value {
        // JSON has no infinity: such a value becomes null.
        self.map_or(Value::Null, Value::from)
    }
}

impl Cell for Status {
    fn to_text(&self) -> String {
        self.name().to_owned()
    }
    fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == text)
    }
    fn to_json(&self) -> Value {
        Value::from(self.name())
    }
}

/// Six significant digits, and no more than a measurement has.
fn six_digits(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    if rounded != 0.0 && !(1e-4..1e15).contains(&rounded.abs()) { format!("{rounded:e}") } else { format!("{rounded}") }
}

macro_rules! record {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        /// One row of a record.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Row {
            $($(#[$doc])* pub $field: $type,)*
        }

        /// The columns, in order.
        const COLUMNS: &[&str] = &[$(stringify!($field),)*];

        impl Row {
            fn to_cells(&self) -> Vec<String> {
                vec![$(Cell::to_text(&self.$field),)*]
            }

            /// Sets the value of a column; false where it does not parse, or there is no such column.
            fn set(&mut self, column: &str, text: &str) -> bool {
                match column {
                    $(stringify!($field) => Cell::from_text(text).map(|value| self.$field = value).is_some(),)*
                    _ => false,
                }
            }

            fn to_json(&self) -> Value {
                let mut object = Map::new();
                $(object.insert(stringify!($field).to_owned(), Cell::to_json(&self.$field));)*
                Value::Object(object)
            }
        }
    };
}

record! {
    /// The commit that was built.
    commit: String,
    /// The card, or the processor's architecture where there is none.
    card: String,
    /// The driver's version; empty where there is none.
    driver: String,
    /// The date, UTC, as YYYY-MM-DD.
    date: String,
    /// The suite.
    suite: String,
    /// The workload.
    workload: String,
    /// What a product's matrix comes from; empty where that is not known.
    class: String,
    /// The operation.
    operation: String,
    /// The implementation.
    implementation: String,
    /// How it fared.
    status: Status,
    /// Rows of A and C; empty, as the other columns of a product, where there is none.
    m: Option<u64>,
    /// Columns of B and C.
    n: Option<u64>,
    /// Columns of A.
    k: Option<u64>,
    /// The shape of A's blocks; empty where it has none.
    block: String,
    /// Elements that A stores; of a linear layer, weights that are not zero.
    stored: Option<u64>,
    /// The part of a linear layer's weights that was to be zero, 0 to 1.
    sparsity: Option<f64>,
    /// Bytes of a linear layer's weights as the implementation stores them.
    weight_bytes: Option<u64>,
    /// The same over the number of weights, zeros included.
    bytes_per_element: Option<f64>,
    /// Sequences.
    batch: Option<u64>,
    /// Queries of the longest sequence.
    queries: Option<u64>,
    /// Keys of the longest sequence.
    keys: Option<u64>,
    /// Keys of all sequences together.
    tokens: Option<u64>,
    /// Heads of Q and O.
    heads: Option<u64>,
    /// Heads of K and V.
    kv_heads: Option<u64>,
    /// Columns of a head.
    head_dim: Option<u64>,
    /// Which keys a row sees; of a linear layer, how its zeros lie.
    mask: String,
    /// The type of A and B, or of Q, K and V.
    dtype: String,
    /// The type of C, or of O.
    c_dtype: String,
    /// The layout of B.
    b_layout: String,
    /// The layout of C.
    c_layout: String,
    /// The seed.
    seed: u64,
    /// Whether the operands came from memory (`cold`) or may have been in the cache (`warm`).
    cache: String,
    /// What the card did between samples: `lasting` or `rested`.
    load: String,
    /// How launches reached the device: `stream` or `graph`; empty where the processor computed.
    launch: String,
    /// Samples taken.
    rounds: u64,
    /// Launches in each sample.
    launches: u64,
    /// Microseconds a launch, median.
    median_us: Option<f64>,
    /// Microseconds a launch, least.
    min_us: Option<f64>,
    /// Microseconds a launch, most.
    max_us: Option<f64>,
    /// Interquartile range of the samples, in percent of the median.
    spread_pct: Option<f64>,
    /// TFLOP/s of the operations that it carries out.
    tflops: Option<f64>,
    /// The peer that the speed-up is relative to: of several, the fastest in this run.
    peer: String,
    /// The peer's median over this one's, in the same run.
    speedup: Option<f64>,
    /// The least time that bandwidth and peak allow over the median, 0 to 1.
    of_limit: Option<f64>,
    /// The time that a copy of as many bytes takes, over the median: 0 to 1 or a little more.
    of_copy: Option<f64>,
    /// Bytes a second of a copy on the device, in the same run, in GB/s; reading and writing both count.
    copy_gbps: Option<f64>,
    /// TFLOP/s of the dense peer at its best shape, in the same run.
    dense_tflops: Option<f64>,
    /// Milliseconds of preparation.
    prepare_ms: Option<f64>,
    /// The largest error.
    error: Option<f64>,
    /// The largest error that is accepted.
    error_limit: Option<f64>,
    /// Operations of one launch.
    flops: u64,
    /// Bytes that one launch must move at least.
    bytes: u64,
    /// Bytes that one launch asks of L2, where that limits it.
    l2_bytes: Option<u64>,
    /// What was chosen, or why it was refused or failed.
    note: String,
}

/// The rows as CSV, with a line of column names.
pub fn to_csv(rows: &[Row]) -> String {
    let mut text = COLUMNS.join(",");
    text.push('\n');
    for row in rows {
        let cells: Vec<_> = row.to_cells().iter().map(|cell| quoted(cell)).collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}

/// The rows as one JSON object.
pub fn to_json(rows: &[Row]) -> String {
    let rows: Vec<_> = rows.iter().map(Row::to_json).collect();
    format!("{:#}\n", serde_json::json!({ "rows": rows }))
}

/// Reads a CSV file that [`to_csv`] made, now or when there were fewer columns: those that lack have no value.
///
/// # Errors
/// [`BenchError::File`], or [`BenchError::Record`] with the line that is not a record's.
pub fn read_csv(path: &Path) -> Result<Vec<Row>, BenchError> {
    let text = fs::read_to_string(path).map_err(|source| BenchError::File { path: path.to_owned(), source })?;
    from_csv(&text).map_err(|(line, expected)| BenchError::Record { path: path.to_owned(), line, expected })
}

/// The rows, or the line (from 1) that is at fault and what was expected there.
fn from_csv(text: &str) -> Result<Vec<Row>, (usize, &'static str)> {
    let mut lines = text.lines().zip(1..);
    let columns = lines.next().and_then(|(header, _)| known_columns(header)).ok_or((1, "a record's column names"))?;
    lines
        .filter(|(line, _)| !line.is_empty())
        .map(|(line, number)| {
            let cells = split(line).ok_or((number, "a closing quote"))?;
            if cells.len() != columns.len() {
                return Err((number, "as many values as there are columns"));
            }
            let mut row = Row::default();
            for (&column, cell) in columns.iter().zip(&cells) {
                if !row.set(column, cell) {
                    return Err((number, column));
                }
            }
            Ok(row)
        })
        .collect()
}

/// The columns that a header names; `None` where one is not known, or it is no record's.
fn known_columns(header: &str) -> Option<Vec<&'static str>> {
    let columns: Option<Vec<_>> =
        header.split(',').map(|name| COLUMNS.iter().find(|known| **known == name).copied()).collect();
    columns.filter(|columns| {
        ["suite", "workload", "implementation", "median_us"].iter().all(|name| columns.contains(name))
    })
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

/// The cells of a line; `None` where a quote is not closed.
fn split(line: &str) -> Option<Vec<String>> {
    let mut cells = vec![String::new()];
    let mut in_quotes = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        let cell = cells.last_mut()?;
        match character {
            '"' if in_quotes && characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            '"' => in_quotes = !in_quotes,
            ',' if !in_quotes => cells.push(String::new()),
            character => cell.push(character),
        }
    }
    (!in_quotes).then_some(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            commit: "0123abc".to_owned(),
            card: "a card, \"new\"".to_owned(),
            workload: "8192-10".to_owned(),
            status: Status::Right,
            m: Some(8192),
            median_us: Some(261.25),
            error: Some(1.5e-7),
            of_limit: None,
            note: "two, words".to_owned(),
            ..Row::default()
        }
    }

    #[test]
    fn csv_round_trips() {
        let rows = vec![row(), Row { status: Status::Refused, ..Row::default() }];
        assert_eq!(from_csv(&to_csv(&rows)), Ok(rows));
    }

    #[test]
    fn a_record_of_fewer_columns_is_read() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/records/h200/2026-11-30-spmm-blocks.csv");
        let rows = read_csv(Path::new(path)).expect("an earlier record");
        assert_eq!((rows[0].m, rows[0].heads, rows[0].mask.as_str()), (Some(8192), None, ""));
        assert!(rows[0].median_us.is_some_and(|median| median > 1000.0));
        assert!(rows[0].launch.is_empty() && COLUMNS.contains(&"launch"));
    }

    #[test]
    fn a_line_break_in_a_note_stays_in_its_row() {
        let rows = [Row { note: "first\nsecond".to_owned(), ..row() }];
        let read = from_csv(&to_csv(&rows)).expect("one row");
        assert_eq!(read[0].note, "first second");
    }

    #[test]
    fn faults_name_their_line() {
        assert_eq!(from_csv("a,b\n"), Err((1, "a record's column names")));
        let good = to_csv(&[row()]);
        assert_eq!(from_csv(&format!("{good}1,2\n")), Err((3, "as many values as there are columns")));
        assert_eq!(from_csv(&good.replace("8192,", "many,")), Err((2, "m")));
        assert_eq!(from_csv(&good.replace("\"two", "two")), Err((2, "a closing quote")));
    }

    #[test]
    fn numbers_keep_six_digits() {
        assert_eq!(six_digits(123.456_789), "123.457");
        assert_eq!(six_digits(1.0e-9), "1e-9");
        assert_eq!(six_digits(0.0), "0");
        assert_eq!(six_digits(f64::INFINITY), "inf");
    }

    #[test]
    fn json_has_every_column_and_null_for_what_is_not_known() {
        let value: Value = serde_json::from_str(&to_json(&[row()])).expect("JSON");
        let object = value["rows"][0].as_object().expect("an object");
        assert_eq!(object.len(), COLUMNS.len());
        assert_eq!(object["median_us"], 261.25);
        assert_eq!(object["of_limit"], Value::Null);
        assert_eq!(object["status"], "right");
    }
}
