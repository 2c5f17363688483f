//! A ring of slots in shared memory, each with a barrier that says it is full and one that says it is empty.

use hopper_std::ptx::mbarrier::mbarrier_init;
use hopper_std::ptx::special::dynamic_shared_address;

/// `SLOTS` slots of `SLOT_BYTES`, then the full barriers, then the empty ones. Tile after tile takes the next slot.
#[derive(Clone, Copy)]
pub struct Slots<const SLOTS: u32, const SLOT_BYTES: u32> {
    pub base: u32,
}

impl<const SLOTS: u32, const SLOT_BYTES: u32> Slots<SLOTS, SLOT_BYTES> {
    const FULL: u32 = SLOTS * SLOT_BYTES;
    const EMPTY: u32 = Self::FULL + SLOTS * 8;
    /// Bytes of shared memory.
    pub const BYTES: usize = (Self::EMPTY + SLOTS * 8) as usize;

    /// Those at the beginning of the block's shared memory.
    pub unsafe fn new() -> Self {
        Self { base: dynamic_shared_address() }
    }

    /// Initialises the barriers of the first `count` slots: one arrival fills, `releases` empty.
    pub unsafe fn init(self, count: u32, releases: u32) {
        for slot in 0..count {
            mbarrier_init(self.full(slot), 1);
            mbarrier_init(self.empty(slot), releases);
        }
    }

    /// The slot of a tile.
    pub fn slot(self, tile: u32) -> u32 {
        self.base + tile % SLOTS * SLOT_BYTES
    }

    /// The barrier that completes a phase when the tile is there.
    pub fn full(self, tile: u32) -> u32 {
        self.base + Self::FULL + tile % SLOTS * 8
    }

    /// The barrier that completes a phase when the tile has been read.
    pub fn empty(self, tile: u32) -> u32 {
        self.base + Self::EMPTY + tile % SLOTS * 8
    }

    /// The parity of the phase in which a tile comes.
    pub fn parity(self, tile: u32) -> u32 {
        tile / SLOTS % 2
    }
}
