//! Consecutive entries of a row of A, and their products with rows of B, added up in order.

use hopper_std::ptx::convert::fma_rn_f32;
use hopper_std::ptx::memory::{ld_global_nc_u32, ld_global_nc_v4_u32};

use super::config::{Arguments, GROUP};
use super::element::Element;
use super::reader::Reader;

const IN_GROUP: usize = GROUP as usize;

/// Consecutive entries. They are read in groups of four that are aligned in the arrays, so that a group takes one load of
/// indices and one of values: the first and the last group may hold entries of other rows, too, which are left out.
#[derive(Clone, Copy)]
pub struct Entries<E> {
    /// The group of the first entry.
    col_indices: *const u32,
    values: *const E,
    /// Entries of that group before the first one.
    before: u32,
    /// From the begin of that group to the end of the last entry: 0 where there is none.
    end: u32,
    /// From the begin of that group to the end of the arrays, or the largest number.
    readable: u32,
}

impl<E: Element> Entries<E> {
    /// The `len` entries from `begin` on, at most [`MAX_SIZE`](super::MAX_SIZE).
    #[inline(always)]
    pub fn new(arguments: &Arguments<E>, begin: u64, len: u32) -> Self {
        let before = begin as u32 % GROUP;
        let first = begin - u64::from(before);
        let readable = arguments.num_entries - first;
        Self {
            col_indices: arguments.col_indices.as_ptr().wrapping_add(first as usize),
            values: arguments.values.as_ptr().wrapping_add(first as usize),
            before,
            end: if len == 0 { 0 } else { before + len },
            readable: if readable < u64::from(u32::MAX) { readable as u32 } else { u32::MAX },
        }
    }

    /// The sums of the products with the thread's columns of B, added one entry after the other.
    ///
    /// The four loads of a group and those of the next group's indices come before its additions.
    ///
    /// # Safety
    /// These are entries of A, whose column indices are rows of B.
    #[inline(always)]
    pub unsafe fn multiply<R: Reader<E, COLS>, const COLS: usize>(&self, reader: &R) -> [f32; COLS] {
        let (mut sums, mut at) = ([0.0; COLS], 0);
        let past_last = self.end.next_multiple_of(GROUP);
        let loadable = if past_last < self.readable { past_last } else { self.readable };
        let mut columns = [0; IN_GROUP];
        if GROUP <= loadable {
            // SAFETY: the group is within the arrays.
            columns = unsafe { self.columns(0) };
        }
        while at < self.end {
            if self.before <= at {
                while at + GROUP <= self.end {
                    // SAFETY: the caller's promise; the group is within the arrays.
                    let (loaded, values) = unsafe { (load(reader, columns), self.values(at)) };
                    at += GROUP;
                    if at + GROUP <= loadable {
                        // SAFETY: the group is within the arrays.
                        columns = unsafe { self.columns(at) };
                    }
                    add::<E, R, COLS>(&mut sums, values, loaded);
                }
                if at >= self.end {
                    break;
                }
            }
            // SAFETY: the caller's promise.
            let (loaded, values) = unsafe { self.load_some(reader, columns, at) };
            at += GROUP;
            if at + GROUP <= loadable {
                // SAFETY: the group is within the arrays.
                columns = unsafe { self.columns(at) };
            }
            add::<E, R, COLS>(&mut sums, values, loaded);
        }
        sums
    }

    /// The column indices of the group that begins at `at`.
    ///
    /// # Safety
    /// The group is within the arrays.
    #[inline(always)]
    unsafe fn columns(&self, at: u32) -> [u32; IN_GROUP] {
        // SAFETY: the caller's promise; groups are aligned.
        unsafe { ld_global_nc_v4_u32(self.col_indices.wrapping_add(at as usize)) }
    }

    /// The values of the group that begins at `at`.
    ///
    /// # Safety
    /// The group is within the arrays.
    #[inline(always)]
    unsafe fn values(&self, at: u32) -> [f32; IN_GROUP] {
        // SAFETY: the caller's promise; groups are aligned.
        unsafe { E::load_constant_group(self.values.wrapping_add(at as usize)) }
    }

    /// Of the group that begins at `at`, the entries that are of this row. What is none becomes zero times zero: to add that
    /// changes no sum, since a sum that began at +0 is never -0.
    ///
    /// # Safety
    /// As [`multiply`](Self::multiply). The group begins before the end; `columns` are its column indices if it is within
    /// the arrays.
    #[inline(always)]
    unsafe fn load_some<R: Reader<E, COLS>, const COLS: usize>(
        &self,
        reader: &R,
        mut columns: [u32; IN_GROUP],
        at: u32,
    ) -> ([R::Loaded; IN_GROUP], [f32; IN_GROUP]) {
        let is_ours = |index: usize| self.before <= at + index as u32 && at + (index as u32) < self.end;
        let mut values = [0.0; IN_GROUP];
        if at + GROUP <= self.readable {
            // SAFETY: the group is within the arrays.
            values = unsafe { self.values(at) };
        } else {
            let mut index = 0;
            while index < IN_GROUP {
                if is_ours(index) {
                    let place = at as usize + index;
                    // SAFETY: entries of the row are within the arrays.
                    unsafe {
                        [columns[index]] = ld_global_nc_u32(self.col_indices.wrapping_add(place));
                        values[index] = E::load_constant(self.values.wrapping_add(place));
                    }
                }
                index += 1;
            }
        }
        let mut loaded = [R::ZEROS; IN_GROUP];
        let mut index = 0;
        while index < IN_GROUP {
            if is_ours(index) {
                // SAFETY: column indices of A are rows of B.
                loaded[index] = unsafe { reader.load(columns[index]) };
            } else {
                values[index] = 0.0;
            }
            index += 1;
        }
        (loaded, values)
    }
}

/// The rows of B with these indices.
///
/// # Safety
/// B has them.
#[inline(always)]
unsafe fn load<E, R: Reader<E, COLS>, const COLS: usize>(
    reader: &R,
    columns: [u32; IN_GROUP],
) -> [R::Loaded; IN_GROUP] {
    let mut loaded = [R::ZEROS; IN_GROUP];
    let mut index = 0;
    while index < IN_GROUP {
        // SAFETY: the caller's promise.
        loaded[index] = unsafe { reader.load(columns[index]) };
        index += 1;
    }
    loaded
}

/// Adds the products of a group, one entry after the other.
#[inline(always)]
fn add<E, R: Reader<E, COLS>, const COLS: usize>(
    sums: &mut [f32; COLS],
    values: [f32; IN_GROUP],
    loaded: [R::Loaded; IN_GROUP],
) {
    let mut index = 0;
    while index < IN_GROUP {
        let elements = R::widen(loaded[index]);
        let mut col = 0;
        while col < COLS {
            // SAFETY: arithmetic has no preconditions.
            sums[col] = unsafe { fma_rn_f32(values[index], elements[col], sums[col]) };
            col += 1;
        }
        index += 1;
    }
}
