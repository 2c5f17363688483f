//! From the words of a tile back to its elements.

use kernels_gpu::three_layer::layout::{GROUPS, HEADER_AT, NIBBLES_AT, TILE_COLS, TILE_ROWS, WARPS};

use super::codes::{columns, second_layer};
use super::encode::{Elements, free_slots_of};
use super::geometry::GEOMETRY;

/// What a tile's words say: its elements, and how many of them came from where.
pub(super) struct Decoded {
    pub(super) elements: Box<Elements>,
    /// Nonzeros that came from slots.
    pub(super) num_surplus: usize,
    /// Entries whose value is zero.
    pub(super) num_dummies: usize,
}

/// Decodes a tile that [`check_tile`](super::check::check_tile) accepts.
pub(super) fn decode_tile(tile: &[u32]) -> Decoded {
    let num_entries = tile[HEADER_AT + WARPS] as usize;
    let mut first: Vec<u16> = tile[..GROUPS].iter().flat_map(|&word| [word as u16, (word >> 16) as u16]).collect();
    let mut second = vec![0_u16; GROUPS * 2];
    let (mut position, mut num_dummies) = (0, 0);
    let slots = if num_entries == 0 { Vec::new() } else { free_slots_of(tile) };
    for (index, &(_, place)) in slots.iter().take(num_entries).enumerate() {
        let distance = (tile[NIBBLES_AT + index / 8] >> (index % 8 * 4) & 0xf) as usize;
        position += distance;
        let bits = core::mem::take(&mut first[place]);
        second[(position - 1) * 2 + usize::from(distance == 0)] = bits;
        num_dummies += usize::from(bits == 0);
    }
    let mut elements = Box::new([[0; TILE_COLS]; TILE_ROWS]);
    for (index, group) in GEOMETRY.groups.iter().enumerate() {
        let code = group.code(tile);
        for (layer, code) in [(&first, code), (&second, second_layer(code))] {
            for (slot, column) in columns(code).into_iter().enumerate() {
                // The places of a free slot and of a value of the other layer may be one.
                elements[group.row][group.col + column] |= layer[index * 2 + slot];
            }
        }
    }
    Decoded { elements, num_surplus: num_entries - num_dummies, num_dummies }
}
