//! C = alpha A B + beta C with A in CSR: a tile of a row of C stays in registers while the row's entries pass.

use rayon::prelude::*;

use super::bands::{BandLines, RowBand, balanced, cut};
use super::panel::Panel;
use super::scale::Scale;
use super::simd::{InstructionSet, Path, Vectorised};
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
    path: Path,
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
    let run = |band| path.run(Band { scale, a, b: &panel.data, b_stride: panel.row_stride, c: band });
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

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::formats::{Csr, Dense, Layout};
    use crate::generate::uniform;
    use crate::reference::{self, naive};

    fn check<T: Element, U: Element>(path: Path, num_cols: usize, layout: Layout) {
        let a: Csr<T> = uniform(60, 90, 0.2, 1).cast();
        let b = Dense::from_fn(90, num_cols, layout, |i, j| T::from_f64(((7 * i + 3 * j) % 29) as f64 / 8.0 - 1.5));
        let old = Dense::from_fn(60, num_cols, layout, |i, j| U::from_f64((i + j) as f64 / 64.0));
        let (alpha, beta) = (1.5, -0.5);
        let exact = reference::spmm(alpha, &a.view(), b.view(), beta, old.view()).expect("the shapes agree");
        let unit = naive::Unit::Core;
        let tolerance = naive::tolerance(unit, alpha, &a.view(), b.view(), beta, old.view(), &exact);
        let mut c = old.clone();
        spmm(path, Scale::new(alpha, beta), a.view(), b.view(), &mut c.view_mut());
        let report = exact.compare(c.view()).expect("the same shape");
        let verdict = tolerance.expect("the shapes agree").judge(&report);
        assert!(verdict.is_accepted(), "{path:?}, {} -> {}, {num_cols}, {layout:?}: {verdict}", T::DTYPE, U::DTYPE);
    }

    #[test]
    fn every_path_of_this_machine_is_right() {
        assert!(Path::BASELINE.is_supported());
        for &path in Path::ALL.iter().filter(|path| path.is_supported()) {
            // Less than a tile, one of each width, and all of them together in more than a panel.
            for num_cols in [1, 15, 16, 64, 128, PANEL_COLS + 128 + 64 + 16 + 3] {
                for layout in [Layout::RowMajor, Layout::ColumnMajor] {
                    check::<bf16, bf16>(path, num_cols, layout);
                    check::<f16, f32>(path, num_cols, layout);
                    check::<f32, f32>(path, num_cols, layout);
                    check::<f64, f64>(path, num_cols, layout);
                }
            }
        }
    }
}
