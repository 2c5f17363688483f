//! `hopper-sparse info FILE`: a matrix, and how windows of rows fit it.

use std::path::Path;
use std::time::{Duration, Instant};

use hopper_sparse::Dtype;
use hopper_sparse::formats::{CsrPattern, RowOrder, WindowShape, WindowStatistics};
use serde_json::{Value, json};

use crate::args::ReadArgs;
use crate::error::Result;
use crate::input::{self, Input};
use crate::table::{Table, bytes, count, percent, seconds, significant};

/// Whether rows may be put in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orders {
    /// Windows hold the rows as they come.
    AsTheyAre,
    /// A better order is looked for, too.
    Sought,
}

/// A matrix, and what it would be in windows of each shape.
pub struct MatrixInfo {
    input: Input,
    windows: [WindowStatistics; WindowShape::ALL.len()],
    ordered: Option<[Search; WindowShape::ALL.len()]>,
}

/// What the search for an order came to.
struct Search {
    found: Option<WindowStatistics>,
    took: Duration,
}

impl Search {
    fn of(matrix: &CsrPattern, shape: WindowShape) -> Self {
        let begin = Instant::now();
        let order = RowOrder::compacting(matrix, shape);
        let took = begin.elapsed();
        Self { found: order.map(|order| WindowStatistics::of_ordered(matrix, shape, &order)), took }
    }
}

impl MatrixInfo {
    /// Reads a file.
    ///
    /// # Errors
    /// As [`input::read`].
    pub fn read(file: &Path, options: &ReadArgs, orders: Orders) -> Result<Self> {
        let input = input::read(file, options)?;
        let pattern = input.matrix.pattern();
        let windows = WindowShape::ALL.map(|shape| WindowStatistics::of(pattern, shape));
        let sought = orders == Orders::Sought;
        let ordered = sought.then(|| WindowShape::ALL.map(|shape| Search::of(pattern, shape)));
        Ok(Self { input, windows, ordered })
    }

    /// Bytes with bf16 values, and of an order of `ordered_rows` rows.
    fn num_bytes(found: &WindowStatistics, ordered_rows: usize) -> u64 {
        let bytes = found.num_bytes(Dtype::Bf16) + ordered_rows as u128 * size_of::<u32>() as u128;
        u64::try_from(bytes).unwrap_or(u64::MAX)
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
        let line = |found: &WindowStatistics, ordered_rows| {
            format!(
                "{:6} {:>7}; {:>6}; {:>7} panels; {}",
                found.window.to_string(),
                percent(found.fill()),
                significant(found.fetched_per_entry()),
                count(found.max_panels),
                bytes(Self::num_bytes(found, ordered_rows)),
            )
        };
        for found in &self.windows {
            table.more(line(found, 0));
        }
        let Some(ordered) = &self.ordered else { return table };
        table.row("reordered", "the same with the rows in an order, which products undo; what the search took");
        for (shape, Search { found, took }) in WindowShape::ALL.iter().zip(ordered) {
            let found = match found {
                Some(found) => line(found, matrix.num_rows()),
                None => format!("{:6} no better order", shape.to_string()),
            };
            table.more(format!("{found}; {}", seconds(took.as_secs_f64())));
        }
        table
    }

    /// For programs. Bytes are those of bf16 values.
    pub fn json(&self) -> Value {
        let matrix = &self.input.matrix;
        let window = |found: &WindowStatistics, ordered_rows| {
            json!({
                "rows": found.window.rows,
                "group": found.window.group,
                "windows": found.num_windows,
                "panels": found.num_panels,
                "columns": found.num_columns,
                "max_panels": found.max_panels,
                "fill": found.fill(),
                "fetched_per_entry": found.fetched_per_entry(),
                "bytes": Self::num_bytes(found, ordered_rows),
            })
        };
        let mut windows: Vec<_> = self.windows.iter().map(|found| window(found, 0)).collect();
        for (of_shape, Search { found, took }) in windows.iter_mut().zip(self.ordered.iter().flatten()) {
            of_shape["ordered"] = found.as_ref().map_or(Value::Null, |found| window(found, matrix.num_rows()));
            of_shape["order_seconds"] = took.as_secs_f64().into();
        }
        json!({
            "name": self.input.name,
            "rows": matrix.num_rows(),
            "cols": matrix.num_cols(),
            "nonzeros": matrix.num_entries(),
            "windows": windows,
        })
    }
}
