//! The producer: one thread that keeps the ring full, across tiles.

use hopper_std::hint::opaque;
use hopper_std::ptx::cluster;
use hopper_std::ptx::tensor::CachePolicy;
use hopper_std::sm90::{EmptySlot, Producer, Scope, Shared, TensorMapRef, TileShape};
use hopper_std::thread;

use super::config::{Arguments, Config, Operands, Panel, Stage};

/// The tensor maps.
pub struct Maps<A, B> {
    /// Blocks of A.
    pub a: TensorMapRef<A>,
    /// B.
    pub b: TensorMapRef<B>,
}

/// Fills the ring with the operands of this worker's tiles. Thread.
///
/// # Safety
/// The launch contract of [`Arguments`]; one thread of the block calls it.
#[inline(always)]
pub unsafe fn produce<
    C: Config<REGISTERS>,
    const REGISTERS: usize,
    const PANELS: usize,
    const GROUP: usize,
    const STAGES: usize,
>(
    arguments: &Arguments,
    maps: &Maps<C::A, <C::B as Panel>::Tile>,
    mut ring: Producer<Stage<C::A, C::B, PANELS, GROUP>, STAGES, C::Scope>,
) {
    maps.a.prefetch();
    maps.b.prefetch();
    let worker = thread::block_idx_x() / C::Scope::BLOCKS;
    // SAFETY: a special register.
    let rank = if C::Scope::BLOCKS == 1 { 0 } else { unsafe { cluster::cluster_ctarank() } };
    let panel_cols = (C::B::COLS * PANELS) as u32;

    // SAFETY: the offsets have one more element than there are workers.
    let (first, last) = unsafe { (arguments.tile_offsets.get(worker), arguments.tile_offsets.get(worker + 1)) };
    let mut index = first;
    // SAFETY: a worker's tiles are in the list; a worker has at least one.
    let mut next_tile = unsafe { arguments.tile(first) };
    while index < last {
        let tile = next_tile;
        index += 1;
        // SAFETY: as above; past the end, the last one again.
        next_tile = unsafe { arguments.tile(if index < last { index } else { last - 1 }) };
        let n = ((tile.panel * C::Scope::BLOCKS + rank) * panel_cols) as i32;
        let (mut entry, end) = (tile.begin * GROUP as u32, tile.end * GROUP as u32);
        if entry < end {
            // SAFETY: a tile's blocks are in the list.
            let mut next = unsafe { arguments.blocks.get(entry) };
            while entry < end {
                let mut current = [[0; 2]; GROUP];
                let mut g = 0;
                while g < GROUP {
                    current[g] = next;
                    entry += 1;
                    // The next entry is fetched before the wait below; past the end, the last one again.
                    // SAFETY: the index stays within the tile's blocks.
                    next = unsafe { arguments.blocks.get(if entry < end { entry } else { end - 1 }) };
                    g += 1;
                }
                let slot = ring.acquire();
                let mut g = 0;
                while g < GROUP {
                    let [block, column] = current[g];
                    let operands = slot.stage().at(g as u32);
                    let k = (column as usize * C::A::COLS) as i32;
                    // SAFETY: the operands are parts of the slot's stage, each filled once.
                    unsafe {
                        load_a::<C::A, C::B, PANELS, _, _>(&slot, operands, maps.a, [block, rank], arguments.policy_a);
                        let mut panel = 0;
                        while panel < PANELS as u32 {
                            let b = Operands::b(operands).at(panel);
                            let at = [k, n + (panel * C::B::COLS as u32) as i32];
                            C::B::load(&slot, b, maps.b, at, arguments.policy_b);
                            // Two panels in a loop: written out, their addresses exceed the producer's registers.
                            panel = if PANELS == 1 { 1 } else { opaque(panel + 1) };
                        }
                    }
                    g += 1;
                }
            }
        }
    }
    if C::Scope::BLOCKS > 1 {
        // A block must not end while its neighbour's consumers may still arrive at its barriers.
        ring.drain();
    }
}

/// Starts the copy of a block of A: all of it, or in a cluster this block's share of its rows, to every block.
///
/// # Safety
/// As [`EmptySlot::load_3d`].
#[inline(always)]
unsafe fn load_a<A: TileShape, B, const PANELS: usize, St, S: Scope>(
    slot: &EmptySlot<St, S>,
    operands: Shared<Operands<A, B, PANELS>>,
    map: TensorMapRef<A>,
    [block, rank]: [u32; 2],
    policy: CachePolicy,
) {
    let a = Operands::a(operands);
    if S::BLOCKS == 1 {
        // SAFETY: the caller's promise.
        unsafe { slot.load_3d_hinted(a, map, [0, 0, block as i32], policy) };
    } else {
        let rows = A::ROWS as u32 / S::BLOCKS;
        // SAFETY: the share's rows are a part of the tile, and a multiple of eight of them keeps the swizzle's atoms.
        unsafe {
            let share = a.project::<A>((rank * rows) as usize * A::COLS * 2);
            slot.load_3d_multicast_hinted(share, map, [0, (rank * rows) as i32, block as i32], policy);
        }
    }
}
