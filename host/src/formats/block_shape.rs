//! The shapes of blocks on offer, and how well a shape fits a matrix.

use core::fmt;
use core::str::FromStr;

use rayon::prelude::*;

use super::rows::row_ranges;
use super::{CsrView, FormatError};
use crate::element::Element;

/// The shape of a block, at run time: rows 64 or 128, columns 16, 32, 64 or 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockShape {
    /// Rows of a block.
    pub rows: usize,
    /// Columns of a block.
    pub cols: usize,
}

impl BlockShape {
    /// Every shape on offer.
    pub const ALL: [Self; 8] = [
        Self { rows: 64, cols: 16 },
        Self { rows: 64, cols: 32 },
        Self { rows: 64, cols: 64 },
        Self { rows: 64, cols: 128 },
        Self { rows: 128, cols: 16 },
        Self { rows: 128, cols: 32 },
        Self { rows: 128, cols: 64 },
        Self { rows: 128, cols: 128 },
    ];

    /// Whether [`ALL`](Self::ALL) holds this shape.
    pub const fn is_offered(self) -> bool {
        matches!(self.rows, 64 | 128) && matches!(self.cols, 16 | 32 | 64 | 128)
    }

    /// A shape on offer.
    ///
    /// # Errors
    /// [`FormatError::BlockShapeNotOffered`] for every other shape.
    pub const fn try_new(rows: usize, cols: usize) -> Result<Self, FormatError> {
        let shape = Self { rows, cols };
        if shape.is_offered() {
            Ok(shape)
        } else {
            Err(FormatError::BlockShapeNotOffered { rows: rows as u64, cols: cols as u64 })
        }
    }

    /// Reads `ROWSxCOLS`, such as `128x64`.
    ///
    /// # Errors
    /// [`FormatError::BlockShapeSyntax`] where `text` is not two numbers around an `x`;
    /// [`FormatError::BlockShapeNotOffered`] where they are no shape on offer.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let (rows, cols) = text.split_once(['x', 'X']).ok_or(FormatError::BlockShapeSyntax)?;
        let side = |text: &str| text.trim().parse::<usize>().map_err(|_| FormatError::BlockShapeSyntax);
        Self::try_new(side(rows)?, side(cols)?)
    }

    /// Elements of one block.
    pub const fn num_elements(self) -> usize {
        self.rows * self.cols
    }
}

impl FromStr for BlockShape {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        Self::parse(text)
    }
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
    /// Entries over stored elements, 0 to 1; 0 where nothing is stored.
    pub fill: f64,
    /// Stored blocks over all blocks, 0 to 1; 0 where the matrix has no element.
    pub block_density: f64,
}

impl FillStatistics {
    /// What a matrix would be in blocks of `shape`, without building it: one pass over its column indices.
    ///
    /// # Panics
    /// Where a side of `shape` is 0.
    pub fn of<T: Element>(matrix: CsrView<'_, T>, shape: BlockShape) -> Self {
        let groups = row_groups(matrix.row_offsets, shape.rows);
        let num_blocks = groups
            .into_par_iter()
            .map(|group| {
                let mut columns = Vec::new();
                let mut blocks = 0;
                for block_row in group {
                    block_columns(matrix, block_row, shape, &mut columns);
                    blocks += columns.len() as u64;
                }
                blocks
            })
            .sum();
        Self::from_counts(num_blocks, matrix.num_entries() as u64, matrix.num_rows, matrix.num_cols, shape)
    }

    /// The two ratios, from counts.
    pub(super) fn from_counts(
        num_blocks: u64,
        num_entries: u64,
        num_rows: usize,
        num_cols: usize,
        shape: BlockShape,
    ) -> Self {
        let ratio = |part: u64, whole: f64| if whole == 0.0 { 0.0 } else { part as f64 / whole };
        let all_blocks = num_rows.div_ceil(shape.rows) as f64 * num_cols.div_ceil(shape.cols) as f64;
        Self {
            num_blocks,
            num_entries,
            fill: ratio(num_entries, num_blocks as f64 * shape.num_elements() as f64),
            block_density: ratio(num_blocks, all_blocks),
        }
    }
}

/// Ranges of block rows, of like work.
pub(super) fn row_groups(row_offsets: &[u64], block_rows: usize) -> Vec<core::ops::Range<usize>> {
    let num_rows = row_offsets.len() - 1;
    let borders: Vec<u64> = row_offsets
        .iter()
        .copied()
        .step_by(block_rows)
        .chain((!num_rows.is_multiple_of(block_rows)).then(|| row_offsets[num_rows]))
        .collect();
    row_ranges(&borders)
}

/// The block columns that one block row touches, ascending, into `columns`.
pub(super) fn block_columns<T: Element>(
    matrix: CsrView<'_, T>,
    block_row: usize,
    shape: BlockShape,
    columns: &mut Vec<u32>,
) {
    columns.clear();
    let begin = block_row * shape.rows;
    for row in begin..(begin + shape.rows).min(matrix.num_rows) {
        let first = columns.len();
        for &col in matrix.row(row).0 {
            let block_col = (col as usize / shape.cols) as u32;
            if columns.len() == first || columns[columns.len() - 1] != block_col {
                columns.push(block_col);
            }
        }
    }
    columns.sort_unstable();
    columns.dedup();
}
