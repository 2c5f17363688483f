//! How a thread reads its columns of a row of B.

use hopper_std::hint::opaque;
use hopper_std::ptx::memory::{ld_global_nc_u32, ld_global_nc_v2_u32, ld_global_nc_v4_u32};

use super::config::Arguments;
use super::element::Element;

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

    /// Its columns of a row of B as they are loaded. NOTE: 16-bit elements stay in pairs until they are used, so that four
    /// entries in flight fit into registers.
    type Loaded: Copy;

    /// All of them +0.
    const ZEROS: Self::Loaded;

    /// Its columns of row `k` of B. What lies beyond the matrix may be any number.
    ///
    /// # Safety
    /// `k` is under K.
    unsafe fn load(&self, k: u32) -> Self::Loaded;

    /// The elements.
    fn widen(loaded: Self::Loaded) -> [f32; COLS];

    /// The same as it was loaded. The compiler does not know that: what is made of it is made where it is used, and not kept.
    fn anew(loaded: Self::Loaded) -> Self::Loaded;
}

/// From row to row of B in bytes. Of a stride along an axis of one, which may be any number, no step is taken.
#[inline(always)]
fn row_stride_bytes<E>(arguments: &Arguments<E>) -> u64 {
    arguments.b_row_stride.wrapping_mul(size_of::<E>() as u64)
}

/// Neighbours, by one load.
#[derive(Clone, Copy)]
pub struct Packed<E> {
    base: *const E,
    row_stride_bytes: u64,
}

impl<E> Packed<E> {
    /// Its columns of row `k`.
    ///
    /// NOTE: the stride is multiplied by halves, which makes an address two instructions, a wide multiply-add and one for the
    /// upper half: a product of 64 bits and then a sum is three, a stride in elements four. Where the compiler sees that the
    /// lower half is constant, it widens it ahead of the loop, and multiplies by 64 bits after all.
    #[inline(always)]
    fn row(&self, k: u32) -> *const E {
        let (low, high) = (opaque(self.row_stride_bytes as u32), (self.row_stride_bytes >> 32) as u32);
        let near = (self.base as u64).wrapping_add(u64::from(k) * u64::from(low));
        let upper = k.wrapping_mul(high).wrapping_add((near >> 32) as u32);
        (near & 0xffff_ffff | u64::from(upper) << 32) as *const E
    }
}

impl<E: Element, const COLS: usize> Reader<E, COLS> for Packed<E> {
    const PACKED: bool = true;

    type Loaded = [u32; 4];

    const ZEROS: [u32; 4] = [0; 4];

    #[inline(always)]
    fn new(arguments: &Arguments<E>, place: Place, first: u32) -> Self {
        let column = <Self as Reader<E, COLS>>::column(place, first, 0);
        Self { base: arguments.b.as_ptr().wrapping_add(column as usize), row_stride_bytes: row_stride_bytes(arguments) }
    }

    #[inline(always)]
    fn column(place: Place, first: u32, index: u32) -> u32 {
        first + place.thread * COLS as u32 + index
    }

    #[inline(always)]
    unsafe fn load(&self, k: u32) -> [u32; 4] {
        let address = self.row(k).cast::<u32>();
        // SAFETY: the row and the columns are in the matrix, and rows are aligned for this load.
        unsafe {
            match COLS / E::PER_WORD {
                1 => [ld_global_nc_u32(address)[0], 0, 0, 0],
                2 => {
                    let [first, second] = ld_global_nc_v2_u32(address);
                    [first, second, 0, 0]
                }
                _ => ld_global_nc_v4_u32(address),
            }
        }
    }

    #[inline(always)]
    fn anew(words: [u32; 4]) -> [u32; 4] {
        words.map(opaque)
    }

    #[inline(always)]
    fn widen(words: [u32; 4]) -> [f32; COLS] {
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
    row_stride_bytes: u64,
}

impl<E: Element, const COLS: usize> Reader<E, COLS> for Spread<E, COLS> {
    const PACKED: bool = false;

    type Loaded = [f32; COLS];

    const ZEROS: [f32; COLS] = [0.0; COLS];

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
        Self { columns, row_stride_bytes: row_stride_bytes(arguments) }
    }

    #[inline(always)]
    fn column(place: Place, first: u32, index: u32) -> u32 {
        first + index * place.team + place.thread
    }

    #[inline(always)]
    unsafe fn load(&self, k: u32) -> [f32; COLS] {
        let offset = u64::from(k).wrapping_mul(self.row_stride_bytes) as usize;
        let mut elements = [0.0; COLS];
        let mut index = 0;
        while index < COLS {
            // SAFETY: the row and the column are in the matrix.
            elements[index] = unsafe { E::load_constant(self.columns[index].wrapping_byte_add(offset)) };
            index += 1;
        }
        elements
    }

    #[inline(always)]
    fn anew(elements: [f32; COLS]) -> [f32; COLS] {
        elements
    }

    #[inline(always)]
    fn widen(elements: [f32; COLS]) -> [f32; COLS] {
        elements
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses alone, as rows that far apart have them: nothing is read.
    #[test]
    fn rows_lie_where_64_bits_say() {
        for row_stride_bytes in [0, 4, 1 << 12, u64::from(u32::MAX), 1 << 32, (1 << 40) + 4, 0xffff_ffff_ffff_fff0] {
            for base in [0_u64, 256, 0x7f12_ffff_fff0] {
                for k in [0, 1, 2, 1000, 0xffff_fffe] {
                    let packed = Packed { base: base as *const f32, row_stride_bytes };
                    let expected = base.wrapping_add(u64::from(k).wrapping_mul(row_stride_bytes));
                    assert_eq!(packed.row(k) as u64, expected, "row {k} of {row_stride_bytes} from {base}");
                }
            }
        }
    }
}
