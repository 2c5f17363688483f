//! Block compressed sparse rows: a sparse matrix of small dense blocks.

use core::fmt;
use std::sync::Arc;

/// The shape of a block, at run time: rows 64 or 128, columns 16, 32, 64 or 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockShape {
    /// Rows of a block.
    pub rows: usize,
    /// Columns of a block.
    pub cols: usize,
}

impl fmt::Display for BlockShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.cols)
    }
}

/// How well blocks fit a sparse matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FillStatistics {
    /// Blocks stored.
    pub num_blocks: u64,
    /// Entries of the sparse matrix.
    pub num_entries: u64,
    /// Entries over stored elements, 0 to 1.
    pub fill: f64,
    /// Stored blocks over all blocks, 0 to 1.
    pub block_density: f64,
}

/// Where the blocks of a [`Bcsr`] matrix are.
///
/// Invariants, all checked: `row_offsets` has `ceil(num_rows / BR) + 1` elements, starts with 0, never decreases and
/// ends with the number of blocks; within a block row the block columns increase strictly and are under
/// `ceil(num_cols / BC)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BcsrPattern<const BR: usize, const BC: usize> {
    num_rows: usize,
    num_cols: usize,
    row_offsets: Vec<u64>,
    col_indices: Vec<u32>,
}

/// A block-sparse matrix. Each block is `BR * BC` elements, row-major; what lies outside the matrix is zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Bcsr<T, const BR: usize, const BC: usize> {
    pattern: Arc<BcsrPattern<BR, BC>>,
    values: Vec<T>,
}

/// A [`Bcsr`] borrowed, its block shape a value.
#[derive(Clone, Copy, Debug)]
pub struct BcsrView<'a, T> {
    /// Number of rows.
    pub num_rows: usize,
    /// Number of columns.
    pub num_cols: usize,
    /// The shape of a block.
    pub block: BlockShape,
    /// Where each block row begins; `ceil(num_rows / block.rows) + 1` elements.
    pub row_offsets: &'a [u64],
    /// The block column of each block.
    pub col_indices: &'a [u32],
    /// The elements of each block, row-major, block after block.
    pub values: &'a [T],
}
