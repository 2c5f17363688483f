//! The two orders of C, as the packed way of the [store](super) goes through them: which part of a line a lane
//! writes to shared memory, and which it reads back.

use hopper_std::global::GlobalArray;
use hopper_std::ptx::matrix::{stmatrix_x4, stmatrix_x4_trans};
use hopper_std::ptx::warp::bar_warp_sync;
use hopper_std::sm90::NamedBarrier;

use super::{Eight, Meeting, Output, Place};

/// An order of C, as the fast way goes through it. Units are eight elements: 16 bytes.
pub(super) trait Order {
    /// Units of a line of the part of `cols` columns that is staged at once.
    fn units(cols: u32) -> u32;
    /// Line and unit of the row that this lane addresses: row `lane % 8` of matrix `lane / 8` of the four that two blocks of
    /// eight columns, `block` and the next, have in this warp's 16 rows: upper, lower, upper, lower.
    fn matrix_row(warp: u32, lane: u32, block: u32) -> (u32, u32);
    /// Stores the four matrices.
    ///
    /// # Safety
    /// All lanes call it together, each with the address of its row.
    unsafe fn store_matrices(address: u32, matrices: [u32; 4]);
    /// Waits until the lines that this thread reads are written, or those that it writes are read.
    ///
    /// # Safety
    /// All warps of the consumer call it together.
    unsafe fn meet(meeting: Meeting);
    /// The first line that this thread reads back, how many share the reading, and its number among them.
    fn readers(warp: u32, lane: u32) -> (u32, u32, u32);
    /// Lines that those share.
    fn lines(cols: u32) -> u32;
    /// Where eight elements of line `line` from unit `unit` on are, the part beginning at column `col`, in the line of C of the same number.
    fn eight(output: &Output, place: Place, col: u32, line: u32, unit: u32) -> Eight;
    /// The order of the lines, where the output has one.
    fn line_order(output: &Output) -> GlobalArray<u32>;
}

/// Row-major: a warp's 16 rows are its own.
pub(super) struct Rows;

impl Order for Rows {
    #[inline(always)]
    fn units(cols: u32) -> u32 {
        cols / 8
    }

    #[inline(always)]
    fn matrix_row(warp: u32, lane: u32, block: u32) -> (u32, u32) {
        (warp * 16 + lane / 8 % 2 * 8 + lane % 8, block + lane / 16)
    }

    #[inline(always)]
    unsafe fn store_matrices(address: u32, matrices: [u32; 4]) {
        // SAFETY: the caller's promise.
        unsafe { stmatrix_x4(address, matrices) }
    }

    #[inline(always)]
    unsafe fn meet(_: Meeting) {
        // SAFETY: the caller's promise.
        unsafe { bar_warp_sync() }
    }

    #[inline(always)]
    fn readers(warp: u32, lane: u32) -> (u32, u32, u32) {
        (warp * 16, 32, lane)
    }

    #[inline(always)]
    fn lines(_: u32) -> u32 {
        16
    }

    #[inline(always)]
    fn eight(output: &Output, place: Place, col: u32, line: u32, unit: u32) -> Eight {
        Eight {
            line: place.row + line,
            num_lines: output.num_rows,
            line_of_c: place.row + line,
            first: col + unit * 8,
            length: output.num_cols,
            element_order: GlobalArray::null(),
        }
    }

    #[inline(always)]
    fn line_order(output: &Output) -> GlobalArray<u32> {
        output.row_order
    }
}

/// Column-major: a column of 64 rows comes from all four warps.
pub(super) struct Cols;

impl Order for Cols {
    #[inline(always)]
    fn units(_: u32) -> u32 {
        8
    }

    #[inline(always)]
    fn matrix_row(warp: u32, lane: u32, block: u32) -> (u32, u32) {
        ((block + lane / 16) * 8 + lane % 8, warp * 2 + lane / 8 % 2)
    }

    #[inline(always)]
    unsafe fn store_matrices(address: u32, matrices: [u32; 4]) {
        // SAFETY: the caller's promise.
        unsafe { stmatrix_x4_trans(address, matrices) }
    }

    #[inline(always)]
    unsafe fn meet(meeting: Meeting) {
        // SAFETY: the caller's promise.
        unsafe { meeting.sync() }
    }

    #[inline(always)]
    fn readers(warp: u32, lane: u32) -> (u32, u32, u32) {
        (0, 128, warp * 32 + lane)
    }

    #[inline(always)]
    fn lines(cols: u32) -> u32 {
        cols
    }

    #[inline(always)]
    fn eight(output: &Output, place: Place, col: u32, line: u32, unit: u32) -> Eight {
        Eight {
            line: col + line,
            num_lines: output.num_cols,
            line_of_c: col + line,
            first: place.row + unit * 8,
            length: output.num_rows,
            element_order: GlobalArray::null(),
        }
    }

    #[inline(always)]
    fn line_order(output: &Output) -> GlobalArray<u32> {
        output.col_order
    }
}

/// The offset of a unit in the staged part, in bytes: the units of each 128 bytes are permuted by their line, so that
/// eight lines' units of one number, or eight neighbours of one line, lie in different banks.
#[inline(always)]
pub(super) const fn swizzled_unit(line: u32, unit: u32, units: u32) -> u32 {
    let turn = if units >= 8 { line % 8 } else { line / (8 / units) % units };
    (line * units + (unit ^ turn)) * 16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each element of a part is staged once, and read back as the line and unit it belongs to.
    fn parts_are_whole<O: Order>(cols: u32) {
        let units = O::units(cols);
        let mut written = vec![None; (64 * cols / 8) as usize];
        for (warp, lane) in (0..4).flat_map(|warp| (0..32).map(move |lane| (warp, lane))) {
            for block in (0..cols / 8).step_by(2) {
                let (line, unit) = O::matrix_row(warp, lane, block);
                let place = &mut written[(swizzled_unit(line, unit, units) / 16) as usize];
                assert_eq!(*place, None, "two rows of matrices in one place");
                *place = Some((line, unit));
            }
        }
        let mut reads = 0;
        for (warp, lane) in (0..4).flat_map(|warp| (0..32).map(move |lane| (warp, lane))) {
            let (first_line, num_readers, reader) = O::readers(warp, lane);
            for index in (reader..O::lines(cols) * units).step_by(num_readers as usize) {
                let (line, unit) = (first_line + index / units, index % units);
                assert_eq!(written[(swizzled_unit(line, unit, units) / 16) as usize], Some((line, unit)));
                reads += 1;
            }
        }
        assert_eq!(reads, written.len());
    }

    #[test]
    fn staged_parts_come_back() {
        for cols in [16, 32, 64, 128] {
            parts_are_whole::<Rows>(cols);
            parts_are_whole::<Cols>(cols);
        }
    }

    /// The eight rows of a matrix, written together, lie in different banks; so do eight units read together.
    #[test]
    fn no_two_units_collide() {
        for units in [2, 4, 8, 16] {
            let bank = |line, unit| swizzled_unit(line, unit, units) / 16 % 8;
            for first in 0..8 {
                let mut written: Vec<_> = (0..8).map(|row| bank(first * 8 + row, first % units)).collect();
                let mut read: Vec<_> = (0..8)
                    .map(|at| (first * 8 + at) / units)
                    .zip(0..8)
                    .map(|(line, at)| bank(line, (first * 8 + at) % units))
                    .collect();
                written.sort_unstable();
                read.sort_unstable();
                assert_eq!(written, [0, 1, 2, 3, 4, 5, 6, 7]);
                assert_eq!(read, [0, 1, 2, 3, 4, 5, 6, 7]);
            }
        }
    }
}
