//! Eights: what a lane stores at once of a line, and which line of C that is.

use hopper_std::global::GlobalArray;
use hopper_std::sm90::AccumulatorFragment;

use super::{Output, Place};

/// What stands at place `place` of an order; where there is none, each stands at its own.
///
/// # Safety
/// Where there is an order it has this place.
#[inline(always)]
pub(crate) unsafe fn ordered(order: GlobalArray<u32>, place: u32) -> u32 {
    // SAFETY: the caller's promise.
    if order.is_null() { place } else { unsafe { order.get(place) } }
}

/// The same of a place that may be beyond the `length` of them: it stays where it is, for nobody.
///
/// # Safety
/// Where there is an order it has `length` places.
#[inline(always)]
unsafe fn ordered_line(order: GlobalArray<u32>, place: u32, length: u32) -> u32 {
    // SAFETY: the caller's promise.
    if place < length { unsafe { ordered(order, place) } } else { place }
}

/// Eight neighbours of a line of the sums: `(line, first)`, how many lines and elements of a line there are, the line of C that it is,
/// and the order in which that has the elements.
#[derive(Clone, Copy)]
pub(super) struct Eight {
    pub(super) line: u32,
    pub(super) num_lines: u32,
    pub(super) line_of_c: u32,
    pub(super) first: u32,
    pub(super) length: u32,
    pub(super) element_order: GlobalArray<u32>,
}

impl Eight {
    /// The position of the line's element 0, in elements from the base of C; in C or not.
    #[inline(always)]
    pub(super) fn line_start(self, output: &Output) -> u64 {
        u64::from(self.line_of_c) * output.leading_dimension
    }

    /// The position of the first one, where elements have no order; in C or not.
    #[inline(always)]
    pub(super) fn position(self, output: &Output) -> usize {
        (self.line_start(output) + u64::from(self.first)) as usize
    }

    /// Its address, of 16 bits; in C or not.
    #[inline(always)]
    pub(super) fn address(self, output: &Output) -> *mut u8 {
        output.c.wrapping_add(self.position(output) * 2)
    }

    /// Where in the line of C each of the eight is; of those that are not in C anything.
    #[inline(always)]
    pub(super) fn elements(self) -> [u32; 8] {
        let first = self.first;
        let places = [first, first + 1, first + 2, first + 3, first + 4, first + 5, first + 6, first + 7];
        if self.element_order.is_null() {
            return places;
        }
        // SAFETY: an order has a place for each element of a line.
        places.map(|place| unsafe { ordered_line(self.element_order, place, self.length) })
    }

    /// How many of the eight are in C.
    #[inline(always)]
    pub(super) fn count(self) -> u32 {
        if self.line >= self.num_lines || self.first >= self.length {
            return 0;
        }
        let left = self.length - self.first;
        if left < 8 { left } else { 8 }
    }
}

/// Which lines of C those of the sums are.
pub(super) trait Lines {
    /// The eight in its line of C; `order` is that of all lines.
    fn of_c(eight: Eight, order: GlobalArray<u32>) -> Eight;
}

/// Those of the same number, without a look at an order.
pub(super) struct InPlace;

impl Lines for InPlace {
    #[inline(always)]
    fn of_c(eight: Eight, _: GlobalArray<u32>) -> Eight {
        eight
    }
}

/// Those that an order names.
pub(super) struct Reordered;

impl Lines for Reordered {
    #[inline(always)]
    fn of_c(eight: Eight, order: GlobalArray<u32>) -> Eight {
        // SAFETY: an order has a place for each line.
        Eight { line_of_c: unsafe { ordered_line(order, eight.line, eight.num_lines) }, ..eight }
    }
}

/// The eight that this lane has of 16 columns from `col` on, after transposition and exchange: an upper or lower eight
/// rows of one of two columns.
#[inline(always)]
pub(super) fn eight_of_col(output: &Output, place: Place, lane: u32, columns: u32) -> Eight {
    let quad = lane % 4;
    let col = place.col + columns + quad / 2 * 8 + lane / 4;
    Eight {
        line: col,
        num_lines: output.num_cols,
        // SAFETY: an order has a place for each column.
        line_of_c: unsafe { ordered_line(output.col_order, col, output.num_cols) },
        first: place.row + place.warp * 16 + quad % 2 * 8,
        length: output.num_rows,
        element_order: output.row_order,
    }
}

/// The first eight that this lane has of 16 columns of a row-major C, after the exchange of `[upper, upper, lower, lower]`.
#[inline(always)]
pub(super) fn eight_of_two_rows(output: &Output, place: Place, lane: u32) -> Eight {
    let quad = lane % 4;
    let row = place.row + AccumulatorFragment::row(place.warp, lane) + quad / 2 * 8;
    Eight {
        line: row,
        num_lines: output.num_rows,
        // SAFETY: an order has a place for each row.
        line_of_c: unsafe { ordered_line(output.row_order, row, output.num_rows) },
        first: place.col + quad % 2 * 8,
        length: output.num_cols,
        element_order: output.col_order,
    }
}
