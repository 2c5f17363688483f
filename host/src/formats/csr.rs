//! Compressed sparse rows.

use std::sync::Arc;

use rayon::prelude::*;

use super::error::{check_compressed, check_length, check_sizes};
use super::rows::accumulate;
use super::{Coo, Dense, FormatError, Layout};
use crate::element::Element;

/// Where the entries of a [`Csr`] matrix are.
///
/// Invariants, all checked: `row_offsets` has `num_rows + 1` elements, starts with 0, never decreases and ends with
/// the number of entries; within a row the column indices increase strictly and are under `num_cols`. Both sizes are
/// at most 2^32 - 1; the number of entries is limited by memory alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsrPattern {
    num_rows: usize,
    num_cols: usize,
    row_offsets: Vec<u64>,
    col_indices: Vec<u32>,
}

impl CsrPattern {
    /// Takes offsets and column indices.
    ///
    /// # Errors
    /// Where an invariant of the type does not hold: [`FormatError::SizeTooLarge`], [`FormatError::Length`],
    /// [`FormatError::FirstOffset`], [`FormatError::OffsetsDecrease`], [`FormatError::LastOffset`],
    /// [`FormatError::IndexOutOfRange`] or [`FormatError::ColumnsNotIncreasing`].
    pub fn try_new(
        num_rows: usize,
        num_cols: usize,
        row_offsets: Vec<u64>,
        col_indices: Vec<u32>,
    ) -> Result<Self, FormatError> {
        check_sizes(num_rows, num_cols)?;
        check_compressed(num_rows, num_cols, &row_offsets, &col_indices)?;
        Ok(Self { num_rows, num_cols, row_offsets, col_indices })
    }

    /// Takes arrays that hold the invariants by construction.
    pub(crate) fn from_checked(num_rows: usize, num_cols: usize, row_offsets: Vec<u64>, col_indices: Vec<u32>) -> Self {
        debug_assert_eq!(check_sizes(num_rows, num_cols), Ok(()));
        debug_assert_eq!(check_compressed(num_rows, num_cols, &row_offsets, &col_indices), Ok(()));
        Self { num_rows, num_cols, row_offsets, col_indices }
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Number of columns.
    pub fn num_cols(&self) -> usize {
        self.num_cols
    }

    /// Number of entries, explicit zeros included.
    pub fn num_entries(&self) -> usize {
        self.col_indices.len()
    }

    /// Where each row begins; `num_rows + 1` elements.
    pub fn row_offsets(&self) -> &[u64] {
        &self.row_offsets
    }

    /// The column of each entry.
    pub fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }
}

/// A sparse matrix in compressed-sparse-row form; matrices with the same pattern share it.
#[derive(Clone, Debug, PartialEq)]
pub struct Csr<T> {
    pattern: Arc<CsrPattern>,
    values: Vec<T>,
}

impl<T: Element> Csr<T> {
    /// Takes offsets, column indices and values.
    ///
    /// # Errors
    /// As [`CsrPattern::try_new`], and [`FormatError::Length`] where there is not one value per entry.
    pub fn try_new(
        num_rows: usize,
        num_cols: usize,
        row_offsets: Vec<u64>,
        col_indices: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self, FormatError> {
        let pattern = CsrPattern::try_new(num_rows, num_cols, row_offsets, col_indices)?;
        Self::from_parts(Arc::new(pattern), values)
    }

    /// The elements of a dense row-major matrix that are not zero; -0.0 is zero, NaN is not.
    ///
    /// # Errors
    /// [`FormatError::SizeTooLarge`], or [`FormatError::Length`] where there are not `num_rows * num_cols` elements.
    pub fn from_row_major(elements: &[T], num_rows: usize, num_cols: usize) -> Result<Self, FormatError> {
        check_sizes(num_rows, num_cols)?;
        check_length("elements", num_rows * num_cols, elements.len())?;
        let rows = || elements.par_chunks(num_cols.max(1));
        let mut row_offsets = vec![0; num_rows + 1];
        row_offsets[1..].par_iter_mut().zip(rows()).for_each(|(count, row)| {
            *count = row.iter().filter(|&&element| element != T::ZERO).count() as u64;
        });
        accumulate(&mut row_offsets);
        let entries = |row: &'_ [T]| {
            let kept = |(col, &element): (usize, &T)| (element != T::ZERO).then_some((col as u32, element));
            row.iter().enumerate().filter_map(kept).collect::<Vec<_>>()
        };
        let (col_indices, values) = rows().flat_map_iter(entries).unzip();
        Ok(Self::from_checked(CsrPattern::from_checked(num_rows, num_cols, row_offsets, col_indices), values))
    }

    /// Puts values on a pattern.
    ///
    /// # Errors
    /// [`FormatError::Length`] where there is not one value per entry.
    pub fn from_parts(pattern: Arc<CsrPattern>, values: Vec<T>) -> Result<Self, FormatError> {
        check_length("values", pattern.num_entries(), values.len())?;
        Ok(Self { pattern, values })
    }

    pub(crate) fn from_checked(pattern: CsrPattern, values: Vec<T>) -> Self {
        debug_assert_eq!(pattern.num_entries(), values.len());
        Self { pattern: Arc::new(pattern), values }
    }

    /// The pattern, to read or to share.
    pub fn pattern(&self) -> &Arc<CsrPattern> {
        &self.pattern
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.pattern.num_rows
    }

    /// Number of columns.
    pub fn num_cols(&self) -> usize {
        self.pattern.num_cols
    }

    /// Number of entries, explicit zeros included.
    pub fn num_entries(&self) -> usize {
        self.values.len()
    }

    /// Where each row begins; `num_rows + 1` elements.
    pub fn row_offsets(&self) -> &[u64] {
        &self.pattern.row_offsets
    }

    /// The column of each entry.
    pub fn col_indices(&self) -> &[u32] {
        &self.pattern.col_indices
    }

    /// The value of each entry.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The value of each entry, to change; the pattern stays.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// The whole matrix, borrowed.
    pub fn view(&self) -> CsrView<'_, T> {
        CsrView {
            num_rows: self.pattern.num_rows,
            num_cols: self.pattern.num_cols,
            row_offsets: &self.pattern.row_offsets,
            col_indices: &self.pattern.col_indices,
            values: &self.values,
        }
    }

    /// Other values on the same pattern, which is shared.
    ///
    /// # Errors
    /// [`FormatError::Length`] where there is not one value per entry.
    pub fn with_values<U: Element>(&self, values: Vec<U>) -> Result<Csr<U>, FormatError> {
        Csr::from_parts(Arc::clone(&self.pattern), values)
    }

    /// Each value replaced by `f` of it, on the same pattern, which is shared. A zero that `f` makes stays an entry.
    pub fn map_values<U: Element>(&self, f: impl Fn(T) -> U + Sync) -> Csr<U> {
        let values = self.values.par_iter().map(|&value| f(value)).collect();
        Csr { pattern: Arc::clone(&self.pattern), values }
    }

    /// Each value rounded to `U` (to nearest, ties to even), on the same pattern, which is shared.
    pub fn cast<U: Element>(&self) -> Csr<U> {
        self.map_values(|value| U::from_f64(value.to_f64()))
    }

    /// The same entries as triplets, by row and then by column.
    pub fn to_coo(&self) -> Coo<T> {
        let mut row_indices = Vec::with_capacity(self.num_entries());
        for (row, pair) in self.row_offsets().windows(2).enumerate() {
            row_indices.resize(pair[1] as usize, row as u32);
        }
        Coo::from_checked(
            self.num_rows(),
            self.num_cols(),
            row_indices,
            self.col_indices().to_vec(),
            self.values.clone(),
        )
    }

    /// The transpose, whose rows are this matrix' columns.
    pub fn transpose(&self) -> Self {
        let mut row_offsets = vec![0_u64; self.num_cols() + 1];
        for &col in self.col_indices() {
            row_offsets[col as usize + 1] += 1;
        }
        accumulate(&mut row_offsets);
        let mut next = row_offsets[..self.num_cols()].to_vec();
        let mut col_indices = vec![0_u32; self.num_entries()];
        let mut values = vec![T::ZERO; self.num_entries()];
        for row in 0..self.num_rows() {
            let (columns, elements) = self.view().row(row);
            for (&col, &value) in columns.iter().zip(elements) {
                let place = &mut next[col as usize];
                col_indices[*place as usize] = row as u32;
                values[*place as usize] = value;
                *place += 1;
            }
        }
        let pattern = CsrPattern::from_checked(self.num_cols(), self.num_rows(), row_offsets, col_indices);
        Self::from_checked(pattern, values)
    }

    /// Every element, zeros included, row-major.
    ///
    /// # Errors
    /// [`FormatError::OutOfMemory`] where the elements cannot be held.
    pub fn to_dense(&self) -> Result<Dense<T>, FormatError> {
        let mut data = zeroed_elements::<T>(&[self.num_rows(), self.num_cols()])?;
        for row in 0..self.num_rows() {
            let (columns, values) = self.view().row(row);
            for (&col, &value) in columns.iter().zip(values) {
                data[row * self.num_cols() + col as usize] = value;
            }
        }
        Dense::from_vec(data, self.num_rows(), self.num_cols(), Layout::RowMajor)
    }
}

/// As many zeros as the product of `sides`, or the bytes that could not be had.
pub(crate) fn zeroed_elements<T: Element>(sides: &[usize]) -> Result<Vec<T>, FormatError> {
    let elements: u128 = sides.iter().map(|&side| side as u128).product();
    let refused = FormatError::OutOfMemory { bytes: elements * size_of::<T>() as u128 };
    let Ok(elements) = usize::try_from(elements) else { return Err(refused) };
    bytemuck::allocation::try_zeroed_vec(elements).map_err(|()| refused)
}

/// A [`Csr`] borrowed.
#[derive(Clone, Copy, Debug)]
pub struct CsrView<'a, T> {
    /// Number of rows.
    pub num_rows: usize,
    /// Number of columns.
    pub num_cols: usize,
    /// Where each row begins; `num_rows + 1` elements.
    pub row_offsets: &'a [u64],
    /// The column of each entry.
    pub col_indices: &'a [u32],
    /// The value of each entry.
    pub values: &'a [T],
}

impl<'a, T> CsrView<'a, T> {
    /// Number of entries, explicit zeros included.
    pub fn num_entries(&self) -> usize {
        self.values.len()
    }

    /// Checks what [`CsrPattern`] and [`Csr`] promise, which a view put together by hand need not keep.
    ///
    /// # Errors
    /// As [`CsrPattern::try_new`], and [`FormatError::Length`] where there is not one value per entry.
    pub fn check(&self) -> Result<(), FormatError> {
        check_sizes(self.num_rows, self.num_cols)?;
        check_compressed(self.num_rows, self.num_cols, self.row_offsets, self.col_indices)?;
        check_length("values", self.col_indices.len(), self.values.len())
    }

    /// The columns and values of one row.
    ///
    /// # Panics
    /// Where `row` is not under `num_rows`.
    #[inline]
    pub fn row(&self, row: usize) -> (&'a [u32], &'a [T]) {
        let entries = self.row_offsets[row] as usize..self.row_offsets[row + 1] as usize;
        (&self.col_indices[entries.clone()], &self.values[entries])
    }
}
