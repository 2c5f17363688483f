//! From the elements of a tile to its words, and what has no slot.

use kernels_gpu::three_layer::layout::{
    GROUPS, HEADER_AT, MOST_DISTANCE, MOST_ENTRIES, NIBBLES_AT, TILE_COLS, TILE_ROWS, WARPS, free_slots, header,
    tile_words,
};

use super::codes::{CODES, columns, second_layer};
use super::geometry::{GEOMETRY, WARP_SLOTS};

/// The elements of a tile, as their bits; zeros are 0.
pub(super) type Elements = [[u16; TILE_COLS]; TILE_ROWS];

/// A nonzero that is not among the two stored ones of its group.
#[derive(Clone, Copy, Debug)]
struct Surplus {
    group: usize,
    col: usize,
    bits: u16,
}

/// A nonzero of the residual: row and column in the tile, and its bits.
pub(super) type Left = (usize, usize, u16);

/// Appends the words of a tile; what finds no slot goes to `left`.
pub(super) fn encode_tile(elements: &Elements, words: &mut Vec<u32>, left: &mut Vec<Left>) {
    let begin = words.len();
    words.resize(begin + NIBBLES_AT, 0);
    let tile = &mut words[begin..];
    let surplus = first_layer(elements, tile);
    let slots = free_slots_of(tile);
    let (entries, num_placed) = entries_of(&surplus, slots.len().min(MOST_ENTRIES));
    left.extend(surplus[num_placed..].iter().map(|one| (GEOMETRY.groups[one.group].row, one.col, one.bits)));
    words.resize(begin + tile_words(entries.len()), 0);
    fill_slots(&entries, &slots, &mut words[begin..]);
}

/// Stores two nonzeros of each group and the group's code. Returns the others, in the order of groups.
fn first_layer(elements: &Elements, tile: &mut [u32]) -> Vec<Surplus> {
    let mut surplus = Vec::new();
    for (index, group) in GEOMETRY.groups.iter().enumerate() {
        let four = &elements[group.row][group.col..group.col + 4];
        let mask = four.iter().enumerate().fold(0, |mask, (column, &bits)| mask | usize::from(bits != 0) << column);
        let code = CODES[mask];
        tile[group.code_word] |= u32::from(code) << group.code_bit;
        let [first, second] = columns(code);
        tile[index] = u32::from(four[first]) | u32::from(four[second]) << 16;
        if mask.count_ones() > 2 {
            let others = columns(second_layer(code)).into_iter().filter(|&column| four[column] != 0);
            surplus.extend(others.map(|column| Surplus { group: index, col: group.col + column, bits: four[column] }));
        }
    }
    surplus
}

/// The free slots of a tile, in their order: index among all slots, and place of the value.
pub(super) fn free_slots_of(tile: &[u32]) -> Vec<(usize, usize)> {
    let is_free = |place: usize| {
        let code = GEOMETRY.groups[place / 2].code(tile);
        free_slots(u32::from(code)) >> (place % 2) & 1 == 1
    };
    let slots = GEOMETRY.slots.iter().enumerate().map(|(index, &place)| (index, usize::from(place)));
    slots.filter(|&(_, place)| is_free(place)).collect()
}

/// One entry: a distance and a value; that of a dummy is zero.
#[derive(Clone, Copy, Debug)]
struct Entry {
    distance: u32,
    bits: u16,
}

/// The entries of as many of the surplus nonzeros, from the first on, as `most` entries reach; and how many nonzeros these are.
fn entries_of(surplus: &[Surplus], most: usize) -> (Vec<Entry>, usize) {
    let mut entries = Vec::with_capacity(surplus.len().min(most));
    let mut position = 0;
    for (index, one) in surplus.iter().enumerate() {
        let distance = one.group as u32 + 1 - position;
        // 0 is the second of its group; a group is never more than all groups away.
        let num_dummies = distance.saturating_sub(1) / MOST_DISTANCE;
        if entries.len() + num_dummies as usize + 1 > most {
            return (entries, index);
        }
        entries.extend((0..num_dummies).map(|_| Entry { distance: MOST_DISTANCE, bits: 0 }));
        entries.push(Entry { distance: distance - num_dummies * MOST_DISTANCE, bits: one.bits });
        position = one.group as u32 + 1;
    }
    debug_assert!(position as usize <= GROUPS);
    (entries, surplus.len())
}

/// Writes values into slots, distances, and the header.
fn fill_slots(entries: &[Entry], slots: &[(usize, usize)], tile: &mut [u32]) {
    let (mut position, mut warp) = (0, 0);
    for (index, (entry, &(slot, place))) in entries.iter().zip(slots).enumerate() {
        while warp <= slot / WARP_SLOTS {
            tile[HEADER_AT + warp] = header(index as u32, position);
            warp += 1;
        }
        position += entry.distance;
        tile[place / 2] |= u32::from(entry.bits) << (place % 2 * 16);
        tile[NIBBLES_AT + index / 8] |= entry.distance << (index % 8 * 4);
    }
    for warp in warp..WARPS {
        tile[HEADER_AT + warp] = header(entries.len() as u32, position);
    }
    tile[HEADER_AT + WARPS] = entries.len() as u32;
}
