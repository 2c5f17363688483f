//! Tiles: what one tensor copy brings, and what one descriptor names.

use core::marker::PhantomData;

use super::Shared;

/// How the 16-byte units of a tile are permuted, so that neither rows nor columns collide in the banks.
///
/// The permutation works on address bits: within an atom of eight rows of `SPAN_BYTES`, bits 4 up are XORed with bits
/// 7 up of the address. Copy engine and tensor cores apply the same one. PTX ISA 5.5.7.
pub trait Swizzle: 'static {
    /// The bytes of one row of a tile, and of the inner extent of its box.
    const SPAN_BYTES: usize;
    /// The layout type in bits 62 and 63 of a WGMMA descriptor.
    const DESCRIPTOR_MODE: u64;
    /// The value of `CUtensorMapSwizzle`.
    const TENSOR_MAP_MODE: u32;

    /// Where the byte at `offset` of an unpermuted tile lies.
    #[inline(always)]
    fn apply(offset: usize) -> usize {
        let mask = Self::SPAN_BYTES / 16 - 1;
        offset ^ (((offset >> 7) & mask) << 4)
    }
}

macro_rules! swizzles {
    ($($(#[$doc:meta])* $name:ident, $span:literal, $descriptor:literal, $map:literal;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $name;

            impl Swizzle for $name {
                const SPAN_BYTES: usize = $span;
                const DESCRIPTOR_MODE: u64 = $descriptor;
                const TENSOR_MAP_MODE: u32 = $map;
            }
        )*
    };
}

swizzles! {
    /// Rows of 128 bytes.
    Swizzle128, 128, 1, 3;
    /// Rows of 64 bytes.
    Swizzle64, 64, 2, 2;
    /// Rows of 32 bytes.
    Swizzle32, 32, 3, 1;
    /// Rows of 16 bytes, not permuted.
    Linear, 16, 0, 0;
}

/// `ROWS` rows of `COLS` elements in shared memory, as one tensor copy writes them: each row is one swizzle span.
///
/// Aligned to 1024 bytes, so that address bits and tile bits agree. All derived numbers come from here: the box of the
/// tensor map ([`TileShape::BOX`]), the bytes that a barrier expects ([`TileShape::BYTES`]), the descriptor
/// ([`Shared::k_major`](super::Shared::k_major), [`Shared::mn_major`](super::Shared::mn_major)).
#[repr(C, align(1024))]
pub struct Tile<T, const ROWS: usize, const COLS: usize, S> {
    elements: [[T; COLS]; ROWS],
    swizzle: PhantomData<S>,
}

/// The numbers of a [`Tile`], for host and device.
pub trait TileShape {
    /// The element.
    type Element;
    /// The permutation.
    type Swizzle: Swizzle;
    /// Rows.
    const ROWS: usize;
    /// Elements of a row.
    const COLS: usize;
    /// Bytes of the data.
    const BYTES: usize;
    /// The box of its tensor map, the contiguous dimension first.
    const BOX: [u32; 2];
    /// The box's extent along the third dimension of its map.
    const BOX_DEPTH: u32 = 1;
}

impl<T: 'static, const ROWS: usize, const COLS: usize, S: Swizzle> TileShape for Tile<T, ROWS, COLS, S> {
    type Element = T;
    type Swizzle = S;
    const ROWS: usize = ROWS;
    const COLS: usize = COLS;
    const BYTES: usize = {
        assert!(COLS * size_of::<T>() == S::SPAN_BYTES, "a row of a tile is one swizzle span");
        assert!(ROWS <= 256, "a tensor-map box has at most 256 elements along an axis");
        let bytes = ROWS * COLS * size_of::<T>();
        assert!(bytes.is_multiple_of(1024), "tiles follow one another at multiples of 1024 bytes");
        assert!(size_of::<Self>() == bytes, "a tile has no padding");
        bytes
    };
    const BOX: [u32; 2] = [COLS as u32, ROWS as u32];
}

/// Tiles that one copy brings, one after the other: the third dimension of the map goes from tile to tile.
impl<T: 'static, const ROWS: usize, const COLS: usize, S: Swizzle, const DEPTH: usize> TileShape
    for [Tile<T, ROWS, COLS, S>; DEPTH]
{
    type Element = T;
    type Swizzle = S;
    const ROWS: usize = ROWS;
    const COLS: usize = COLS;
    const BYTES: usize = {
        assert!(DEPTH <= 256, "a tensor-map box has at most 256 elements along an axis");
        DEPTH * Tile::<T, ROWS, COLS, S>::BYTES
    };
    const BOX: [u32; 2] = Tile::<T, ROWS, COLS, S>::BOX;
    const BOX_DEPTH: u32 = DEPTH as u32;
}

/// One row of a [`Tile`], as a tensor copy of its own writes it: the permutation goes by the address, so rows that are copied
/// one by one lie as if they had come together.
#[repr(C)]
pub struct TileRow<T, const COLS: usize, S> {
    elements: [T; COLS],
    swizzle: PhantomData<S>,
}

impl<T: 'static, const COLS: usize, S: Swizzle> TileShape for TileRow<T, COLS, S> {
    type Element = T;
    type Swizzle = S;
    const ROWS: usize = 1;
    const COLS: usize = COLS;
    const BYTES: usize = {
        assert!(COLS * size_of::<T>() == S::SPAN_BYTES, "a row of a tile is one swizzle span");
        COLS * size_of::<T>()
    };
    const BOX: [u32; 2] = [COLS as u32, 1];
}

impl<T, const ROWS: usize, const COLS: usize, S: Swizzle> Tile<T, ROWS, COLS, S> {
    /// Where the 16-byte unit `unit` of row `row` lies, in bytes from the tile.
    #[inline(always)]
    pub fn unit_offset(row: u32, unit: u32) -> u32 {
        S::apply(row as usize * S::SPAN_BYTES + unit as usize * 16) as u32
    }
}

impl<T, const ROWS: usize, const COLS: usize, S: Swizzle> Shared<Tile<T, ROWS, COLS, S>> {
    /// The place of row `index`, which must be under `ROWS`.
    #[inline(always)]
    pub const fn row(self, index: u32) -> Shared<TileRow<T, COLS, S>> {
        debug_assert!((index as usize) < ROWS);
        // SAFETY: a tile has its rows one span apart.
        unsafe { self.project(index as usize * S::SPAN_BYTES) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_a_permutation<S: Swizzle>() {
        let bytes = 8 * 128;
        let mut seen = vec![false; bytes];
        for offset in 0..bytes {
            let to = S::apply(offset);
            assert!(to < bytes && !seen[to], "{offset} and another byte both go to {to}");
            assert_eq!(to % 16, offset % 16, "16-byte units stay whole");
            assert_eq!(S::apply(to), offset, "the permutation is its own inverse");
            seen[to] = true;
        }
    }

    #[test]
    fn swizzles_are_involutions() {
        is_a_permutation::<Swizzle128>();
        is_a_permutation::<Swizzle64>();
        is_a_permutation::<Swizzle32>();
        is_a_permutation::<Linear>();
    }

    #[test]
    fn eight_rows_of_a_column_lie_in_different_banks() {
        let units: Vec<usize> = (0..8).map(|row| Swizzle128::apply(row * 128) % 128 / 16).collect();
        assert_eq!(units, [0, 1, 2, 3, 4, 5, 6, 7]);
        let units: Vec<usize> = (0..8).map(|row| Swizzle64::apply(row * 64) % 128 / 16).collect();
        assert_eq!(units, [0, 4, 1, 5, 2, 6, 3, 7]);
    }

    #[test]
    fn numbers_of_a_tile() {
        type A = Tile<u16, 128, 64, Swizzle128>;
        assert_eq!(A::BYTES, 16384);
        assert_eq!(A::BOX, [64, 128]);
        assert_eq!(align_of::<A>(), 1024);
    }
}
