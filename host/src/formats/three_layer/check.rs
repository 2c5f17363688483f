//! Whether words are a tile: what a kernel relies on, since it reads and writes by them.

use core::fmt;

use kernels_gpu::three_layer::layout::{
    GROUPS, HEADER_AT, MOST_ENTRIES, NIBBLES_AT, SECOND_LAYER, WARPS, header, tile_words,
};

use super::codes::columns;
use super::encode::free_slots_of;
use super::geometry::{GEOMETRY, WARP_SLOTS};

/// What is wrong with a tile's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TileFault {
    /// There are not as many words as its entries demand.
    NumWords {
        /// Words demanded.
        expected: u64,
        /// Words found.
        found: u64,
    },
    /// It has more entries than a tile, or than it has free slots.
    NumEntries {
        /// The most.
        most: u64,
        /// Entries found.
        found: u64,
    },
    /// The code of a group puts both its values in one column.
    Code {
        /// The group, in the order of memory.
        group: u32,
    },
    /// A distance leads out of the tile, or a third value to one group.
    Distance {
        /// The entry, from 0.
        entry: u32,
    },
    /// A column of a group has a value in both layers.
    Twice {
        /// The group, in the order of memory.
        group: u32,
    },
    /// A warp's word of the header is not what the entries before its own come to.
    Header {
        /// The warp.
        warp: u32,
    },
}

impl fmt::Display for TileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NumWords { expected, found } => write!(f, "it has {found} words instead of {expected}"),
            Self::NumEntries { most, found } => write!(f, "it has {found} entries, of {most} at most"),
            Self::Code { group } => write!(f, "both values of group {group} are in one column"),
            Self::Distance { entry } => write!(f, "the distance of entry {entry} leads nowhere"),
            Self::Twice { group } => write!(f, "a column of group {group} has two values"),
            Self::Header { warp } => write!(f, "the header of warp {warp} disagrees with the entries before it"),
        }
    }
}

/// Checks the words of one tile.
pub(super) fn check_tile(tile: &[u32]) -> Result<(), TileFault> {
    let num_words = |expected: usize| TileFault::NumWords { expected: expected as u64, found: tile.len() as u64 };
    if tile.len() < NIBBLES_AT {
        return Err(num_words(tile_words(0)));
    }
    let num_entries = tile[HEADER_AT + WARPS] as usize;
    if num_entries > MOST_ENTRIES {
        return Err(TileFault::NumEntries { most: MOST_ENTRIES as u64, found: num_entries as u64 });
    }
    if tile.len() != tile_words(num_entries) {
        return Err(num_words(tile_words(num_entries)));
    }
    for (index, group) in GEOMETRY.groups.iter().enumerate() {
        let [first, second] = columns(group.code(tile));
        if first == second {
            return Err(TileFault::Code { group: index as u32 });
        }
    }
    check_entries(tile, num_entries)
}

/// Checks distances, header, and that no column has two values.
fn check_entries(tile: &[u32], num_entries: usize) -> Result<(), TileFault> {
    let slots = free_slots_of(tile);
    if num_entries > slots.len() {
        return Err(TileFault::NumEntries { most: slots.len() as u64, found: num_entries as u64 });
    }
    let mut first: Vec<u32> = tile[..GROUPS].to_vec();
    let mut second = vec![0_u32; GROUPS];
    let (mut position, mut warp, mut before) = (0_u32, 0, 0);
    let mut check_header = |end: usize, entries: usize, position: u32| {
        while warp < end {
            if tile[HEADER_AT + warp] != header(entries as u32, position) {
                return Err(TileFault::Header { warp: warp as u32 });
            }
            warp += 1;
        }
        Ok(())
    };
    for (index, &(slot, place)) in slots.iter().take(num_entries).enumerate() {
        check_header(slot / WARP_SLOTS + 1, index, position)?;
        let distance = tile[NIBBLES_AT + index / 8] >> (index % 8 * 4) & 0xf;
        position += distance;
        let third = distance == 0 && (index == 0 || before == 0);
        if position > GROUPS as u32 || third {
            return Err(TileFault::Distance { entry: index as u32 });
        }
        before = distance;
        let bits = first[place / 2] >> (place % 2 * 16) & 0xffff;
        first[place / 2] &= !(0xffff << (place % 2 * 16));
        second[position as usize - 1] |= bits << if distance == 0 { 16 } else { 0 };
    }
    check_header(WARPS, num_entries, position)?;
    for (index, group) in GEOMETRY.groups.iter().enumerate() {
        let code = group.code(tile);
        let taken = |word: u32, code: u8| {
            let used = columns(code).into_iter().enumerate().filter(|&(slot, _)| word >> (slot * 16) & 0xffff != 0);
            used.fold(0, |mask, (_, column)| mask | 1 << column)
        };
        if taken(first[index], code) & taken(second[index], code ^ (SECOND_LAYER & 0xf) as u8) != 0 {
            return Err(TileFault::Twice { group: index as u32 });
        }
    }
    Ok(())
}
