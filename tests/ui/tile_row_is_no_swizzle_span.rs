//! A row of a tile is one span of its swizzle: 64 elements of 16 bits for 128 bytes, not 32.

use hopper_std::sm90::{Swizzle64, Swizzle128, Tile, TileShape};

const SPAN: usize = <Tile<u16, 64, 32, Swizzle64> as TileShape>::BYTES;
const HALF_A_SPAN: usize = <Tile<u16, 64, 32, Swizzle128> as TileShape>::BYTES;

fn main() {
    let _ = (SPAN, HALF_A_SPAN);
}
