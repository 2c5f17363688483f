//! A sparse matrix seen in windows of rows.

use core::ops::Range;

use super::{RowOrder, WindowShape};
use crate::formats::rows::row_ranges;

/// The pattern of a sparse matrix, its rows in an order and cut into windows.
#[derive(Clone, Copy)]
pub(super) struct Windows<'a> {
    pub row_offsets: &'a [u64],
    pub col_indices: &'a [u32],
    pub order: Option<&'a RowOrder>,
    pub shape: WindowShape,
}

impl<'a> Windows<'a> {
    pub fn num_rows(&self) -> usize {
        self.row_offsets.len() - 1
    }

    pub fn len(&self) -> usize {
        self.num_rows().div_ceil(self.shape.rows)
    }

    /// The rows of one window, in their order.
    pub fn rows(&self, window: usize) -> impl Iterator<Item = usize> + Clone + use<'a> {
        let (begin, order) = (window * self.shape.rows, self.order);
        let end = (begin + self.shape.rows).min(self.num_rows());
        (begin..end).map(move |place| order.map_or(place, |order| order.rows()[place] as usize))
    }

    /// Where a row's entries are.
    pub fn entries(&self, row: usize) -> Range<usize> {
        self.row_offsets[row] as usize..self.row_offsets[row + 1] as usize
    }

    /// The columns of each row of one window.
    pub fn columns(&self, window: usize) -> impl Iterator<Item = &'a [u32]> + Clone + use<'a> {
        let (row_offsets, col_indices) = (self.row_offsets, self.col_indices);
        self.rows(window).map(move |row| &col_indices[row_offsets[row] as usize..row_offsets[row + 1] as usize])
    }

    /// The binary logarithm of the columns of a group.
    pub const fn group_shift(&self) -> u32 {
        self.shape.group.trailing_zeros()
    }

    /// Ranges of windows, of like work.
    pub fn tasks(&self) -> Vec<Range<usize>> {
        let mut offsets = Vec::with_capacity(self.len() + 1);
        offsets.push(0);
        let mut entries = 0;
        for window in 0..self.len() {
            entries += self.rows(window).map(|row| self.entries(row).len() as u64).sum::<u64>();
            offsets.push(entries);
        }
        row_ranges(&offsets)
    }
}
