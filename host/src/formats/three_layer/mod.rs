//! Moderately sparse matrices in three layers: two of four, surplus in free slots, residual.
//!
//! Source of the idea: arXiv 2607.08786. The layout is our own ([`layout`](kernels_gpu::three_layer::layout)).
//!
//! 1. Of each group of four neighbours in a row two nonzeros are stored, as sparse tensor cores take them.
//! 2. A third and a fourth one, the *surplus*, go to free slots of the same tile of 128 x 128: places of groups with one nonzero or none.
//!    The i-th entry is in the i-th free slot. Which slots are free the codes of the groups say, and where an entry belongs a *distance* of
//!    four bits: the groups from the last entry's to its own, in the order of memory; 0 is the second entry of a group. Where the next one
//!    is more than 15 groups away, dummies with the value zero lie between. The column in its group follows from the group's code.
//! 3. What finds no slot is the *residual*, in rows.
//!
//! The unit of distances is the group: counted in columns, a quarter of all entries would be dummies at a sparsity of one half; counted in
//! groups it is two in a thousand. In the order of memory, a distance is one of addresses, and neither rows nor swizzles need a thought.

mod check;
mod codes;
mod decode;
mod encode;
mod geometry;
mod statistics;

use core::marker::PhantomData;

use kernels_gpu::three_layer::layout::{RESIDUAL_COLS, TILE_COLS, TILE_ROWS};
use rayon::prelude::*;

use super::csr::zeroed_elements;
use super::error::{check_length, check_sizes};
use super::{CsrView, Dense, DenseView, FormatError, Layout};
use crate::element::HalfElement;
use check::check_tile;
use decode::decode_tile;
use encode::{Elements, encode_tile};

pub use check::TileFault;
pub use statistics::ThreeLayerStatistics;

/// Words of 16 bytes, the unit of tile offsets.
const UNIT_WORDS: usize = 4;

/// A matrix of 16-bit elements in three layers, in tiles of 128 x 128.
///
/// Invariants, all checked: there is a tile for each 128 rows and columns, those of a row of tiles one after the other; each is as the
/// module says, so that a kernel may read and write by it. Elements of the residual are inside of the matrix, in the order of rows and, in
/// a row, of columns.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreeLayer<T> {
    num_rows: usize,
    num_cols: usize,
    tile_offsets: Vec<u32>,
    words: Vec<u32>,
    residual_offsets: Vec<u32>,
    residual: Vec<u32>,
    element: PhantomData<T>,
}

/// The tiles of a row of tiles, one after the other.
struct RowBlock {
    words: Vec<u32>,
    /// Where each tile ends.
    ends: Vec<usize>,
    /// Row in the block, column, bits.
    residual: Vec<(usize, usize, u16)>,
}

impl<T: HalfElement> ThreeLayer<T> {
    /// The nonzeros of a dense matrix; -0.0 is none.
    ///
    /// # Errors
    /// [`FormatError::SizeTooLarge`] where an axis is longer than 32 bits reach, [`FormatError::SizeOverflow`] where there is more to store
    /// than offsets of 32 bits reach.
    pub fn from_dense(dense: DenseView<'_, T>) -> Result<Self, FormatError> {
        Self::encode(dense.num_rows(), dense.num_cols(), |first_row, first_col, elements| {
            let rows = first_row..(first_row + TILE_ROWS).min(dense.num_rows());
            let cols = first_col..(first_col + TILE_COLS).min(dense.num_cols());
            match dense.layout() {
                Layout::RowMajor => {
                    for row in rows {
                        let line = &dense.line(row)[cols.clone()];
                        for (to, &value) in elements[row - first_row].iter_mut().zip(line) {
                            *to = nonzero_bits(value);
                        }
                    }
                }
                Layout::ColumnMajor => {
                    for col in cols {
                        for (row, &value) in dense.line(col)[rows.clone()].iter().enumerate() {
                            elements[row][col - first_col] = nonzero_bits(value);
                        }
                    }
                }
            }
        })
    }

    /// The nonzeros of a CSR matrix; -0.0 is none, nor is a stored zero.
    ///
    /// # Errors
    /// As [`CsrView::check`], and as [`from_dense`](Self::from_dense).
    pub fn from_csr(csr: CsrView<'_, T>) -> Result<Self, FormatError> {
        csr.check()?;
        Self::encode(csr.num_rows, csr.num_cols, |first_row, first_col, elements| {
            for row in first_row..(first_row + TILE_ROWS).min(csr.num_rows) {
                let (columns, values) = csr.row(row);
                let begin = columns.partition_point(|&column| (column as usize) < first_col);
                let len = columns[begin..].partition_point(|&column| (column as usize) < first_col + TILE_COLS);
                for (&column, &value) in columns[begin..begin + len].iter().zip(&values[begin..]) {
                    elements[row - first_row][column as usize - first_col] = nonzero_bits(value);
                }
            }
        })
    }

    /// Encodes what `fill` writes into tiles of zeros, given their first row and column.
    fn encode(
        num_rows: usize,
        num_cols: usize,
        fill: impl Fn(usize, usize, &mut Elements) + Sync,
    ) -> Result<Self, FormatError> {
        check_sizes(num_rows, num_cols)?;
        let blocks: Vec<RowBlock> = (0..num_rows.div_ceil(TILE_ROWS))
            .into_par_iter()
            .map(|row_block| {
                let mut block = RowBlock { words: Vec::new(), ends: Vec::new(), residual: Vec::new() };
                for col_block in 0..num_cols.div_ceil(TILE_COLS) {
                    let (mut elements, mut left) = (Box::new([[0; TILE_COLS]; TILE_ROWS]), Vec::new());
                    fill(row_block * TILE_ROWS, col_block * TILE_COLS, &mut elements);
                    encode_tile(&elements, &mut block.words, &mut left);
                    block.ends.push(block.words.len());
                    block
                        .residual
                        .extend(left.iter().map(|&(row, col, bits)| (row, col_block * TILE_COLS + col, bits)));
                }
                block.residual.sort_unstable_by_key(|&(row, col, _)| (row, col));
                block
            })
            .collect();
        Self::join(num_rows, num_cols, blocks)
    }

    /// Puts rows of tiles behind one another.
    fn join(num_rows: usize, num_cols: usize, blocks: Vec<RowBlock>) -> Result<Self, FormatError> {
        let too_much = |_| FormatError::SizeOverflow { num_rows: num_rows as u64, num_cols: num_cols as u64 };
        let segments = num_segments(num_cols);
        let mut matrix = Self {
            num_rows,
            num_cols,
            tile_offsets: vec![0],
            words: Vec::with_capacity(blocks.iter().map(|block| block.words.len()).sum()),
            residual_offsets: vec![0; num_rows * segments + 1],
            residual: Vec::with_capacity(blocks.iter().map(|block| block.residual.len()).sum()),
            element: PhantomData,
        };
        u32::try_from(matrix.residual.capacity()).map_err(too_much)?;
        for (row_block, block) in blocks.into_iter().enumerate() {
            for end in block.ends {
                let offset = (matrix.words.len() + end) / UNIT_WORDS;
                matrix.tile_offsets.push(u32::try_from(offset).map_err(too_much)?);
            }
            matrix.words.extend_from_slice(&block.words);
            for (row, col, bits) in block.residual {
                matrix.residual_offsets[(row_block * TILE_ROWS + row) * segments + col / RESIDUAL_COLS + 1] += 1;
                matrix.residual.push((col % RESIDUAL_COLS) as u32 | u32::from(bits) << 16);
            }
        }
        let mut sum = 0;
        for count in &mut matrix.residual_offsets {
            sum += *count;
            *count = sum;
        }
        Ok(matrix)
    }

    /// A matrix of parts that were stored.
    ///
    /// # Errors
    /// [`FormatError::SizeTooLarge`], [`FormatError::Length`], [`FormatError::FirstOffset`], [`FormatError::OffsetsDecrease`],
    /// [`FormatError::LastOffset`], [`FormatError::Tile`], [`FormatError::IndexOutOfRange`] or [`FormatError::ColumnsNotIncreasing`] where
    /// an invariant does not hold.
    pub fn try_new(num_rows: usize, num_cols: usize, parts: ThreeLayerParts) -> Result<Self, FormatError> {
        check_sizes(num_rows, num_cols)?;
        let ThreeLayerParts { tile_offsets, words, residual_offsets, residual } = parts;
        let num_tiles = num_rows.div_ceil(TILE_ROWS) * num_cols.div_ceil(TILE_COLS);
        check_offsets("tile_offsets", num_tiles, &tile_offsets, words.len() / UNIT_WORDS)?;
        check_length("words", words.len() / UNIT_WORDS * UNIT_WORDS, words.len())?;
        let segments = num_segments(num_cols);
        check_offsets("residual_offsets", num_rows * segments, &residual_offsets, residual.len())?;
        let matrix = Self { num_rows, num_cols, tile_offsets, words, residual_offsets, residual, element: PhantomData };
        (0..num_tiles).into_par_iter().try_for_each(|tile| {
            check_tile(matrix.tile(tile)).map_err(|fault| FormatError::Tile { tile: tile as u64, fault })
        })?;
        matrix.check_residual()?;
        Ok(matrix)
    }

    /// Refuses columns of the residual that are out of range or out of order.
    fn check_residual(&self) -> Result<(), FormatError> {
        let segments = num_segments(self.num_cols);
        for (index, pair) in self.residual_offsets.windows(2).enumerate() {
            let first_col = index % segments * RESIDUAL_COLS;
            let mut previous = None;
            for entry in pair[0]..pair[1] {
                let found = (first_col + self.residual[entry as usize] as usize % RESIDUAL_COLS) as u32;
                if found as usize >= self.num_cols {
                    let (index, size, entry) = (u64::from(found), self.num_cols as u64, u64::from(entry));
                    return Err(FormatError::IndexOutOfRange { axis: super::Axis::Column, index, size, entry });
                }
                if let Some(previous) = previous.filter(|&previous| previous >= found) {
                    return Err(FormatError::ColumnsNotIncreasing { row: (index / segments) as u64, previous, found });
                }
                previous = Some(found);
            }
        }
        Ok(())
    }

    /// All elements, row-major, as they were, but for the sign of zeros.
    ///
    /// # Errors
    /// [`FormatError::OutOfMemory`] where they cannot be held.
    pub fn to_dense(&self) -> Result<Dense<T>, FormatError> {
        let mut data = zeroed_elements::<T>(&[self.num_rows, self.num_cols])?;
        let num_cols = self.num_cols;
        data.par_chunks_mut((TILE_ROWS * num_cols).max(1)).enumerate().for_each(|(row_block, rows)| {
            for col_block in 0..num_cols.div_ceil(TILE_COLS) {
                let decoded = decode_tile(self.tile(row_block * num_cols.div_ceil(TILE_COLS) + col_block));
                let cols = col_block * TILE_COLS..((col_block + 1) * TILE_COLS).min(num_cols);
                for (row, elements) in rows.chunks_mut(num_cols).zip(decoded.elements.iter()) {
                    for (to, &bits) in row[cols.clone()].iter_mut().zip(elements) {
                        *to = T::from_bits(bits);
                    }
                }
            }
        });
        for (row, col, bits) in self.residual_entries() {
            data[row * num_cols + col] = T::from_bits(bits);
        }
        Dense::from_vec(data, self.num_rows, self.num_cols, Layout::RowMajor)
    }

    /// Row, column and bits of each element of the residual.
    fn residual_entries(&self) -> impl Iterator<Item = (usize, usize, u16)> {
        let segments = num_segments(self.num_cols);
        self.residual_offsets.windows(2).enumerate().flat_map(move |(index, pair)| {
            self.residual[pair[0] as usize..pair[1] as usize].iter().map(move |&entry| {
                let col = index % segments * RESIDUAL_COLS + entry as usize % RESIDUAL_COLS;
                (index / segments, col, (entry >> 16) as u16)
            })
        })
    }

    /// Nonzeros by layer, and bytes.
    pub fn statistics(&self) -> ThreeLayerStatistics {
        let tiles = (0..self.num_tiles()).into_par_iter().map(|tile| {
            let decoded = decode_tile(self.tile(tile));
            let nonzeros = decoded.elements.as_flattened().iter().filter(|&&bits| bits != 0).count();
            [nonzeros - decoded.num_surplus, decoded.num_surplus, decoded.num_dummies].map(|count| count as u64)
        });
        let [num_first, num_surplus, num_dummies] =
            tiles.reduce(|| [0; 3], |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]]);
        let others = self.tile_offsets.len() + self.residual_offsets.len() + self.residual.len();
        ThreeLayerStatistics {
            num_elements: self.num_rows as u64 * self.num_cols as u64,
            num_first,
            num_surplus,
            num_dummies,
            num_residual: self.residual.len() as u64,
            tile_bytes: self.words.len() as u64 * 4,
            other_bytes: others as u64 * 4,
        }
    }
}

impl<T> ThreeLayer<T> {
    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Number of columns.
    pub fn num_cols(&self) -> usize {
        self.num_cols
    }

    /// Number of tiles.
    pub fn num_tiles(&self) -> usize {
        self.tile_offsets.len() - 1
    }

    /// Where tiles begin, in units of 16 bytes, and the last one ends; those of a row of tiles one after the other.
    pub fn tile_offsets(&self) -> &[u32] {
        &self.tile_offsets
    }

    /// The words of all tiles.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Where the residual of each row begins, for each 65,536 columns of it; and where the last one ends.
    pub fn residual_offsets(&self) -> &[u32] {
        &self.residual_offsets
    }

    /// The residual: the column among its 65,536 in the lower half of each word, the value's bits in the upper.
    pub fn residual(&self) -> &[u32] {
        &self.residual
    }

    /// The words of a tile.
    fn tile(&self, index: usize) -> &[u32] {
        let [begin, end] = [index, index + 1].map(|at| self.tile_offsets[at] as usize * UNIT_WORDS);
        &self.words[begin..end]
    }
}

/// The arrays of a [`ThreeLayer`] matrix, as its accessors of the same names give them.
#[derive(Clone, Debug, Default)]
pub struct ThreeLayerParts {
    /// Where tiles begin.
    pub tile_offsets: Vec<u32>,
    /// The words of all tiles.
    pub words: Vec<u32>,
    /// Where the residual of each row begins.
    pub residual_offsets: Vec<u32>,
    /// The residual.
    pub residual: Vec<u32>,
}

/// Offsets that a row of the residual has: one for each 65,536 columns.
fn num_segments(num_cols: usize) -> usize {
    num_cols.div_ceil(RESIDUAL_COLS).max(1)
}

/// The bits of a value, 0 of either zero.
fn nonzero_bits<T: HalfElement>(value: T) -> u16 {
    let bits = value.to_bits();
    if bits & 0x7fff == 0 { 0 } else { bits }
}

/// Refuses offsets that do not begin with 0, decrease, or do not end with `last`.
fn check_offsets(array: &'static str, len: usize, offsets: &[u32], last: usize) -> Result<(), FormatError> {
    check_length(array, len + 1, offsets.len())?;
    if offsets[0] != 0 {
        return Err(FormatError::FirstOffset { found: u64::from(offsets[0]) });
    }
    for (row, pair) in offsets.windows(2).enumerate() {
        if pair[1] < pair[0] {
            let [begin, end] = [pair[0], pair[1]].map(u64::from);
            return Err(FormatError::OffsetsDecrease { row: row as u64, begin, end });
        }
    }
    match offsets.last() {
        Some(&found) if found as usize != last => {
            Err(FormatError::LastOffset { expected: last as u64, found: u64::from(found) })
        }
        _ => Ok(()),
    }
}
