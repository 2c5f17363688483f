//! How sums become elements of a row of C, or of the workspace.

use hopper_std::ptx::memory::{st_global_u32, st_global_v2_u32, st_global_v4_u32};

use super::element::Element;

/// A row of a matrix, and what it becomes: alpha times the sums, plus beta times what was there.
#[derive(Clone, Copy)]
pub struct Target<O> {
    /// Its column 0.
    pub row: *mut O,
    /// From column to column, in elements.
    pub col_stride: u64,
    /// Columns.
    pub num_cols: u32,
    /// Factor of the sums.
    pub alpha: f32,
    /// Factor of what was there; with 0 it is not read.
    pub beta: f32,
}

impl<O: Element> Target<O> {
    #[inline(always)]
    fn at(&self, column: u32) -> *mut O {
        self.row.wrapping_add(u64::from(column).wrapping_mul(self.col_stride) as usize)
    }

    /// Stores the sums of neighbours, the first of which is column `column`; all are within the matrix.
    ///
    /// # Safety
    /// The row may be written, and read unless beta is 0.
    #[inline(always)]
    pub unsafe fn store_neighbours<const COLS: usize>(&self, column: u32, sums: [f32; COLS]) {
        let address = self.at(column);
        let bytes = COLS / O::PER_WORD * 4;
        let is_aligned = (address as usize).is_multiple_of(if bytes < 16 { bytes } else { 16 });
        if self.beta == 0.0 && self.col_stride == 1 && is_aligned {
            // SAFETY: the columns are within the matrix, and they are neighbours; the address is aligned.
            unsafe { store_packed::<O, COLS>(address.cast(), sums.map(|sum| self.alpha * sum)) };
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.store_each(|index| column + index, sums) };
        }
    }

    /// Stores sums one by one: those whose column is within the matrix.
    ///
    /// # Safety
    /// The row may be written, and read unless beta is 0.
    #[inline(always)]
    pub unsafe fn store_each<const COLS: usize>(&self, column: impl Fn(u32) -> u32, sums: [f32; COLS]) {
        let mut index = 0;
        while index < COLS {
            let column = column(index as u32);
            if column < self.num_cols {
                let mut value = self.alpha * sums[index];
                // SAFETY: the column is within the matrix.
                unsafe {
                    if self.beta != 0.0 {
                        value += self.beta * O::load(self.at(column));
                    }
                    O::store(self.at(column), value);
                }
            }
            index += 1;
        }
    }
}

/// Stores neighbours by as few stores as there can be.
///
/// # Safety
/// They may be written; the address is aligned to their size, or to 16 bytes where that is more.
#[inline(always)]
unsafe fn store_packed<O: Element, const COLS: usize>(address: *mut u32, values: [f32; COLS]) {
    let mut words = [0; 8];
    let mut index = 0;
    while index < COLS {
        let second = if O::PER_WORD == 2 { values[index + 1] } else { 0.0 };
        words[index / O::PER_WORD] = O::pack(values[index], second);
        index += O::PER_WORD;
    }
    let [a, b, c, d, e, f, g, h] = words;
    // SAFETY: the caller's promise.
    unsafe {
        match COLS / O::PER_WORD {
            1 => st_global_u32(address, [a]),
            2 => st_global_v2_u32(address, [a, b]),
            4 => st_global_v4_u32(address, [a, b, c, d]),
            _ => {
                st_global_v4_u32(address, [a, b, c, d]);
                st_global_v4_u32(address.wrapping_add(4), [e, f, g, h]);
            }
        }
    }
}
