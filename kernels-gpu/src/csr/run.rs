//! Neighbouring short rows of A, whose entries one team reads as one sequence.
//!
//! ```text
//!   entries    | r r r | s | t t t t t | v v |          u has none; groups of four are aligned in the arrays of A
//!   groups   |       .       .       .       |
//!              one group's rows of B are loaded together, whatever rows of A they belong to
//! ```
//!
//! A row of three entries alone takes as long as its loads wait for one another: its offsets, its column indices, its rows of B.
//! In a sequence only the last of these is waited for, once for four entries.

use hopper_std::hint::opaque;

use super::config::{Arguments, GROUP};
use super::element::Element;
use super::reader::Reader;
use super::row::{Entries, add_group};

/// Rows `row` to `end` of A, some of which may be long.
#[derive(Clone, Copy)]
pub struct Run {
    /// The first row that is left.
    pub row: u32,
    /// Behind the last.
    pub end: u32,
}

impl Run {
    /// Computes the thread's columns of rows from the first one on, and hands each to `store`, up to the end or the first long
    /// row, which is left out.
    ///
    /// # Safety
    /// The launch contract of [`Arguments`], with runs; there are these rows, one at least, and `reader` is for columns of B.
    #[inline(always)]
    pub unsafe fn multiply<E: Element, R: Reader<E, COLS>, const COLS: usize>(
        &mut self,
        arguments: &Arguments<E>,
        reader: &R,
        mut store: impl FnMut(u32, [f32; COLS]),
    ) {
        let most = 1 << arguments.part_log2();
        // SAFETY: there is one more offset than there are rows.
        let offset = |row: u32| unsafe { arguments.row_offsets.get(opaque(row)) };
        let (first, last) = (offset(self.row), offset(self.end));
        let before = first as u32 % GROUP;
        // NOTE: from here on all places count from the group of the first entry. Up to the first long row they fit 32 bits, and so
        // does every length, of which a row has at most one for each column: the lower halves tell both.
        let base = (first as u32).wrapping_sub(before);
        let place = |row: u32| (offset(row) as u32).wrapping_sub(base);
        let len = if last - first > u64::from(u32::MAX >> 1) { u32::MAX >> 1 } else { (last - first) as u32 };
        let entries = Entries::new(arguments, first, if arguments.alpha == 0.0 { 0 } else { len });
        let mut columns = entries.first_columns();
        // The entries that the row has, or has left.
        let (mut begin, mut end) = (before, place(self.row + 1));
        let (mut at, mut sums) = (0, [0.0; COLS]);
        if end.wrapping_sub(begin) > most {
            self.row += 1;
            return;
        }
        loop {
            // SAFETY: the caller's promise.
            let mut group = unsafe { entries.load_group::<R, COLS>(reader, columns, at) };
            columns = group.next;
            at += GROUP;
            loop {
                if arguments.alpha != 0.0 {
                    // Rows that share a group widen it anew: elements of 32 bits are twice as many registers.
                    group.loaded = group.loaded.map(R::anew);
                    add_group::<E, R, COLS>(&mut sums, &group, at - GROUP, begin, end);
                    if end > at {
                        break;
                    }
                }
                store(self.row, sums);
                sums = [0.0; COLS];
                self.row += 1;
                if self.row == self.end {
                    return;
                }
                (begin, end) = (end, place(self.row + 1));
                if end.wrapping_sub(begin) > most {
                    self.row += 1;
                    return;
                }
            }
        }
    }
}
