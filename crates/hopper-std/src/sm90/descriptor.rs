//! Descriptors of WGMMA operands in shared memory. PTX ISA 9.7.15.5.1.

use super::{Shared, Swizzle, Tile};
use crate::ptx::wgmma::Orientation;

/// A 64-bit matrix descriptor: start address, leading and stride offset (each over 16), and swizzle mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct SmemDescriptor(u64);

impl SmemDescriptor {
    const fn new(address: u32, leading_bytes: u32, stride_bytes: u32, mode: u64) -> Self {
        const fn field(bytes: u32) -> u64 {
            ((bytes & 0x3_ffff) >> 4) as u64
        }
        Self(field(address) | field(leading_bytes) << 16 | field(stride_bytes) << 32 | mode << 62)
    }

    /// The descriptor of what lies `bytes` further on.
    const fn advance(self, bytes: u32) -> Self {
        Self(self.0 + (bytes >> 4) as u64)
    }

    /// The word that the instruction takes.
    #[inline(always)]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

/// An operand in shared memory, with its orientation.
pub trait Major: Orientation + Copy {
    /// The descriptor of the 16 elements of K from `16 * step` on.
    fn step(self, step: u32) -> SmemDescriptor;
}

/// An operand whose rows (M of A, N of B) are lines, and K runs along a line.
#[derive(Clone, Copy, Debug)]
pub struct KMajor(SmemDescriptor);

impl Orientation for KMajor {
    const TRANS: i32 = 0;
}

impl Major for KMajor {
    #[inline(always)]
    fn step(self, step: u32) -> SmemDescriptor {
        // 16 elements of 16 bits; the hardware applies the swizzle to the sum.
        self.0.advance(step * 32)
    }
}

/// An operand whose K runs over lines, and M or N along a line.
#[derive(Clone, Copy, Debug)]
pub struct MnMajor {
    first: SmemDescriptor,
    step_bytes: u32,
}

impl Orientation for MnMajor {
    const TRANS: i32 = 1;
}

impl Major for MnMajor {
    #[inline(always)]
    fn step(self, step: u32) -> SmemDescriptor {
        self.first.advance(step * self.step_bytes)
    }
}

impl<T, const ROWS: usize, const COLS: usize, S: Swizzle> Shared<Tile<T, ROWS, COLS, S>> {
    /// As a K-major operand, from row `first_row` on, which must be a multiple of 8.
    ///
    /// Rows of a span, eight to an atom: the stride from atom to atom is eight spans; the leading offset is not used
    /// by a swizzled K-major operand.
    #[inline(always)]
    pub const fn k_major(self, first_row: u32) -> KMajor {
        debug_assert!(first_row.is_multiple_of(8) && (first_row as usize) < ROWS);
        let span = S::SPAN_BYTES as u32;
        KMajor(SmemDescriptor::new(self.address() + first_row * span, 16, 8 * span, S::DESCRIPTOR_MODE))
    }
}

impl<T, const ROWS: usize, const COLS: usize, S: Swizzle, const CHUNKS: usize>
    Shared<[Tile<T, ROWS, COLS, S>; CHUNKS]>
{
    /// As an MN-major operand: `ROWS` of K, `CHUNKS * COLS` of M or N.
    ///
    /// The leading offset goes from chunk to chunk of M or N, the stride from eight lines of K to the next eight.
    #[inline(always)]
    pub const fn mn_major(self) -> MnMajor {
        let span = S::SPAN_BYTES as u32;
        MnMajor {
            first: SmemDescriptor::new(
                self.at(0).address(),
                size_of::<Tile<T, ROWS, COLS, S>>() as u32,
                8 * span,
                S::DESCRIPTOR_MODE,
            ),
            step_bytes: 16 * span,
        }
    }
}

impl<T, const COLS: usize, S: Swizzle, const CHUNKS: usize, const GROUPS: usize>
    Shared<[[Tile<T, 8, COLS, S>; CHUNKS]; GROUPS]>
{
    /// As an MN-major operand of lines that came eight at a time: `8 * GROUPS` of K, from eight `first_group` on, and
    /// `CHUNKS * COLS` of M or N.
    ///
    /// The leading offset goes from chunk to chunk within eight lines of K, the stride from eight lines to the next.
    #[inline(always)]
    pub const fn mn_major_from(self, first_group: u32) -> MnMajor {
        self.mn_major_chunk(first_group, 0)
    }

    /// As [`mn_major_from`](Self::mn_major_from), from chunk `chunk` on: `COLS` of M or N, or more of what follows.
    #[inline(always)]
    pub const fn mn_major_chunk(self, first_group: u32, chunk: u32) -> MnMajor {
        let group = size_of::<[Tile<T, 8, COLS, S>; CHUNKS]>() as u32;
        MnMajor {
            first: SmemDescriptor::new(
                self.at(first_group).at(chunk).address(),
                size_of::<Tile<T, 8, COLS, S>>() as u32,
                group,
                S::DESCRIPTOR_MODE,
            ),
            step_bytes: 2 * group,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sm90::{Swizzle32, Swizzle128};

    #[test]
    fn k_major_of_128_byte_rows() {
        // SAFETY: an address is only computed with.
        let tile = unsafe { Shared::<Tile<u16, 128, 64, Swizzle128>>::from_address(0x4000) };
        let bits = tile.k_major(64).step(1).bits();
        assert_eq!(bits & 0x3fff, (0x4000 + 64 * 128 + 32) >> 4);
        assert_eq!(bits >> 32 & 0x3fff, 1024 >> 4);
        assert_eq!(bits >> 62, 1);
    }

    #[test]
    fn k_major_of_32_byte_rows() {
        // SAFETY: an address is only computed with.
        let tile = unsafe { Shared::<Tile<u16, 64, 16, Swizzle32>>::from_address(0x800) };
        let bits = tile.k_major(0).step(0).bits();
        assert_eq!(bits >> 32 & 0x3fff, 256 >> 4);
        assert_eq!(bits >> 62, 3);
    }

    #[test]
    fn mn_major_of_groups_of_two_chunks() {
        // SAFETY: an address is only computed with.
        let panel = unsafe { Shared::<[[Tile<u16, 8, 64, Swizzle128>; 2]; 8]>::from_address(0x8000) };
        let bits = panel.mn_major_from(4).step(1).bits();
        assert_eq!(bits & 0x3fff, (0x8000 + 6 * 2048) >> 4);
        assert_eq!(bits >> 16 & 0x3fff, 1024 >> 4);
        assert_eq!(bits >> 32 & 0x3fff, 2048 >> 4);
    }

    #[test]
    fn mn_major_from_a_chunk_on() {
        // SAFETY: an address is only computed with.
        let panel = unsafe { Shared::<[[Tile<u16, 8, 64, Swizzle128>; 2]; 8]>::from_address(0x8000) };
        let bits = panel.mn_major_chunk(2, 1).step(0).bits();
        assert_eq!(bits & 0x3fff, (0x8000 + 2 * 2048 + 1024) >> 4);
        assert_eq!(bits >> 32 & 0x3fff, 2048 >> 4);
        assert_eq!(panel.mn_major_from(2).step(0).bits() + (1024 >> 4), bits);
    }

    #[test]
    fn mn_major_of_four_chunks() {
        // SAFETY: an address is only computed with.
        let panel = unsafe { Shared::<[Tile<u16, 64, 64, Swizzle128>; 4]>::from_address(0x8000) };
        let bits = panel.mn_major().step(3).bits();
        assert_eq!(bits & 0x3fff, (0x8000 + 3 * 2048) >> 4);
        assert_eq!(bits >> 16 & 0x3fff, 8192 >> 4);
        assert_eq!(bits >> 32 & 0x3fff, 1024 >> 4);
    }
}
