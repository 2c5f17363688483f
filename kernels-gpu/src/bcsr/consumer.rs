//! The consumers: products, then the store.

use hopper_std::ptx::cluster;
use hopper_std::ptx::wgmma::Registers;
use hopper_std::sm90::{Accumulator, Consumer, FullSlot, Products, Scope, Shared, TileShape, WarpGroup};
use hopper_std::thread;

use super::config::{ABlock, Arguments, Config, Operands, Panel, STAGE_K, Stage};
use crate::store::{Meeting, Place, Staging, store};

/// Multiplies and stores this worker's tiles. Warp group.
///
/// # Safety
/// The launch contract of [`Arguments`]; all warps of consumer warp group `consumer` (0 or 1) call it.
#[inline(always)]
pub unsafe fn consume<
    C: Config<REGISTERS>,
    const REGISTERS: usize,
    const PANELS: usize,
    const GROUP: usize,
    const STAGES: usize,
    const STAGING_COLS: usize,
>(
    arguments: &Arguments,
    warp_group: WarpGroup,
    staging: Shared<Staging<STAGING_COLS>>,
    mut ring: Consumer<Stage<C::A, C::B, PANELS, GROUP>, STAGES, C::Scope>,
) where
    [f32; REGISTERS]: Registers,
{
    let consumer = warp_group.index() - 1;
    // One panel: the consumers split the rows. Two: they split the columns.
    let (first_row, panel) = if PANELS == 1 { (consumer * 64, 0) } else { (0, consumer) };
    let worker = thread::block_idx_x() / C::Scope::BLOCKS;
    // SAFETY: a special register.
    let rank = if C::Scope::BLOCKS == 1 { 0 } else { unsafe { cluster::cluster_ctarank() } };
    let panel_cols = (C::B::COLS * PANELS) as u32;

    // SAFETY: the offsets have one more element than there are workers.
    let (first, last) = unsafe { (arguments.tile_offsets.get(worker), arguments.tile_offsets.get(worker + 1)) };
    let mut index = first;
    while index < last {
        // SAFETY: a worker's tiles are in the list.
        let tile = unsafe { arguments.tile(index) };
        // Zeros for the row blocks that have no block; they also end the life of the last tile's registers.
        let mut accumulator = Accumulator::<REGISTERS>::zeroed();
        let mut pending = accumulator.begin();
        let mut stage = tile.begin;
        while stage < tile.end {
            let slot = ring.wait();
            // SAFETY: the whole warp group is here; the operands are parts of the slot.
            let read = unsafe {
                pending.multiply(slot, |products, slot| {
                    multiply_stage::<C, REGISTERS, PANELS, GROUP>(products, slot, first_row, panel);
                })
            };
            if let Some(slot) = read {
                slot.release();
            }
            stage += 1;
        }
        // SAFETY: the whole warp group is here.
        if let Some(slot) = unsafe { pending.wait() } {
            slot.release();
        }
        let place = Place {
            row: tile.row_block * C::A::ROWS as u32 + first_row,
            col: (tile.panel * C::Scope::BLOCKS + rank) * panel_cols + panel * C::B::COLS as u32,
            warp: warp_group.warp(),
            meeting: Meeting::of_consumer(consumer),
        };
        // SAFETY: the whole warp group is here; the launch contract covers C.
        unsafe { store::<C::Element, REGISTERS, STAGING_COLS>(&arguments.output, &mut accumulator, place, staging) };
        index += 1;
    }
}

/// The products of one stage: 64 of K, in steps of 16.
///
/// # Safety
/// As [`Pending::multiply`](hopper_std::sm90::Pending::multiply), within whose `issue` this is called.
#[inline(always)]
pub(crate) unsafe fn multiply_stage<
    C: Config<REGISTERS>,
    const REGISTERS: usize,
    const PANELS: usize,
    const GROUP: usize,
>(
    products: &mut Products<'_, REGISTERS>,
    slot: &FullSlot<Stage<C::A, C::B, PANELS, GROUP>, C::Scope>,
    first_row: u32,
    panel: u32,
) {
    let mut group = 0;
    while group < GROUP as u32 {
        let operands = slot.stage().at(group);
        let a = C::A::operand(Operands::a(operands), first_row);
        let b = C::B::operand(Operands::b(operands).at(panel));
        let mut step = 0;
        while step < (STAGE_K / GROUP / 16) as u32 {
            // SAFETY: the caller's promise.
            unsafe { products.add::<C::Element, _>(a, b, step) };
            step += 1;
        }
        group += 1;
    }
}
