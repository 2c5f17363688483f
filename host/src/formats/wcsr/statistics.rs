//! How well windows fit a matrix.

use rayon::prelude::*;

use super::pattern::stored_columns;
use super::union::GroupSet;
use super::windows::Windows;
use super::{RowOrder, WindowShape};
use crate::element::Dtype;
use crate::formats::CsrPattern;

/// How well windows of a shape fit a sparse matrix: what a choice between formats reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowStatistics {
    /// The shape of a window.
    pub window: WindowShape,
    /// Windows, empty ones included.
    pub num_windows: u64,
    /// Panels of all windows.
    pub num_panels: u64,
    /// Columns of the matrix that all windows store: rows of B that are fetched for each tile of C's columns.
    pub num_columns: u64,
    /// Entries of the sparse matrix.
    pub num_entries: u64,
    /// Panels of the window that has the most.
    pub max_panels: u64,
}

impl WindowStatistics {
    /// What a matrix would be in windows of this shape, without building it: one pass over its column indices, in parallel.
    ///
    /// # Panics
    /// Where `window` is not offered.
    pub fn of(matrix: &CsrPattern, window: WindowShape) -> Self {
        Self::count(matrix, window, None)
    }

    /// The same with the rows in an order.
    ///
    /// # Panics
    /// Where `window` is not offered, or the order is not one of as many rows.
    pub fn of_ordered(matrix: &CsrPattern, window: WindowShape, order: &RowOrder) -> Self {
        assert_eq!(order.rows().len(), matrix.num_rows(), "the order has a place for each row");
        Self::count(matrix, window, Some(order))
    }

    fn count(matrix: &CsrPattern, shape: WindowShape, order: Option<&RowOrder>) -> Self {
        assert!(shape.is_offered(), "windows of {shape} are not offered");
        let (row_offsets, col_indices) = (matrix.row_offsets(), matrix.col_indices());
        let windows = Windows { row_offsets, col_indices, order, shape };
        let scratch = || (GroupSet::default(), Vec::new());
        let counted = windows.tasks().into_par_iter().map_init(scratch, |(set, groups), task| {
            let widths = task.map(|window| {
                groups.clear();
                set.union(windows.columns(window), windows.group_shift(), groups);
                let panels = groups.len().div_ceil(shape.panel_groups());
                Self::of_window(panels as u64, stored_columns(shape, matrix.num_cols(), groups) as u64)
            });
            widths.fold(Width::default(), Width::join)
        });
        Self::sum(shape, matrix.num_entries() as u64, counted)
    }

    /// What one window adds.
    pub(super) fn of_window(num_panels: u64, num_columns: u64) -> Width {
        Width { num_windows: 1, num_panels, num_columns, max_panels: num_panels }
    }

    pub(super) fn sum(window: WindowShape, num_entries: u64, widths: impl ParallelIterator<Item = Width>) -> Self {
        let Width { num_windows, num_panels, num_columns, max_panels } = widths.reduce(Width::default, Width::join);
        Self { window, num_windows, num_panels, num_columns, num_entries, max_panels }
    }

    /// Entries over stored elements, padding among them, 0 to 1; 0 where nothing is stored.
    pub fn fill(&self) -> f64 {
        ratio(self.num_entries, self.num_panels as f64 * self.window.panel_elements() as f64)
    }

    /// Rows of B fetched per entry, 0 to 8 (a group may hold one entry); 0 where there is none.
    pub fn fetched_per_entry(&self) -> f64 {
        ratio(self.num_columns, self.num_entries as f64)
    }

    /// Bytes of the three arrays with values of this type; an order takes 4 bytes a row more on a device.
    pub fn num_bytes(&self, dtype: Dtype) -> u128 {
        let (panels, offsets) = (u128::from(self.num_panels), u128::from(self.num_windows) + 1);
        let per_panel =
            self.window.panel_elements() * dtype.size_bytes() + self.window.panel_groups() * size_of::<u32>();
        panels * per_panel as u128 + offsets * size_of::<u64>() as u128
    }
}

/// What is summed over windows.
#[derive(Clone, Copy, Default)]
pub(super) struct Width {
    num_windows: u64,
    num_panels: u64,
    num_columns: u64,
    max_panels: u64,
}

impl Width {
    fn join(self, other: Self) -> Self {
        Self {
            num_windows: self.num_windows + other.num_windows,
            num_panels: self.num_panels + other.num_panels,
            num_columns: self.num_columns + other.num_columns,
            max_panels: self.max_panels.max(other.max_panels),
        }
    }
}

fn ratio(part: u64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part as f64 / whole }
}
