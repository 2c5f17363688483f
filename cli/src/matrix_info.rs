//! `hopper-sparse info FILE`: a matrix, and how windows of rows fit it.

use std::path::Path;

use hopper_sparse::Dtype;
use hopper_sparse::formats::{WindowShape, WindowStatistics};
use serde_json::{Value, json};

use crate::args::ReadArgs;
use crate::error::Result;
use crate::input::{self, Input};
use crate::table::{Table, bytes, count, percent, significant};

/// A matrix, and what it would be in windows of each shape.
pub struct MatrixInfo {
    input: Input,
    windows: [WindowStatistics; WindowShape::ALL.len()],
}

impl MatrixInfo {
    /// Reads a file.
    ///
    /// # Errors
    /// As [`input::read`].
    pub fn read(file: &Path, options: &ReadArgs) -> Result<Self> {
        let input = input::read(file, options)?;
        let windows = WindowShape::ALL.map(|shape| WindowStatistics::of(input.matrix.pattern(), shape));
        Ok(Self { input, windows })
    }

    /// For people.
    pub fn table(&self) -> Table {
        let matrix = &self.input.matrix;
        let sizes = [matrix.num_rows(), matrix.num_cols(), matrix.num_entries()].map(|size| count(size as u64));
        let mut table = Table::default();
        table.row("input", format!("{} ({})", self.input.name, self.input.kind));
        table.row("matrix", format!("{} x {}, {} nonzeros", sizes[0], sizes[1], sizes[2]));
        table.row(
            "windows",
            "rows x group: share filled; rows of B fetched for a nonzero; widest; size with bf16 values",
        );
        for found in &self.windows {
            table.more(format!(
                "{:6} {:>7}; {:>6}; {:>7} panels; {}",
                found.window.to_string(),
                percent(found.fill()),
                significant(found.fetched_per_entry()),
                count(found.max_panels),
                bytes(u64::try_from(found.num_bytes(Dtype::Bf16)).unwrap_or(u64::MAX)),
            ));
        }
        table
    }

    /// For programs. Bytes are those of bf16 values.
    pub fn json(&self) -> Value {
        let matrix = &self.input.matrix;
        let window = |found: &WindowStatistics| {
            json!({
                "rows": found.window.rows,
                "group": found.window.group,
                "windows": found.num_windows,
                "panels": found.num_panels,
                "columns": found.num_columns,
                "max_panels": found.max_panels,
                "fill": found.fill(),
                "fetched_per_entry": found.fetched_per_entry(),
                "bytes": u64::try_from(found.num_bytes(Dtype::Bf16)).unwrap_or(u64::MAX),
            })
        };
        json!({
            "name": self.input.name,
            "rows": matrix.num_rows(),
            "cols": matrix.num_cols(),
            "nonzeros": matrix.num_entries(),
            "windows": self.windows.iter().map(window).collect::<Vec<_>>(),
        })
    }
}
