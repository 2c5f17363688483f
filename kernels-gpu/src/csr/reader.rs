//! How a thread reads its columns of a row of B.

use hopper_std::ptx::memory::{ld_global_nc_u32, ld_global_nc_v2_u32, ld_global_nc_v4_u32};

use super::config::{Arguments, Element};

/// A thread's place in its team: its own number, and how many there are.
#[derive(Clone, Copy)]
pub struct Place {
    /// Its number.
    pub thread: u32,
    /// How many there are.
    pub team: u32,
}

/// How a thread reads its columns of a row of B.
pub trait Reader<E, const COLS: usize>: Copy {
    /// Whether the columns are neighbours, and all of them in the matrix if the first one is.
    const PACKED: bool;

    /// For the chunk that begins at column `first`; the thread's own first column is in the matrix.
    fn new(arguments: &Arguments<E>, place: Place, first: u32) -> Self;

    /// The thread's column number `index` of the chunk; in the matrix or not.
    fn column(place: Place, first: u32, index: u32) -> u32;

    /// Its columns of row `k` of B. What lies beyond the matrix may be any number.
    ///
    /// # Safety
    /// `k` is under K.
    unsafe fn read(&self, k: u32) -> [f32; COLS];
}

/// Neighbours, by one load.
#[derive(Clone, Copy)]
pub struct Packed<E> {
    base: *const E,
    row_stride: u64,
}

impl<E: Element, const COLS: usize> Reader<E, COLS> for Packed<E> {
    const PACKED: bool = true;

    #[inline(always)]
    fn new(arguments: &Arguments<E>, place: Place, first: u32) -> Self {
        let column = <Self as Reader<E, COLS>>::column(place, first, 0);
        Self { base: arguments.b.as_ptr().wrapping_add(column as usize), row_stride: arguments.b_row_stride }
    }

    #[inline(always)]
    fn column(place: Place, first: u32, index: u32) -> u32 {
        first + place.thread * COLS as u32 + index
    }

    #[inline(always)]
    unsafe fn read(&self, k: u32) -> [f32; COLS] {
        let address = self.base.wrapping_add((u64::from(k) * self.row_stride) as usize).cast::<u32>();
        // SAFETY: the row and the columns are in the matrix, and rows are aligned for this load.
        let words = unsafe {
            match COLS / E::PER_WORD {
                1 => [ld_global_nc_u32(address)[0], 0, 0, 0],
                2 => {
                    let [first, second] = ld_global_nc_v2_u32(address);
                    [first, second, 0, 0]
                }
                _ => ld_global_nc_v4_u32(address),
            }
        };
        let mut elements = [0.0; COLS];
        let mut index = 0;
        while index < COLS {
            let (first, second) = E::unpack(words[index / E::PER_WORD]);
            elements[index] = if index % E::PER_WORD == 0 { first } else { second };
            index += 1;
        }
        elements
    }
}

/// Columns that lie a team apart, each by a load of its own.
#[derive(Clone, Copy)]
pub struct Spread<E, const COLS: usize> {
    columns: [*const E; COLS],
    row_stride: u64,
}

impl<E: Element, const COLS: usize> Reader<E, COLS> for Spread<E, COLS> {
    const PACKED: bool = false;

    #[inline(always)]
    fn new(arguments: &Arguments<E>, place: Place, first: u32) -> Self {
        let mut columns = [arguments.b.as_ptr(); COLS];
        let mut index = 0;
        while index < COLS {
            // A column beyond the matrix reads the last one instead, so that no load needs a condition.
            let column = <Self as Reader<E, COLS>>::column(place, first, index as u32);
            let inside = if column < arguments.num_cols { column } else { arguments.num_cols - 1 };
            columns[index] = columns[index].wrapping_add((u64::from(inside) * arguments.b_col_stride) as usize);
            index += 1;
        }
        Self { columns, row_stride: arguments.b_row_stride }
    }

    #[inline(always)]
    fn column(place: Place, first: u32, index: u32) -> u32 {
        first + index * place.team + place.thread
    }

    #[inline(always)]
    unsafe fn read(&self, k: u32) -> [f32; COLS] {
        let offset = (u64::from(k) * self.row_stride) as usize;
        let mut elements = [0.0; COLS];
        let mut index = 0;
        while index < COLS {
            // SAFETY: the row and the column are in the matrix.
            elements[index] = unsafe { E::load_constant(self.columns[index].wrapping_add(offset)) };
            index += 1;
        }
        elements
    }
}
