//! Where groups and slots of a tile lie: tables of what [`layout`](kernels_gpu::three_layer::layout) says.

use std::sync::LazyLock;

use hopper_std::sm90::{Swizzle, Swizzle128};
use kernels_gpu::three_layer::layout::{
    GROUPS, METADATA_AT, ROW_VALUES, TILE_ROWS, WARP_ROWS, WARPS, metadata_place, piece,
};

/// The slots of a warp.
pub(super) const WARP_SLOTS: usize = WARP_ROWS * ROW_VALUES;

/// A group of four columns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Group {
    /// Its row in the tile.
    pub(super) row: usize,
    /// Its first column in the tile.
    pub(super) col: usize,
    /// The word of the tile that holds its code.
    pub(super) code_word: usize,
    /// The code's first bit in the word.
    pub(super) code_bit: u32,
}

impl Group {
    /// The group's code in a tile.
    pub(super) fn code(&self, words: &[u32]) -> u8 {
        (words[self.code_word] >> self.code_bit & 0xf) as u8
    }
}

/// The tables.
pub(super) struct Geometry {
    /// The groups, in the order of their values in memory: group g has word g of the tile.
    pub(super) groups: Vec<Group>,
    /// The slots in their order: the value's place among the tile's, in values. Warp w has those from `w * WARP_SLOTS` on.
    pub(super) slots: Vec<u16>,
}

pub(super) static GEOMETRY: LazyLock<Geometry> = LazyLock::new(|| {
    let mut groups = vec![Group::default(); GROUPS];
    for row in 0..TILE_ROWS {
        for unit in 0..ROW_VALUES / 8 {
            let (lane, word, bit) = metadata_place((row % WARP_ROWS) as u32, unit as u32);
            let code_word = METADATA_AT + (row / WARP_ROWS * 32 + lane as usize) * 2 + word as usize;
            for group in 0..4 {
                let (col, code_bit) = (unit * 16 + group * 4, bit + group as u32 * 4);
                groups[place(row, unit * 8 + group * 2) / 2] = Group { row, col, code_word, code_bit };
            }
        }
    }
    let mut slots = Vec::with_capacity(WARPS * WARP_SLOTS);
    for warp in 0..WARPS {
        for lane in 0..32 {
            for index in 0..4 {
                let (row, unit) = piece(lane, index);
                let (row, first) = (warp * WARP_ROWS + row as usize, unit as usize * 8);
                slots.extend((first..first + 8).map(|value| place(row, value) as u16));
            }
        }
    }
    Geometry { groups, slots }
});

/// Where value `value` of row `row` lies among the tile's, in values.
fn place(row: usize, value: usize) -> usize {
    Swizzle128::apply((row * ROW_VALUES + value) * 2) / 2
}
