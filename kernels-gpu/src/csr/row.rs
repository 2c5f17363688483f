//! Consecutive entries of a row of A, and their products with rows of B, added up in order.

use hopper_std::ptx::convert::fma_rn_f32;
use hopper_std::ptx::memory::{ld_global_nc_l2_128b_v4_u32, ld_global_nc_u32};

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
    /// Entries of that group before the first one: 0 where there is none.
    before: u32,
    /// From the begin of that group to the end of the last entry: 0 where there is none.
    end: u32,
    /// From the begin of that group to the end of the last group that has one of these entries and is within the arrays.
    loadable: u32,
}

impl<E: Element> Entries<E> {
    /// The `len` entries from `begin` on, at most [`MAX_SIZE`](super::MAX_SIZE).
    #[inline(always)]
    pub fn new(arguments: &Arguments<E>, begin: u64, len: u32) -> Self {
        let before = begin as u32 % GROUP;
        let first = begin - u64::from(before);
        let end = if len == 0 { 0 } else { before + len };
        let past_last = end.next_multiple_of(GROUP);
        // Of all groups only the last may reach beyond the arrays.
        let is_within = first + u64::from(past_last) <= arguments.num_entries;
        Self {
            col_indices: arguments.col_indices.as_ptr().wrapping_add(first as usize),
            values: arguments.values.as_ptr().wrapping_add(first as usize),
            before: if len == 0 { 0 } else { before },
            end,
            loadable: if is_within || end == 0 { past_last } else { past_last - GROUP },
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
        let mut columns = self.first_columns();
        while at < self.end {
            if self.before <= at {
                while at + GROUP <= self.end {
                    // SAFETY: the caller's promise; the group is within the arrays.
                    let (loaded, values) = unsafe { (load(reader, columns), self.values(at)) };
                    at += GROUP;
                    if at + GROUP <= self.loadable {
                        // SAFETY: the group is within the arrays.
                        columns = unsafe { self.columns(at) };
                    }
                    let mut index = 0;
                    while index < IN_GROUP {
                        add(&mut sums, values[index], R::widen(loaded[index]));
                        index += 1;
                    }
                }
                if at >= self.end {
                    break;
                }
            }
            // SAFETY: the caller's promise; the group begins before the end, and these are its column indices if it is within
            // the arrays.
            columns = unsafe { self.add_some(reader, columns, at, &mut sums) };
            at += GROUP;
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
        unsafe { ld_global_nc_l2_128b_v4_u32(self.col_indices.wrapping_add(at as usize)) }
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

    /// Adds the products of those entries of a group that are among these. Returns the column indices of the next group, if it has
    /// such entries and is within the arrays.
    ///
    /// # Safety
    /// As [`multiply`](Self::multiply). The group begins at `at`, before the end; `columns` are its column indices if it is
    /// within the arrays.
    #[inline(always)]
    unsafe fn add_some<R: Reader<E, COLS>, const COLS: usize>(
        &self,
        reader: &R,
        columns: [u32; IN_GROUP],
        at: u32,
        sums: &mut [f32; COLS],
    ) -> [u32; IN_GROUP] {
        // SAFETY: the caller's promise.
        let group = unsafe { self.load_group::<R, COLS>(reader, columns, at) };
        add_group::<E, R, COLS>(sums, &group, at, self.before, self.end);
        group.next
    }

    /// Loads those entries of a group that are among these, their rows of B, and the next group's column indices.
    ///
    /// # Safety
    /// As [`add_some`](Self::add_some).
    #[inline(always)]
    pub unsafe fn load_group<R: Reader<E, COLS>, const COLS: usize>(
        &self,
        reader: &R,
        mut columns: [u32; IN_GROUP],
        at: u32,
    ) -> Group<R::Loaded> {
        let is_ours = |index: usize| is_between(at + index as u32, self.before, self.end);
        let mut values = [0.0; IN_GROUP];
        if at + GROUP <= self.loadable {
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
        // NOTE: zeros where nothing is loaded, although nothing reads them: without, the assembler puts additions of whole
        // groups between their loads.
        let mut loaded = [R::ZEROS; IN_GROUP];
        let mut index = 0;
        while index < IN_GROUP {
            if is_ours(index) {
                // SAFETY: column indices of A are rows of B.
                loaded[index] = unsafe { reader.load(columns[index]) };
            }
            index += 1;
        }
        if at + 2 * GROUP <= self.loadable {
            // SAFETY: the group is within the arrays.
            columns = unsafe { self.columns(at + GROUP) };
        }
        Group { values, loaded, next: columns }
    }

    /// The column indices of the first group, where it is within the arrays.
    #[inline(always)]
    pub fn first_columns(&self) -> [u32; IN_GROUP] {
        if GROUP <= self.loadable {
            // SAFETY: the group is within the arrays.
            unsafe { self.columns(0) }
        } else {
            [0; IN_GROUP]
        }
    }
}

/// A group of entries with their rows of B, on the way.
pub struct Group<L> {
    values: [f32; IN_GROUP],
    /// The thread's columns of the rows of B.
    pub loaded: [L; IN_GROUP],
    /// The column indices of the next group, if it has entries to be added and is within the arrays.
    pub next: [u32; IN_GROUP],
}

/// Whether `begin` <= `place` < `end`, where `begin` <= `end`.
#[inline(always)]
fn is_between(place: u32, begin: u32, end: u32) -> bool {
    // Less than nothing is more than any length.
    place.wrapping_sub(begin) < end - begin
}

/// Adds the products of those entries of the group at `at` that are from `begin` to `end`.
#[inline(always)]
pub fn add_group<E, R: Reader<E, COLS>, const COLS: usize>(
    sums: &mut [f32; COLS],
    group: &Group<R::Loaded>,
    at: u32,
    begin: u32,
    end: u32,
) {
    let mut index = 0;
    while index < IN_GROUP {
        if is_between(at + index as u32, begin, end) {
            add(sums, group.values[index], R::widen(group.loaded[index]));
        }
        index += 1;
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

/// Adds the products of one entry.
#[inline(always)]
fn add<const COLS: usize>(sums: &mut [f32; COLS], value: f32, elements: [f32; COLS]) {
    let mut col = 0;
    while col < COLS {
        // SAFETY: arithmetic has no preconditions.
        sums[col] = unsafe { fma_rn_f32(value, elements[col], sums[col]) };
        col += 1;
    }
}
