//! Block compressed sparse rows: a sparse matrix of small dense blocks.

use std::sync::Arc;

use rayon::prelude::*;

use super::block_shape::{block_columns, row_groups};
use super::csr::zeroed_elements;
use super::error::{check_compressed, check_length, check_sizes};
use super::rows::{accumulate, is_positive_zero, row_ranges, split_by_rows};
use super::{BlockShape, Csr, CsrPattern, CsrView, Dense, FillStatistics, FormatError, Layout};
use crate::element::Element;

/// Where the blocks of a [`Bcsr`] matrix are.
///
/// Invariants, all checked: `row_offsets` has `ceil(num_rows / BR) + 1` elements, starts with 0, never decreases and
/// ends with the number of blocks; within a block row the block columns increase strictly and are under
/// `ceil(num_cols / BC)`. Both sizes are at most 2^32 - 1.
///
/// A shape that is not offered does not compile:
///
/// ```compile_fail
/// # use hopper_sparse::formats::BcsrPattern;
/// let pattern = BcsrPattern::<32, 32>::try_new(0, 0, vec![0], vec![]);
/// ```
///
/// ```
/// # use hopper_sparse::formats::BcsrPattern;
/// let pattern = BcsrPattern::<64, 32>::try_new(0, 0, vec![0], vec![]);
/// # assert!(pattern.is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BcsrPattern<const BR: usize, const BC: usize> {
    num_rows: usize,
    num_cols: usize,
    row_offsets: Vec<u64>,
    col_indices: Vec<u32>,
}

impl<const BR: usize, const BC: usize> BcsrPattern<BR, BC> {
    /// The shape of a block. Naming it fails to compile where the shape is not offered.
    pub const BLOCK: BlockShape = {
        let shape = BlockShape { rows: BR, cols: BC };
        assert!(shape.is_offered(), "a block has 64 or 128 rows and 16, 32, 64 or 128 columns");
        shape
    };

    /// Takes offsets and block columns.
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
        let block = Self::BLOCK;
        check_sizes(num_rows, num_cols)?;
        check_compressed(num_rows.div_ceil(block.rows), num_cols.div_ceil(block.cols), &row_offsets, &col_indices)?;
        Ok(Self { num_rows, num_cols, row_offsets, col_indices })
    }

    /// The blocks that hold at least one entry of `matrix`; an explicit zero is an entry.
    pub fn from_csr<T: Element>(matrix: CsrView<'_, T>) -> Self {
        let groups = row_groups(matrix.row_offsets, BR);
        let found: Vec<(Vec<u64>, Vec<u32>)> = groups
            .into_par_iter()
            .map(|group| {
                let (mut counts, mut all, mut columns) = (Vec::with_capacity(group.len()), Vec::new(), Vec::new());
                for block_row in group {
                    block_columns(matrix, block_row, Self::BLOCK, &mut columns);
                    counts.push(columns.len() as u64);
                    all.extend_from_slice(&columns);
                }
                (counts, all)
            })
            .collect();
        let mut row_offsets = Vec::with_capacity(matrix.num_rows.div_ceil(BR) + 1);
        row_offsets.push(0);
        let mut col_indices = Vec::with_capacity(found.iter().map(|(_, columns)| columns.len()).sum());
        for (counts, columns) in found {
            row_offsets.extend(counts);
            col_indices.extend(columns);
        }
        accumulate(&mut row_offsets);
        Self { num_rows: matrix.num_rows, num_cols: matrix.num_cols, row_offsets, col_indices }
    }

    /// Number of rows of the matrix.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Number of columns of the matrix.
    pub fn num_cols(&self) -> usize {
        self.num_cols
    }

    /// Number of stored blocks.
    pub fn num_blocks(&self) -> usize {
        self.col_indices.len()
    }

    /// Where each block row begins; `ceil(num_rows / BR) + 1` elements.
    pub fn row_offsets(&self) -> &[u64] {
        &self.row_offsets
    }

    /// The block column of each block.
    pub fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }

    /// How well these blocks fit a matrix of `num_entries` entries.
    pub fn fill_statistics(&self, num_entries: u64) -> FillStatistics {
        FillStatistics::from_counts(self.num_blocks() as u64, num_entries, self.num_rows, self.num_cols, Self::BLOCK)
    }

    /// Refuses anything but zero outside the matrix: it would be multiplied like an element.
    fn check_padding<T: Element>(&self, values: &[T]) -> Result<(), FormatError> {
        let (ragged_rows, ragged_cols) = (!self.num_rows.is_multiple_of(BR), !self.num_cols.is_multiple_of(BC));
        for (block_row, pair) in self.row_offsets.windows(2).enumerate() {
            for block in pair[0] as usize..pair[1] as usize {
                let first_row = block_row * BR;
                let first_col = self.col_indices[block] as usize * BC;
                let beyond_rows = ragged_rows && first_row + BR > self.num_rows;
                let beyond_cols = ragged_cols && first_col + BC > self.num_cols;
                if !beyond_rows && !beyond_cols {
                    continue;
                }
                for (index, value) in values[block * BR * BC..(block + 1) * BR * BC].iter().enumerate() {
                    let (row, col) = (first_row + index / BC, first_col + index % BC);
                    if (row >= self.num_rows || col >= self.num_cols) && *value != T::ZERO {
                        return Err(FormatError::PaddingNotZero { row: row as u64, col: col as u64 });
                    }
                }
            }
        }
        Ok(())
    }
}

/// A block-sparse matrix. Each block is `BR * BC` elements, row-major; what lies outside the matrix is zero (checked).
#[derive(Clone, Debug, PartialEq)]
pub struct Bcsr<T, const BR: usize, const BC: usize> {
    pattern: Arc<BcsrPattern<BR, BC>>,
    values: Vec<T>,
}

impl<T: Element, const BR: usize, const BC: usize> Bcsr<T, BR, BC> {
    /// The shape of a block. Naming it fails to compile where the shape is not offered.
    pub const BLOCK: BlockShape = BcsrPattern::<BR, BC>::BLOCK;

    /// Takes offsets, block columns and the elements of each block.
    ///
    /// # Errors
    /// As [`BcsrPattern::try_new`] and [`from_parts`](Self::from_parts).
    pub fn try_new(
        num_rows: usize,
        num_cols: usize,
        row_offsets: Vec<u64>,
        col_indices: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self, FormatError> {
        Self::from_parts(Arc::new(BcsrPattern::try_new(num_rows, num_cols, row_offsets, col_indices)?), values)
    }

    /// Puts values on a pattern.
    ///
    /// # Errors
    /// [`FormatError::Length`] where there are not `BR * BC` values per block; [`FormatError::PaddingNotZero`] where
    /// an element outside the matrix is not zero.
    pub fn from_parts(pattern: Arc<BcsrPattern<BR, BC>>, values: Vec<T>) -> Result<Self, FormatError> {
        check_length("values", pattern.num_blocks() * BR * BC, values.len())?;
        pattern.check_padding(&values)?;
        Ok(Self { pattern, values })
    }

    /// The same matrix in blocks. Values are moved bit for bit.
    ///
    /// # Errors
    /// [`FormatError::OutOfMemory`] where the blocks cannot be held.
    pub fn from_csr(matrix: CsrView<'_, T>) -> Result<Self, FormatError> {
        Self::on_pattern(Arc::new(BcsrPattern::from_csr(matrix)), matrix)
    }

    /// The values of `matrix` in blocks of this pattern, which is shared: a new matrix with the entries of the old one
    /// needs no second search.
    ///
    /// # Errors
    /// [`FormatError::OtherSize`] where `matrix` has another size; [`FormatError::OutsidePattern`] where it has an entry
    /// in none of the blocks; [`FormatError::OutOfMemory`].
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

    fn on_pattern(pattern: Arc<BcsrPattern<BR, BC>>, matrix: CsrView<'_, T>) -> Result<Self, FormatError> {
        let mut values = zeroed_elements::<T>(&[pattern.num_blocks(), BR, BC])?;
        let groups = row_ranges(&pattern.row_offsets);
        let pieces = split_by_rows(&mut values, &groups, &pattern.row_offsets, BR * BC);
        groups.into_par_iter().zip(pieces).try_for_each(|(group, piece)| {
            let base = pattern.row_offsets[group.start];
            for block_row in group {
                let begin = pattern.row_offsets[block_row] as usize;
                let end = pattern.row_offsets[block_row + 1] as usize;
                let block_cols = &pattern.col_indices[begin..end];
                let blocks = &mut piece[(begin - base as usize) * BR * BC..(end - base as usize) * BR * BC];
                scatter_block_row::<T, BR, BC>(matrix, block_row, block_cols, blocks)?;
            }
            Ok(())
        })?;
        Ok(Self { pattern, values })
    }

    /// The pattern, to read or to share.
    pub fn pattern(&self) -> &Arc<BcsrPattern<BR, BC>> {
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

    /// Number of stored blocks.
    pub fn num_blocks(&self) -> usize {
        self.pattern.num_blocks()
    }

    /// The elements of each block, row-major, block after block.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Other values on the same pattern, which is shared.
    ///
    /// # Errors
    /// As [`from_parts`](Self::from_parts).
    pub fn with_values<U: Element>(&self, values: Vec<U>) -> Result<Bcsr<U, BR, BC>, FormatError> {
        Bcsr::from_parts(Arc::clone(&self.pattern), values)
    }

    /// Each value rounded to `U` (to nearest, ties to even), on the same pattern, which is shared.
    pub fn cast<U: Element>(&self) -> Bcsr<U, BR, BC> {
        let values = self.values.par_iter().map(|&value| U::from_f64(value.to_f64())).collect();
        Bcsr { pattern: Arc::clone(&self.pattern), values }
    }

    /// The whole matrix, borrowed.
    pub fn view(&self) -> BcsrView<'_, T> {
        BcsrView {
            num_rows: self.num_rows(),
            num_cols: self.num_cols(),
            block: Self::BLOCK,
            row_offsets: &self.pattern.row_offsets,
            col_indices: &self.pattern.col_indices,
            values: &self.values,
        }
    }

    /// The elements that are not +0.0, as entries. Blocks cannot tell an explicit zero from a hole, so explicit zeros
    /// are lost; -0.0 is kept.
    pub fn to_csr(&self) -> Csr<T> {
        let mut row_offsets = vec![0_u64; 1];
        let (mut col_indices, mut values) = (Vec::new(), Vec::new());
        for row in 0..self.num_rows() {
            let pattern = &*self.pattern;
            let blocks = pattern.row_offsets[row / BR] as usize..pattern.row_offsets[row / BR + 1] as usize;
            for block in blocks {
                let first = block * BR * BC + row % BR * BC;
                let first_col = pattern.col_indices[block] as usize * BC;
                for (col, &value) in (first_col..self.num_cols()).zip(&self.values[first..first + BC]) {
                    if !is_positive_zero(value) {
                        col_indices.push(col as u32);
                        values.push(value);
                    }
                }
            }
            row_offsets.push(values.len() as u64);
        }
        let pattern = CsrPattern::from_checked(self.num_rows(), self.num_cols(), row_offsets, col_indices);
        Csr::from_checked(pattern, values)
    }

    /// Every element, zeros included, row-major.
    ///
    /// # Errors
    /// [`FormatError::OutOfMemory`] where the elements cannot be held.
    pub fn to_dense(&self) -> Result<Dense<T>, FormatError> {
        let num_cols = self.num_cols();
        let mut data = zeroed_elements::<T>(&[self.num_rows(), num_cols])?;
        for (block_row, pair) in self.pattern.row_offsets.windows(2).enumerate() {
            for block in pair[0] as usize..pair[1] as usize {
                let first_col = self.pattern.col_indices[block] as usize * BC;
                let width = BC.min(num_cols - first_col);
                for inner in 0..BR.min(self.num_rows() - block_row * BR) {
                    let from = (block * BR + inner) * BC;
                    let to = (block_row * BR + inner) * num_cols + first_col;
                    data[to..to + width].copy_from_slice(&self.values[from..from + width]);
                }
            }
        }
        Dense::from_vec(data, self.num_rows(), num_cols, Layout::RowMajor)
    }
}

/// Writes the entries of one block row into its blocks, which hold zeros.
fn scatter_block_row<T: Element, const BR: usize, const BC: usize>(
    matrix: CsrView<'_, T>,
    block_row: usize,
    block_cols: &[u32],
    blocks: &mut [T],
) -> Result<(), FormatError> {
    let first_row = block_row * BR;
    for row in first_row..(first_row + BR).min(matrix.num_rows) {
        let (columns, values) = matrix.row(row);
        // Both lists ascend, so each is walked once.
        let mut block = 0;
        for (&col, &value) in columns.iter().zip(values) {
            let (block_col, inner) = ((col as usize / BC) as u32, col as usize % BC);
            while block < block_cols.len() && block_cols[block] < block_col {
                block += 1;
            }
            if block_cols.get(block) != Some(&block_col) {
                return Err(FormatError::OutsidePattern { row: row as u64, col: u64::from(col) });
            }
            blocks[(block * BR + row - first_row) * BC + inner] = value;
        }
    }
    Ok(())
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

impl<T> BcsrView<'_, T> {
    /// Number of stored blocks.
    pub fn num_blocks(&self) -> usize {
        self.col_indices.len()
    }
}
