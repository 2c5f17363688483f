//! Coordinates: what a file holds before anything is sorted.

use rayon::prelude::*;

use super::error::{check_length, check_sizes};
use super::rows::{accumulate, row_ranges, split_by_rows};
use super::{Axis, Csr, CsrPattern, FormatError};
use crate::element::Element;
use crate::memory::require_memory;

/// A sparse matrix as (row, column, value) triplets, in any order, duplicates allowed (they add up on conversion).
///
/// Invariants, all checked: the three arrays have the same length; every index is under its axis' size; both sizes
/// are at most 2^32 - 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Coo<T> {
    num_rows: usize,
    num_cols: usize,
    row_indices: Vec<u32>,
    col_indices: Vec<u32>,
    values: Vec<T>,
}

impl<T: Element> Coo<T> {
    /// A matrix without entries.
    ///
    /// # Errors
    /// [`FormatError::SizeTooLarge`] where a size exceeds 2^32 - 1.
    pub fn new(num_rows: usize, num_cols: usize) -> Result<Self, FormatError> {
        Self::with_capacity(num_rows, num_cols, 0)
    }

    /// A matrix without entries, and room for `capacity` of them.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_capacity(num_rows: usize, num_cols: usize, capacity: usize) -> Result<Self, FormatError> {
        check_sizes(num_rows, num_cols)?;
        Ok(Self {
            num_rows,
            num_cols,
            row_indices: Vec::with_capacity(capacity),
            col_indices: Vec::with_capacity(capacity),
            values: Vec::with_capacity(capacity),
        })
    }

    /// Takes three arrays of one length.
    ///
    /// # Errors
    /// [`FormatError::SizeTooLarge`], [`FormatError::Length`] or [`FormatError::IndexOutOfRange`], where an invariant
    /// of the type does not hold.
    pub fn try_new(
        num_rows: usize,
        num_cols: usize,
        row_indices: Vec<u32>,
        col_indices: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self, FormatError> {
        check_sizes(num_rows, num_cols)?;
        check_length("col_indices", row_indices.len(), col_indices.len())?;
        check_length("values", row_indices.len(), values.len())?;
        check_indices(Axis::Row, &row_indices, num_rows)?;
        check_indices(Axis::Column, &col_indices, num_cols)?;
        Ok(Self { num_rows, num_cols, row_indices, col_indices, values })
    }

    /// Takes arrays that hold the invariants by construction.
    pub(crate) fn from_checked(
        num_rows: usize,
        num_cols: usize,
        row_indices: Vec<u32>,
        col_indices: Vec<u32>,
        values: Vec<T>,
    ) -> Self {
        debug_assert!(row_indices.len() == values.len() && col_indices.len() == values.len());
        debug_assert!(row_indices.iter().all(|&row| (row as usize) < num_rows));
        debug_assert!(col_indices.iter().all(|&col| (col as usize) < num_cols));
        Self { num_rows, num_cols, row_indices, col_indices, values }
    }

    /// Adds an entry at (`row`, `col`), counted from 0.
    ///
    /// # Errors
    /// [`FormatError::IndexOutOfRange`]; the matrix is then as before.
    pub fn push(&mut self, row: usize, col: usize, value: T) -> Result<(), FormatError> {
        for (axis, index, size) in [(Axis::Row, row, self.num_rows), (Axis::Column, col, self.num_cols)] {
            if index >= size {
                return Err(out_of_range(axis, index, size, self.values.len()));
            }
        }
        self.push_checked(row as u32, col as u32, value);
        Ok(())
    }

    /// Adds an entry whose indices the caller has checked.
    #[inline]
    pub(crate) fn push_checked(&mut self, row: u32, col: u32, value: T) {
        debug_assert!((row as usize) < self.num_rows && (col as usize) < self.num_cols);
        self.row_indices.push(row);
        self.col_indices.push(col);
        self.values.push(value);
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Number of columns.
    pub fn num_cols(&self) -> usize {
        self.num_cols
    }

    /// Number of triplets; each duplicate counts.
    pub fn num_entries(&self) -> usize {
        self.values.len()
    }

    /// The row of each entry, from 0.
    pub fn row_indices(&self) -> &[u32] {
        &self.row_indices
    }

    /// The column of each entry, from 0.
    pub fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }

    /// The value of each entry.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Sorts by row and column, and sums duplicates.
    ///
    /// Entries at one place are added in `f64`, in the order in which they stand here, and the sum is rounded once: the
    /// result does not depend on the number of threads. A value without a duplicate is moved bit for bit, so explicit
    /// zeros, -0.0 and NaN payloads stay as they are.
    ///
    /// Memory that cannot be had ends the process, as with [`Vec::with_capacity`]; [`try_to_csr`](Self::try_to_csr)
    /// refuses.
    pub fn to_csr(&self) -> Csr<T> {
        let mut row_offsets = vec![0_u64; self.num_rows + 1];
        for &row in &self.row_indices {
            row_offsets[row as usize + 1] += 1;
        }
        accumulate(&mut row_offsets);

        let (mut col_indices, mut values) = self.bucket_by_row(&row_offsets);
        let ranges = row_ranges(&row_offsets);
        let columns = split_by_rows(&mut col_indices, &ranges, &row_offsets, 1);
        let elements = split_by_rows(&mut values, &ranges, &row_offsets, 1);
        // Entries left in each range, compacted to the front of its piece; and in each row.
        let compacted: Vec<Compacted> = ranges
            .par_iter()
            .zip(columns)
            .zip(elements)
            .map(|((range, columns), elements)| sort_and_sum(&row_offsets[range.start..=range.end], columns, elements))
            .collect();

        let kept: usize = compacted.iter().map(|piece| piece.kept).sum();
        if kept != values.len() {
            let mut end = 0;
            for (range, piece) in ranges.iter().zip(&compacted) {
                let begin = row_offsets[range.start] as usize;
                col_indices.copy_within(begin..begin + piece.kept, end);
                values.copy_within(begin..begin + piece.kept, end);
                end += piece.kept;
            }
            col_indices.truncate(kept);
            values.truncate(kept);
            let lengths = compacted.iter().flat_map(|piece| piece.row_lengths.iter());
            let mut sum = 0;
            for (offset, &length) in row_offsets[1..].iter_mut().zip(lengths) {
                sum += length;
                *offset = sum;
            }
        }
        let pattern = CsrPattern::from_checked(self.num_rows, self.num_cols, row_offsets, col_indices);
        Csr::from_checked(pattern, values)
    }

    /// As [`to_csr`](Self::to_csr), for sizes that somebody else chose: a file of three entries may claim four thousand
    /// million rows, and each takes an offset.
    ///
    /// # Errors
    /// [`FormatError::OutOfMemory`] where what sorting takes cannot be held.
    pub fn try_to_csr(&self) -> Result<Csr<T>, FormatError> {
        // Offsets, the next free place and the new length of each row; and the sorted entries.
        let of_rows = 3 * size_of::<u64>() as u128 * (self.num_rows as u128 + 1);
        let of_entries = (size_of::<u32>() + size_of::<T>()) as u128 * self.values.len() as u128;
        require_memory(of_rows + of_entries).map_err(|bytes| FormatError::OutOfMemory { bytes })?;
        Ok(self.to_csr())
    }

    /// Columns and values ordered by row; within a row in the order of this matrix.
    fn bucket_by_row(&self, row_offsets: &[u64]) -> (Vec<u32>, Vec<T>) {
        if self.row_indices.is_sorted() {
            return (self.col_indices.clone(), self.values.clone());
        }
        let mut next = row_offsets[..self.num_rows].to_vec();
        let mut col_indices = vec![0_u32; self.values.len()];
        let mut values = vec![T::ZERO; self.values.len()];
        for ((&row, &col), &value) in self.row_indices.iter().zip(&self.col_indices).zip(&self.values) {
            let place = &mut next[row as usize];
            col_indices[*place as usize] = col;
            values[*place as usize] = value;
            *place += 1;
        }
        (col_indices, values)
    }
}

/// What [`sort_and_sum`] leaves of a range of rows.
struct Compacted {
    kept: usize,
    row_lengths: Vec<u64>,
}

/// Sorts each row by column and sums duplicates; what is kept lies at the front of `columns` and `values`.
fn sort_and_sum<T: Element>(row_offsets: &[u64], columns: &mut [u32], values: &mut [T]) -> Compacted {
    let base = row_offsets[0];
    let mut scratch = Vec::new();
    let mut row_lengths = Vec::with_capacity(row_offsets.len() - 1);
    let mut kept = 0;
    for pair in row_offsets.windows(2) {
        let (begin, end) = ((pair[0] - base) as usize, (pair[1] - base) as usize);
        sort_row(&mut columns[begin..end], &mut values[begin..end], &mut scratch);
        let first = kept;
        let mut next = begin;
        while next < end {
            let (column, mut value) = (columns[next], values[next]);
            next += 1;
            if next < end && columns[next] == column {
                let mut sum = value.to_f64();
                while next < end && columns[next] == column {
                    sum += values[next].to_f64();
                    next += 1;
                }
                value = T::from_f64(sum);
            }
            columns[kept] = column;
            values[kept] = value;
            kept += 1;
        }
        row_lengths.push((kept - first) as u64);
    }
    Compacted { kept, row_lengths }
}

/// Sorts one row by column; equal columns keep their order.
fn sort_row<T: Element>(columns: &mut [u32], values: &mut [T], scratch: &mut Vec<(u32, T)>) {
    if columns.is_sorted() {
        return;
    }
    scratch.clear();
    scratch.extend(columns.iter().copied().zip(values.iter().copied()));
    scratch.sort_by_key(|&(column, _)| column);
    for (index, &(column, value)) in scratch.iter().enumerate() {
        columns[index] = column;
        values[index] = value;
    }
}

fn check_indices(axis: Axis, indices: &[u32], size: usize) -> Result<(), FormatError> {
    match indices.iter().position(|&index| index as usize >= size) {
        Some(entry) => Err(out_of_range(axis, indices[entry] as usize, size, entry)),
        None => Ok(()),
    }
}

fn out_of_range(axis: Axis, index: usize, size: usize, entry: usize) -> FormatError {
    FormatError::IndexOutOfRange { axis, index: index as u64, size: size as u64, entry: entry as u64 }
}
