//! Coordinates: what a file holds before anything is sorted.

/// A sparse matrix as (row, column, value) triplets, in any order, duplicates allowed (they add up on conversion).
///
/// Invariants, all checked: the three arrays have the same length; every index is under its axis' size.
#[derive(Clone, Debug, PartialEq)]
pub struct Coo<T> {
    num_rows: usize,
    num_cols: usize,
    row_indices: Vec<u32>,
    col_indices: Vec<u32>,
    values: Vec<T>,
}
