//! Compressed sparse rows.

use std::sync::Arc;

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

/// A sparse matrix in compressed-sparse-row form; matrices with the same pattern share it.
#[derive(Clone, Debug, PartialEq)]
pub struct Csr<T> {
    pattern: Arc<CsrPattern>,
    values: Vec<T>,
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
