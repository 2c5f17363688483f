//! A windowed matrix, borrowed.

use super::check::{check_pattern, check_values};
use super::pattern::real_groups;
use super::{PANEL_COLS, RowOrder, WindowShape};
use crate::element::Element;
use crate::formats::FormatError;

/// A [`Wcsr`](super::Wcsr) borrowed. [`WcsrPattern`](super::WcsrPattern) says what the arrays hold.
#[derive(Clone, Copy, Debug)]
pub struct WcsrView<'a, T> {
    /// Number of rows.
    pub num_rows: usize,
    /// Number of columns.
    pub num_cols: usize,
    /// The shape of a window.
    pub window: WindowShape,
    /// The panel that each window begins with; `ceil(num_rows / window.rows) + 1` elements.
    pub window_offsets: &'a [u64],
    /// The index of each column group, padding included; `PANEL_COLS / window.group` for each panel.
    pub groups: &'a [u32],
    /// The elements of each panel: for each row of the window [`PANEL_COLS`] elements. What lies outside of the matrix is
    /// zero.
    pub values: &'a [T],
    /// The order of the rows, where it is not their own.
    pub order: Option<&'a RowOrder>,
}

impl<'a, T> WcsrView<'a, T> {
    /// Number of windows.
    pub fn num_windows(&self) -> usize {
        self.window_offsets.len() - 1
    }

    /// Number of stored panels.
    pub fn num_panels(&self) -> usize {
        self.groups.len() / self.window.panel_groups()
    }

    /// The row of each place, where the order of the rows is not their own.
    pub fn rows(&self) -> Option<&'a [u32]> {
        self.order.map(RowOrder::rows)
    }
}

impl<T: Element> WcsrView<'_, T> {
    /// Checks what [`WcsrPattern`](super::WcsrPattern) and [`Wcsr`](super::Wcsr) promise, which a view put together by
    /// hand need not keep.
    ///
    /// # Errors
    /// As [`WcsrPattern::try_new`](super::WcsrPattern::try_new) and [`Wcsr::from_parts`](super::Wcsr::from_parts).
    pub fn check(&self) -> Result<(), FormatError> {
        check_pattern(self.num_rows, self.num_cols, self.window, self.window_offsets, self.groups, self.order)?;
        check_values(self)
    }

    /// Calls `visit(column, value)` for each stored column of the matrix' row `row`, zeros included, in the order of the
    /// columns. Time and memory read go with the columns that its window stores.
    ///
    /// # Panics
    /// Where `row` is not under `num_rows`, or the view breaks an invariant.
    pub(crate) fn for_each_stored(&self, row: usize, mut visit: impl FnMut(usize, T)) {
        let place = self.order.map_or(row, |order| order.places()[row] as usize);
        let (index, inner, group) = (place / self.window.rows, place % self.window.rows, self.window.group);
        let panels = self.window_offsets[index] as usize..self.window_offsets[index + 1] as usize;
        let groups = real_groups(self.window, self.num_cols, self.groups, panels.clone());
        for (panel, groups) in panels.zip(groups.chunks(self.window.panel_groups())) {
            let first = (panel * self.window.rows + inner) * PANEL_COLS;
            let values = &self.values[first..first + PANEL_COLS];
            for (&index, values) in groups.iter().zip(values.chunks(group)) {
                let first_col = index as usize * group;
                for (col, &value) in (first_col..self.num_cols).zip(values) {
                    visit(col, value);
                }
            }
        }
    }
}
