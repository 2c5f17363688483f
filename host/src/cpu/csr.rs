//! C = alpha A B + beta C with A in CSR: a tile of a row of C stays in registers while the row's entries pass.

use rayon::prelude::*;

use super::bands::{BandLines, RowBand, balanced, cut};
use super::panel::Panel;
use super::scale::Scale;
use super::simd::{InstructionSet, Vectorised, run_vectorised};
use crate::element::{Accumulator, Element};
use crate::formats::{CsrView, DenseView, DenseViewMut};

/// Columns of C that a band computes before it goes on to the next: as many columns of B stay in the cache.
const PANEL_COLS: usize = 256;
/// Columns of the narrowest tile of C.
const NARROW_TILE: usize = 16;
/// Multiplications under which waking another thread costs more than it saves.
const SEQUENTIAL_WORK: u128 = 1 << 20;

/// C = alpha A B + beta C; the shapes agree, and no size of C is zero.
pub(super) fn spmm<T: Element, U: Element>(
    scale: Scale<T::Accumulator>,
    a: CsrView<'_, T>,
    b: DenseView<'_, T>,
    c: &mut DenseViewMut<'_, U>,
) {
    let work = a.values.len() as u128 * b.num_cols() as u128;
    let num_threads = rayon::current_num_threads();
    let num_bands = if num_threads == 1 || work < SEQUENTIAL_WORK { 1 } else { 4 * num_threads };
    let panel = Panel::row_major(b);
    let bands = cut(c, &balanced(a.row_offsets, num_bands));
    let run = |band| run_vectorised(Band { scale, a, b: &panel.data, b_stride: panel.row_stride, c: band });
    if bands.len() == 1 {
        bands.into_iter().for_each(run);
    } else {
        bands.into_par_iter().for_each(run);
    }
}

/// The rows of C that one thread computes.
struct Band<'a, T: Element, U> {
    scale: Scale<T::Accumulator>,
    a: CsrView<'a, T>,
    /// Row-major, `b_stride` elements from row to row.
    b: &'a [T::Accumulator],
    b_stride: usize,
    c: RowBand<'a, U>,
}

impl<T: Element, U: Element> Vectorised for Band<'_, T, U> {
    #[inline(always)]
    fn run<I: InstructionSet>(mut self) {
        let num_cols = match &self.c.lines {
            BandLines::Rows(rows) => rows[0].len(),
            BandLines::Columns(columns) => columns.len(),
        };
        let mut first = 0;
        while first < num_cols {
            let end = num_cols.min(first + PANEL_COLS);
            for at in 0..self.c.num_rows {
                self.row::<I>(at, first, end);
            }
            first = end;
        }
    }
}

impl<T: Element, U: Element> Band<'_, T, U> {
    /// Columns `first..end` of row `at` of the band.
    #[inline(always)]
    fn row<I: InstructionSet>(&mut self, at: usize, mut first: usize, end: usize) {
        let row = self.c.first_row + at;
        let entries = self.a.row_offsets[row] as usize..self.a.row_offsets[row + 1] as usize;
        let (cols, values) = (&self.a.col_indices[entries.clone()], &self.a.values[entries]);
        // The wider the tile, the fewer times the row's entries are read, and the longer the run through a row of B.
        first = self.tiles::<I, 128>(at, cols, values, first, end);
        first = self.tiles::<I, 64>(at, cols, values, first, end);
        first = self.tiles::<I, NARROW_TILE>(at, cols, values, first, end);
        if first < end {
            self.rest::<I>(at, cols, values, first, end);
        }
    }

    /// As many whole tiles as there are, if a tile fits into half of the registers. Returns the first column not done.
    #[inline(always)]
    fn tiles<I: InstructionSet, const TILE: usize>(
        &mut self,
        at: usize,
        cols: &[u32],
        values: &[T],
        mut first: usize,
        end: usize,
    ) -> usize {
        let fits = 2 * TILE * size_of::<T::Accumulator>() <= I::REGISTER_FILE_BYTES;
        while (fits || TILE == NARROW_TILE) && end - first >= TILE {
            self.tile::<I, TILE>(at, cols, values, first);
            first += TILE;
        }
        first
    }

    /// Columns `first..first + TILE` of row `at` of the band.
    #[inline(always)]
    fn tile<I: InstructionSet, const TILE: usize>(&mut self, at: usize, cols: &[u32], values: &[T], first: usize) {
        let mut sums = [T::Accumulator::ZERO; TILE];
        for (&col, &value) in cols.iter().zip(values) {
            let value = T::Accumulator::widen(value);
            let b = &self.b[col as usize * self.b_stride + first..][..TILE];
            for j in 0..TILE {
                sums[j] = I::multiply_add(value, b[j], sums[j]);
            }
        }
        self.store(at, first, &sums);
    }

    /// Fewer columns than a narrow tile has.
    #[inline(always)]
    fn rest<I: InstructionSet>(&mut self, at: usize, cols: &[u32], values: &[T], first: usize, end: usize) {
        let mut sums = [T::Accumulator::ZERO; NARROW_TILE];
        let sums = &mut sums[..end - first];
        for (&col, &value) in cols.iter().zip(values) {
            let value = T::Accumulator::widen(value);
            let b = &self.b[col as usize * self.b_stride + first..][..sums.len()];
            for (sum, &factor) in sums.iter_mut().zip(b) {
                *sum = I::multiply_add(value, factor, *sum);
            }
        }
        self.store(at, first, sums);
    }

    /// Hands sums on to C.
    #[inline(always)]
    fn store(&mut self, at: usize, first: usize, sums: &[T::Accumulator]) {
        match &mut self.c.lines {
            BandLines::Rows(rows) => self.scale.apply(sums, &mut rows[at][first..][..sums.len()]),
            BandLines::Columns(columns) => {
                for (&sum, column) in sums.iter().zip(&mut columns[first..]) {
                    column[at] = self.scale.combined(sum, column[at]);
                }
            }
        }
    }
}
