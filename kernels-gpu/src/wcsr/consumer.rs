//! The consumers: products, then the store to C or to the workspace.

use hopper_std::ptx::wgmma::Registers;
use hopper_std::sm90::{Accumulator, BlockScope, Consumer, FullSlot, Products, Shared, TileShape, WarpGroup};
use hopper_std::thread;

use super::config::{Arguments, CONSUMER_ROWS, Config, EIGHTS_PER_PANEL, Operands, Panels, STORED, Stage, TileWork};
use crate::store::{Meeting, Output, Place, Staging, store};

/// Multiplies and stores this worker's tiles. Warp group.
///
/// # Safety
/// The launch contract of [`Arguments`]; all warps of consumer warp group `consumer` call it.
#[inline(always)]
pub unsafe fn consume<
    C: Config<REGISTERS>,
    const REGISTERS: usize,
    const WINDOW_ROWS: usize,
    const LINES: usize,
    const CHUNKS: usize,
    const COPIES: usize,
    const EIGHTS: usize,
    const STAGES: usize,
    const STAGING_COLS: usize,
>(
    arguments: &Arguments,
    warp_group: WarpGroup,
    staging: Shared<Staging<STAGING_COLS>>,
    mut ring: Consumer<Operands<C::Element, LINES, CHUNKS, COPIES, EIGHTS>, STAGES, BlockScope>,
) where
    [f32; REGISTERS]: Registers,
{
    let consumer = warp_group.index() - 1;
    let first_row = consumer * CONSUMER_ROWS as u32;
    let stage_panels = (EIGHTS / EIGHTS_PER_PANEL) as u32;
    let worker = thread::block_idx_x();
    // SAFETY: the offsets have one more element than there are workers.
    let (first, last) = unsafe { (arguments.tile_offsets.get(worker), arguments.tile_offsets.get(worker + 1)) };
    let mut index = first;
    while index < last {
        // SAFETY: a worker's tiles are in the list.
        let tile = unsafe { arguments.tile(index) };
        // Zeros for the windows that have no column; they also end the life of the last tile's registers.
        let mut accumulator = Accumulator::<REGISTERS>::zeroed();
        let mut pending = accumulator.begin();
        let mut at = tile.begin;
        while at < tile.end {
            let panels = tile.panels_of_stage(at, stage_panels);
            let slot = ring.wait();
            // Each number of panels has a series of products of its own, without a branch in it.
            // SAFETY: the whole warp group is here; the operands are parts of the slot.
            let read = unsafe {
                if panels == stage_panels {
                    pending.multiply(slot, |products, slot| {
                        multiply_panels::<C, REGISTERS, WINDOW_ROWS, LINES, CHUNKS, COPIES, EIGHTS>(
                            products,
                            slot,
                            first_row,
                            0,
                            stage_panels,
                        );
                    })
                } else {
                    let mut panel = 0;
                    while panel + 1 < panels {
                        pending.multiply_more(&slot, |products, slot| {
                            multiply_panels::<C, REGISTERS, WINDOW_ROWS, LINES, CHUNKS, COPIES, EIGHTS>(
                                products, slot, first_row, panel, 1,
                            );
                        });
                        panel += 1;
                    }
                    pending.multiply(slot, |products, slot| {
                        multiply_panels::<C, REGISTERS, WINDOW_ROWS, LINES, CHUNKS, COPIES, EIGHTS>(
                            products, slot, first_row, panel, 1,
                        );
                    })
                }
            };
            if let Some(slot) = read {
                slot.release();
            }
            at += panels;
        }
        // SAFETY: the whole warp group is here.
        if let Some(slot) = unsafe { pending.wait() } {
            slot.release();
        }
        let (output, row, col) = destination::<WINDOW_ROWS, REGISTERS>(arguments, &tile);
        let place =
            Place { row: row + first_row, col, warp: warp_group.warp(), meeting: Meeting::of_consumer(consumer) };
        // SAFETY: the whole warp group is here; the launch contract covers C and the workspace.
        unsafe { store::<C::Element, REGISTERS, STAGING_COLS>(&output, &mut accumulator, place, staging) };
        index += 1;
    }
}

/// Where a tile is stored, and the row and column at which it begins there: C, or its slot of the workspace.
#[inline(always)]
fn destination<const WINDOW_ROWS: usize, const REGISTERS: usize>(
    arguments: &Arguments,
    tile: &TileWork,
) -> (Output, u32, u32) {
    let tile_n = 2 * REGISTERS;
    if tile.slot == STORED {
        return (arguments.output, tile.window * WINDOW_ROWS as u32, tile.panel * tile_n as u32);
    }
    (arguments.sums(tile.slot, WINDOW_ROWS, tile_n), 0, 0)
}

/// The products of `count` of a stage's panels from `first` on, 16 of K each.
///
/// # Safety
/// As [`Pending::multiply`](hopper_std::sm90::Pending::multiply), within whose `issue` this is called.
#[inline(always)]
unsafe fn multiply_panels<
    C: Config<REGISTERS>,
    const REGISTERS: usize,
    const WINDOW_ROWS: usize,
    const LINES: usize,
    const CHUNKS: usize,
    const COPIES: usize,
    const EIGHTS: usize,
>(
    products: &mut Products<'_, REGISTERS>,
    slot: &FullSlot<Operands<C::Element, LINES, CHUNKS, COPIES, EIGHTS>, BlockScope>,
    first_row: u32,
    first: u32,
    count: u32,
) {
    let mut panel = first;
    while panel < first + count {
        let line = panel * WINDOW_ROWS as u32;
        let lines = <Panels<C::Element, LINES> as TileShape>::ROWS as u32;
        let a = Stage::v(slot.stage()).at(line / lines).k_major(line % lines + first_row);
        let b = Stage::b(slot.stage()).mn_major_from(panel * EIGHTS_PER_PANEL as u32);
        // SAFETY: the caller's promise.
        unsafe { products.add::<C::Element, _>(a, b, 0) };
        panel += 1;
    }
}
