//! How a tile of W lies in memory: the same in a file, in global and in shared memory.
//!
//! ```text
//! bytes     0        16384      18432        18468
//!           | values | metadata | 9 words    | nibbles, two a byte, the lower first | to a multiple of 16
//! ```
//!
//! *Values*: 128 rows of 64, two for each group of four columns, swizzled as the tensor cores read rows of 128 bytes. *Metadata*: for each
//! warp's 16 rows and each of its lanes two words, as `wgmma` takes them. *Words*: for each warp the number of entries before its own and
//! the position of the last of these ([`header`]), then the number of all. *Nibbles*: the distances.

/// Rows of W in a tile.
pub const TILE_ROWS: usize = 128;

/// Columns of W in a tile.
pub const TILE_COLS: usize = 128;

/// Rows of a warp.
pub const WARP_ROWS: usize = 16;

/// Warps that share a tile.
pub const WARPS: usize = TILE_ROWS / WARP_ROWS;

/// Groups of four columns in a tile.
pub const GROUPS: usize = TILE_ROWS * TILE_COLS / 4;

/// Stored values of a row.
pub const ROW_VALUES: usize = TILE_COLS / 2;

/// Where the metadata begins, in words.
pub const METADATA_AT: usize = GROUPS;

/// Where the header begins, in words.
pub const HEADER_AT: usize = METADATA_AT + WARPS * 32 * 2;

/// Words of the header: one for each warp, and one for all.
pub const HEADER_WORDS: usize = WARPS + 1;

/// Where the nibbles begin, in words.
pub const NIBBLES_AT: usize = HEADER_AT + HEADER_WORDS;

/// Entries that a tile has at most: what exceeds them is in the residual.
pub const MOST_ENTRIES: usize = 4096;

/// Words of the largest tile.
pub const MOST_WORDS: usize = tile_words(MOST_ENTRIES);

/// The largest distance of a nibble.
pub const MOST_DISTANCE: u32 = 15;

/// What turns the metadata of the first layer into that of the second: each place becomes the one two further on, of four.
pub const SECOND_LAYER: u32 = 0xaaaa_aaaa;

/// Columns of W that an offset of the residual covers: what 16 bits can tell apart.
pub const RESIDUAL_COLS: usize = 1 << 16;

/// Words of a tile with so many entries.
pub const fn tile_words(entries: usize) -> usize {
    (NIBBLES_AT + entries.div_ceil(8)).next_multiple_of(4)
}

/// A warp's word of the header: the number of entries before its own, and the position that these reach: one past the group of the last,
/// 0 where there is none.
pub const fn header(first: u32, position: u32) -> u32 {
    first | position << 16
}

/// The two parts of a warp's word.
#[inline(always)]
pub const fn from_header(word: u32) -> (u32, u32) {
    (word & 0xffff, word >> 16)
}

/// The eight slots, 16 bytes, that lane `lane` reads as its `piece`-th of four: row of the warp, and unit of the row.
///
/// Of eight lanes that read at once, half begin with the units that the others come to later: none reads a bank of another.
#[inline(always)]
pub const fn piece(lane: u32, piece: u32) -> (u32, u32) {
    let (line, column) = (lane / 4, lane % 4);
    (line + piece % 2 * 8, column + 4 * ((line ^ (piece / 2)) % 2))
}

/// Which word of which lane holds the codes of unit `unit` of row `row` of a warp, and from which bit on: four of four bits.
pub const fn metadata_place(row: u32, unit: u32) -> (u32, u32, u32) {
    (row % 8 * 4 + unit % 4, unit / 4, row / 8 * 16)
}

/// Bits 0 and 1 of each nibble: whether the first and the second value of a group, whose code is the nibble, is a free slot.
///
/// Codes in increasing order, and 1, have two values. Of the others 3 has none, 7 has the first, and 2, 6 and B have the second.
#[inline(always)]
pub const fn free_slots(codes: u32) -> u32 {
    let (bit1, bit2, bit3) = (codes >> 1, codes >> 2, codes >> 3);
    let first = bit1 & !(bit2 & (bit3 | codes));
    let second = bit1 & codes & !bit3;
    first & 0x1111_1111 | (second & 0x1111_1111) << 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_slots_by_code() {
        for (code, free) in [
            (0x4, 0),
            (0x8, 0),
            (0x9, 0),
            (0xc, 0),
            (0xd, 0),
            (0xe, 0),
            (0x1, 0),
            (0x2, 1),
            (0x6, 1),
            (0xb, 1),
            (0x7, 2),
            (0x3, 3),
        ] {
            for nibble in 0..8 {
                assert_eq!(free_slots(code << (4 * nibble)), free << (4 * nibble), "code {code:x}");
            }
        }
    }

    #[test]
    fn lanes_read_every_slot_once_and_free_of_conflicts() {
        let mut seen = [[false; 8]; WARP_ROWS];
        for index in 0..4 {
            for phase in 0..4 {
                let mut banks = [false; 8];
                for lane in phase * 8..phase * 8 + 8 {
                    let (row, unit) = piece(lane, index);
                    assert!(!core::mem::replace(&mut seen[row as usize][unit as usize], true));
                    assert!(!core::mem::replace(&mut banks[(unit ^ (row % 8)) as usize], true));
                    let (owner, word, bit) = metadata_place(row, unit);
                    assert_eq!((owner, bit), (lane, index % 2 * 16), "a lane has the codes of what it reads");
                    assert_eq!(word, (lane / 4 + index / 2) % 2);
                }
            }
        }
    }
}
