//! C = alpha A B + beta C with A in BCSR: a dense product for each block, added up in the accumulator's type.

use gemm::{Parallelism, gemm};
use rayon::prelude::*;

use super::bands::{BandLines, RowBand, cut};
use super::panel::{Panel, widen};
use super::scale::Scale;
use crate::element::{Accumulator, Element};
use crate::formats::{BcsrView, DenseView, DenseViewMut};

/// Columns of C that are added up at a time: 128 rows of so many f32 fill 256 KiB.
const TILE_COLS: usize = 512;

/// C = alpha A B + beta C; the shapes agree, and no size of C is zero.
pub(super) fn spmm<T: Element, U: Element>(
    scale: Scale<T::Accumulator>,
    a: BcsrView<'_, T>,
    b: DenseView<'_, T>,
    c: &mut DenseViewMut<'_, U>,
) {
    let panel = Panel::new(b);
    let num_cols = b.num_cols();
    let boundaries: Vec<usize> = (0..a.num_rows).step_by(a.block.rows).chain([a.num_rows]).collect();
    // One band is one block row; rayon hands out the next one to whoever is free, which balances uneven rows.
    cut(c, &boundaries).into_par_iter().for_each(|band| block_row(scale, a, &panel, num_cols, band));
}

/// The rows of C that belong to one block row of A.
fn block_row<T: Element, U: Element>(
    scale: Scale<T::Accumulator>,
    a: BcsrView<'_, T>,
    b: &Panel<'_, T::Accumulator>,
    num_cols: usize,
    mut c: RowBand<'_, U>,
) {
    let index = c.first_row / a.block.rows;
    let blocks = a.row_offsets[index] as usize..a.row_offsets[index + 1] as usize;
    let block_len = a.block.rows * a.block.cols;
    let mut block = vec![T::Accumulator::ZERO; block_len];
    let mut sums = vec![T::Accumulator::ZERO; c.num_rows * num_cols.min(TILE_COLS)];
    for first in (0..num_cols).step_by(TILE_COLS) {
        let tile_cols = TILE_COLS.min(num_cols - first);
        let sums = &mut sums[..c.num_rows * tile_cols];
        sums.fill(T::Accumulator::ZERO);
        // The sums lie as C does, so that handing them on is contiguous.
        let (row_stride, col_stride) = match c.lines {
            BandLines::Rows(_) => (tile_cols, 1),
            BandLines::Columns(_) => (1, c.num_rows),
        };
        for stored in blocks.clone() {
            let first_col = a.col_indices[stored] as usize * a.block.cols;
            widen(&a.values[stored * block_len..][..block_len], &mut block);
            let product = Product {
                num_rows: c.num_rows,
                num_cols: tile_cols,
                depth: a.block.cols.min(a.num_cols - first_col),
                left: Strided { data: &block, row_stride: a.block.cols, col_stride: 1 },
                right: Strided {
                    data: &b.data[first_col * b.row_stride + first * b.col_stride..],
                    row_stride: b.row_stride,
                    col_stride: b.col_stride,
                },
            };
            product.add_to(sums, row_stride, col_stride);
        }
        match &mut c.lines {
            BandLines::Rows(rows) => {
                for (sums, row) in sums.chunks_exact(tile_cols).zip(rows) {
                    scale.apply(sums, &mut row[first..][..tile_cols]);
                }
            }
            BandLines::Columns(columns) => {
                for (sums, column) in sums.chunks_exact(c.num_rows).zip(&mut columns[first..]) {
                    scale.apply(sums, column);
                }
            }
        }
    }
}

/// A dense matrix whose element (i, j) is at `i * row_stride + j * col_stride`.
struct Strided<'a, A> {
    data: &'a [A],
    row_stride: usize,
    col_stride: usize,
}

/// A dense product.
struct Product<'a, A> {
    num_rows: usize,
    num_cols: usize,
    depth: usize,
    left: Strided<'a, A>,
    right: Strided<'a, A>,
}

/// The length of the slice that a `num_rows` x `num_cols` matrix with these strides reaches into; no size is zero.
fn reach(num_rows: usize, num_cols: usize, row_stride: usize, col_stride: usize) -> usize {
    (num_rows - 1) * row_stride + (num_cols - 1) * col_stride + 1
}

impl<A: Accumulator> Product<'_, A> {
    /// Adds the product to the matrix in `sums`. No size is zero.
    fn add_to(&self, sums: &mut [A], row_stride: usize, col_stride: usize) {
        let Self { num_rows, num_cols, depth, left, right } = self;
        assert!(reach(*num_rows, *num_cols, row_stride, col_stride) <= sums.len());
        assert!(reach(*num_rows, *depth, left.row_stride, left.col_stride) <= left.data.len());
        assert!(reach(*depth, *num_cols, right.row_stride, right.col_stride) <= right.data.len());
        let one = A::from_f64(1.0);
        // SAFETY: gemm reads and writes element (i, j) of each matrix at its pointer plus i times its row stride plus
        // j times its column stride. The assertions above put the last of these inside of the slices; so a stride can
        // only be too large for isize along an axis of one element, where it is multiplied by zero. `sums` is borrowed
        // for writing, so it overlaps neither factor; its strides are (columns, 1) or (1, rows), so no two of its
        // elements share a place.
        unsafe {
            gemm(
                *num_rows,
                *num_cols,
                *depth,
                sums.as_mut_ptr(),
                col_stride as isize,
                row_stride as isize,
                true,
                left.data.as_ptr(),
                left.col_stride as isize,
                left.row_stride as isize,
                right.data.as_ptr(),
                right.col_stride as isize,
                right.row_stride as isize,
                one,
                one,
                false,
                false,
                false,
                Parallelism::None,
            );
        }
    }
}
