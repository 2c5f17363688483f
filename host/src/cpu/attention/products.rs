//! Small dense products: a few rows of the result in registers while the depth passes.

use crate::cpu::simd::InstructionSet;

/// Columns of results and of right factors come in multiples of it.
pub(super) const LANES: usize = 16;

/// Rows of the result that share what is loaded of the right factor.
const GROUP: usize = 4;

/// The left factor: element (row, step) is at `row * row_stride + step * step_stride`.
#[derive(Clone, Copy)]
pub(super) struct Left<'a> {
    pub(super) data: &'a [f32],
    pub(super) row_stride: usize,
    pub(super) step_stride: usize,
}

/// A product of `num_rows` x `depth` by `depth` x `width`. Lines of the right factor and of the result are `width` long.
#[derive(Clone, Copy)]
pub(super) struct Product<'a> {
    pub(super) left: Left<'a>,
    pub(super) right: &'a [f32],
    pub(super) num_rows: usize,
    pub(super) depth: usize,
    pub(super) width: usize,
}

impl Product<'_> {
    /// Adds the product to `sums`, each element in the order of the depth.
    #[inline(always)]
    pub(super) fn add_to<I: InstructionSet>(self, sums: &mut [f32]) {
        let mut row = 0;
        while row + GROUP <= self.num_rows {
            self.rows::<I, GROUP>(sums, row);
            row += GROUP;
        }
        while row < self.num_rows {
            self.rows::<I, 1>(sums, row);
            row += 1;
        }
    }

    #[inline(always)]
    fn rows<I: InstructionSet, const R: usize>(self, sums: &mut [f32], row: usize) {
        let mut first = 0;
        // Half of the registers hold sums.
        if 2 * 4 * GROUP * size_of::<f32>() * LANES <= I::REGISTER_FILE_BYTES {
            while first + 4 * LANES <= self.width {
                self.tile::<I, R, { 4 * LANES }>(sums, row, first);
                first += 4 * LANES;
            }
        }
        while first < self.width {
            self.tile::<I, R, LANES>(sums, row, first);
            first += LANES;
        }
    }

    #[inline(always)]
    fn tile<I: InstructionSet, const R: usize, const COLS: usize>(self, sums: &mut [f32], row: usize, first: usize) {
        let Self { left: Left { data, row_stride, step_stride }, right, depth, width, .. } = self;
        let mut tile = [[0f32; COLS]; R];
        for (at, tile) in tile.iter_mut().enumerate() {
            tile.copy_from_slice(&sums[(row + at) * width + first..][..COLS]);
        }
        for step in 0..depth {
            let right = &right[step * width + first..][..COLS];
            for (at, tile) in tile.iter_mut().enumerate() {
                let factor = data[(row + at) * row_stride + step * step_stride];
                for col in 0..COLS {
                    tile[col] = I::multiply_add(factor, right[col], tile[col]);
                }
            }
        }
        for (at, tile) in tile.iter().enumerate() {
            sums[(row + at) * width + first..][..COLS].copy_from_slice(tile);
        }
    }
}
