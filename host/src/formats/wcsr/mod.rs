//! Windowed compressed sparse rows: windows of rows, each dense over the union of its rows' columns.

mod check;
mod cluster;
mod order;
mod pattern;
mod shape;
mod statistics;
mod union;
mod view;
mod windows;

use std::sync::Arc;

use rayon::prelude::*;

pub use order::RowOrder;
pub use pattern::WcsrPattern;
pub use shape::{PANEL_COLS, WindowShape};
pub use statistics::WindowStatistics;
pub use view::WcsrView;

use super::csr::zeroed_elements;
use super::rows::{is_positive_zero, split_by_rows};
use super::{Csr, CsrPattern, CsrView, Dense, FormatError, Layout};
use crate::element::Element;
use check::check_values;
pub(crate) use union::GroupSet;
use union::Ranks;
use windows::Windows;

/// A sparse matrix in windows of rows. A window stores the union of its rows' columns, dense, in panels of
/// [`PANEL_COLS`] columns: so an irregular matrix becomes small dense products with gathered rows of the other operand.
///
/// Values lie panel after panel; a panel is `window.rows` lines of [`PANEL_COLS`] elements. What lies outside of the matrix
/// is zero (checked): columns of padding, columns that the last group reaches beyond the matrix, rows that the last window does.
///
/// Source: the format WCSR of AsyncSparse, arXiv 2604.17834. Column groups and the order of rows are additions.
///
/// ```
/// use hopper_sparse::formats::{Csr, WindowShape};
///
/// // Rows 0 and 1 share column 3: the window stores columns 3, 7 and 40.
/// let csr = Csr::try_new(2, 50, vec![0, 2, 4], vec![3, 40, 3, 7], vec![1f32, 2.0, 3.0, 4.0])?;
/// let wcsr = csr.to_wcsr(WindowShape { rows: 8, group: 1 })?;
/// assert_eq!(wcsr.pattern().groups()[..4], [3, 7, 40, 50]);
/// assert_eq!(wcsr.values()[..3], [1.0, 0.0, 2.0]);
/// assert_eq!(wcsr.values()[16..19], [3.0, 4.0, 0.0]);
/// # Ok::<(), hopper_sparse::formats::FormatError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Wcsr<T> {
    pattern: Arc<WcsrPattern>,
    values: Vec<T>,
}

impl<T: Element> Csr<T> {
    /// As [`Wcsr::from_csr`].
    ///
    /// # Errors
    /// As [`Wcsr::from_csr`].
    pub fn to_wcsr(&self, window: WindowShape) -> Result<Wcsr<T>, FormatError> {
        Wcsr::from_csr(self.view(), window)
    }
}

impl<T: Element> Wcsr<T> {
    /// Puts values on a pattern.
    ///
    /// # Errors
    /// [`FormatError::Length`] where there are not `window.rows * PANEL_COLS` values per panel;
    /// [`FormatError::PaddingNotZero`] where an element outside of the matrix is not zero.
    pub fn from_parts(pattern: Arc<WcsrPattern>, values: Vec<T>) -> Result<Self, FormatError> {
        check_values(&view(&pattern, &values))?;
        Ok(Self { pattern, values })
    }

    /// The same matrix in windows. Values are moved bit for bit.
    ///
    /// # Errors
    /// [`FormatError::WindowShapeNotOffered`]; [`FormatError::OutOfMemory`] where the panels cannot be held.
    pub fn from_csr(matrix: CsrView<'_, T>, window: WindowShape) -> Result<Self, FormatError> {
        Self::build(matrix, window, None)
    }

    /// The same with the rows in an order: a product's row r is still row r of the matrix, but the windows hold other rows.
    ///
    /// # Errors
    /// As [`from_csr`](Self::from_csr), and [`FormatError::Length`] where the order is not one of as many rows.
    pub fn from_csr_ordered(matrix: CsrView<'_, T>, window: WindowShape, order: RowOrder) -> Result<Self, FormatError> {
        Self::build(matrix, window, Some(order))
    }

    fn build(matrix: CsrView<'_, T>, window: WindowShape, order: Option<RowOrder>) -> Result<Self, FormatError> {
        let CsrView { num_rows, num_cols, row_offsets, col_indices, .. } = matrix;
        let pattern = WcsrPattern::build(num_rows, num_cols, row_offsets, col_indices, window, order)?;
        Self::on_pattern(Arc::new(pattern), matrix)
    }

    /// The values of `matrix` on this pattern, which is shared: a new matrix with the entries of the old one needs no
    /// second search.
    ///
    /// # Errors
    /// [`FormatError::OtherSize`] where `matrix` has another size; [`FormatError::OutsidePattern`] where it has an entry
    /// in a column that the entry's window does not store; [`FormatError::OutOfMemory`].
    pub fn rebuild(&self, matrix: CsrView<'_, T>) -> Result<Self, FormatError> {
        if (matrix.num_rows, matrix.num_cols) != (self.num_rows(), self.num_cols()) {
            return Err(FormatError::OtherSize {
                expected_rows: self.num_rows() as u64,
                expected_cols: self.num_cols() as u64,
                found_rows: matrix.num_rows as u64,
                found_cols: matrix.num_cols as u64,
            });
        }
        Self::on_pattern(Arc::clone(&self.pattern), matrix)
    }

    fn on_pattern(pattern: Arc<WcsrPattern>, matrix: CsrView<'_, T>) -> Result<Self, FormatError> {
        let shape = pattern.window;
        let mut values = zeroed_elements::<T>(&[pattern.num_panels(), shape.panel_elements()])?;
        let CsrView { row_offsets, col_indices, .. } = matrix;
        let windows = Windows { row_offsets, col_indices, order: pattern.order.as_ref(), shape };
        let tasks = windows.tasks();
        let pieces = split_by_rows(&mut values, &tasks, &pattern.window_offsets, shape.panel_elements());
        tasks.into_par_iter().zip(pieces).try_for_each_init(GroupSet::default, |set, (task, mut rest)| {
            for window in task {
                let piece;
                (piece, rest) = rest.split_at_mut(pattern.panels(window).len() * shape.panel_elements());
                set.with_ranks(pattern.window_groups(window), |ranks| {
                    scatter_window(&windows, window, matrix.values, ranks, piece)
                })?;
            }
            Ok(())
        })?;
        Ok(Self { pattern, values })
    }

    /// The pattern, to read or to share.
    pub fn pattern(&self) -> &Arc<WcsrPattern> {
        &self.pattern
    }

    /// Number of rows of the matrix.
    pub fn num_rows(&self) -> usize {
        self.pattern.num_rows
    }

    /// Number of columns of the matrix.
    pub fn num_cols(&self) -> usize {
        self.pattern.num_cols
    }

    /// The shape of a window.
    pub fn window(&self) -> WindowShape {
        self.pattern.window
    }

    /// Number of stored panels.
    pub fn num_panels(&self) -> usize {
        self.pattern.num_panels()
    }

    /// The elements of each panel, panel after panel.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Other values on the same pattern, which is shared.
    ///
    /// # Errors
    /// As [`from_parts`](Self::from_parts).
    pub fn with_values<U: Element>(&self, values: Vec<U>) -> Result<Wcsr<U>, FormatError> {
        Wcsr::from_parts(Arc::clone(&self.pattern), values)
    }

    /// Each value rounded to `U` (to nearest, ties to even), on the same pattern, which is shared.
    pub fn cast<U: Element>(&self) -> Wcsr<U> {
        let values = self.values.par_iter().map(|&value| U::from_f64(value.to_f64())).collect();
        Wcsr { pattern: Arc::clone(&self.pattern), values }
    }

    /// The whole matrix, borrowed.
    pub fn view(&self) -> WcsrView<'_, T> {
        view(&self.pattern, &self.values)
    }

    /// The elements that are not +0.0, as entries, the rows in their own order. Windows cannot tell an explicit zero from a
    /// hole, so explicit zeros are lost; -0.0 is kept.
    pub fn to_csr(&self) -> Csr<T> {
        let mut row_offsets = vec![0_u64; 1];
        let (mut col_indices, mut values) = (Vec::new(), Vec::new());
        for row in 0..self.num_rows() {
            self.view().for_each_stored(row, |col, value| {
                if !is_positive_zero(value) {
                    col_indices.push(col as u32);
                    values.push(value);
                }
            });
            row_offsets.push(values.len() as u64);
        }
        let pattern = CsrPattern::from_checked(self.num_rows(), self.num_cols(), row_offsets, col_indices);
        Csr::from_checked(pattern, values)
    }

    /// Every element, zeros included, row-major, the rows in their own order.
    ///
    /// # Errors
    /// [`FormatError::OutOfMemory`] where the elements cannot be held.
    pub fn to_dense(&self) -> Result<Dense<T>, FormatError> {
        let num_cols = self.num_cols();
        let mut data = zeroed_elements::<T>(&[self.num_rows(), num_cols])?;
        for row in 0..self.num_rows() {
            self.view().for_each_stored(row, |col, value| data[row * num_cols + col] = value);
        }
        Dense::from_vec(data, self.num_rows(), num_cols, Layout::RowMajor)
    }
}

fn view<'a, T>(pattern: &'a WcsrPattern, values: &'a [T]) -> WcsrView<'a, T> {
    WcsrView {
        num_rows: pattern.num_rows,
        num_cols: pattern.num_cols,
        window: pattern.window,
        window_offsets: &pattern.window_offsets,
        groups: &pattern.groups,
        values,
        order: pattern.order.as_ref(),
    }
}

/// Writes the entries of one window into its panels, which hold zeros.
fn scatter_window<T: Element>(
    windows: &Windows<'_>,
    window: usize,
    values: &[T],
    ranks: &Ranks<'_>,
    panels: &mut [T],
) -> Result<(), FormatError> {
    let (shape, shift) = (windows.shape, windows.group_shift());
    for (inner, row) in windows.rows(window).enumerate() {
        let entries = windows.entries(row);
        for (&col, &value) in windows.col_indices[entries.clone()].iter().zip(&values[entries]) {
            let Some(rank) = ranks.of(col >> shift) else {
                return Err(FormatError::OutsidePattern { row: row as u64, col: col.into() });
            };
            let column = rank * shape.group + col as usize % shape.group;
            panels[(column / PANEL_COLS * shape.rows + inner) * PANEL_COLS + column % PANEL_COLS] = value;
        }
    }
    Ok(())
}
