//! The consumers of narrow windows, of 8 or 16 rows: C^T = B^T V^T, so that no row of a product is empty.
//!
//! ```text
//!        wide: D = V B                  narrow: D^T = B^T V^T
//!        64 rows of the window          64 columns of B, as they lie: M along a line, K across
//!        x TN columns of B              x 8 or 16 rows of the window, as they lie: K along a line
//! ```
//!
//! A consumer has 64 columns of the panel of B. What it holds is a part of C^T, which the [store](crate::store) of a C read the other
//! way round writes. An entry of the list has several windows, whose panels of V follow one another: the producer fills stages
//! with them and need not know where one ends, so that a stage is full though a window has a panel or two.

use hopper_std::ptx::wgmma::Registers;
use hopper_std::sm90::{Accumulator, BlockScope, Consumer, FullSlot, Products, Shared, TileShape, WarpGroup};
use hopper_std::thread;

use super::config::{Arguments, CHUNK, Config, EIGHTS_PER_PANEL, Operands, Panels, STORED, Stage, TileWork};
use crate::store::{Meeting, Output, Place, Staging, store};

/// Registers of what is stored at once, 16 rows of C: of a window of 8 the output ends with the eighth.
const STORED_REGISTERS: usize = 8;

/// Multiplies and stores this worker's windows. Warp group.
///
/// # Safety
/// The launch contract of [`Arguments`]; all warps of consumer warp group `consumer` call it.
#[inline(always)]
pub unsafe fn consume_narrow<
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
    // NOTE: a barrier that is no constant takes all sixteen of a block, and multiprocessors have a limit to them.
    let chunk = if CHUNKS == 1 { 0 } else { warp_group.index() - 1 };
    let stage_panels = (EIGHTS / EIGHTS_PER_PANEL) as u32;
    let worker = thread::block_idx_x();
    // SAFETY: the offsets have one more element than there are workers.
    let (first, last) = unsafe { (arguments.tile_offsets.get(worker), arguments.tile_offsets.get(worker + 1)) };
    let mut index = first;
    while index < last {
        // SAFETY: a worker's tiles are in the list.
        let tile = unsafe { arguments.tile(index) };
        let (mut at, mut stage_begin, mut held, mut widths) = (tile.begin, tile.begin, None, tile.widths);
        let mut window = 0;
        while window < tile.windows {
            let end = window_end(&tile, at, widths);
            let mut accumulator = Accumulator::<REGISTERS>::zeroed();
            let mut pending = accumulator.begin();
            while at < end {
                let slot = match held.take() {
                    Some(slot) => slot,
                    None => ring.wait(),
                };
                let stage_end = least(tile.end, stage_begin + stage_panels);
                let upto = least(end, stage_end);
                // SAFETY: the whole warp group is here; the operands are parts of the slot, which is held until a wait.
                unsafe {
                    while at + 1 < upto {
                        pending.multiply_more(&slot, |products, slot| {
                            multiply_panel::<C, REGISTERS, WINDOW_ROWS, LINES, CHUNKS, COPIES, EIGHTS>(
                                products,
                                slot,
                                chunk,
                                at - stage_begin,
                            );
                        });
                        at += 1;
                    }
                    let issue = |products: &mut Products<'_, REGISTERS>, slot: &_| {
                        multiply_panel::<C, REGISTERS, WINDOW_ROWS, LINES, CHUNKS, COPIES, EIGHTS>(
                            products,
                            slot,
                            chunk,
                            at - stage_begin,
                        );
                    };
                    if upto == stage_end {
                        if let Some(slot) = pending.multiply(slot, issue) {
                            slot.release();
                        }
                        stage_begin = stage_end;
                    } else {
                        // The rest of the stage is the next window's.
                        pending.multiply_more(&slot, issue);
                        held = Some(slot);
                    }
                }
                at = upto;
            }
            // SAFETY: the whole warp group is here.
            if let Some(slot) = unsafe { pending.wait() } {
                slot.release();
            }
            let (output, row, col) = destination::<WINDOW_ROWS, CHUNKS>(arguments, &tile, window);
            let place = Place {
                row: row + chunk * CHUNK as u32,
                col,
                warp: warp_group.warp(),
                meeting: Meeting::of_consumer(chunk),
            };
            let mut stored = accumulator.resized::<STORED_REGISTERS>();
            // SAFETY: the whole warp group is here; the launch contract covers C and the workspace.
            unsafe { store::<C::Element, STORED_REGISTERS, STAGING_COLS>(&output, &mut stored, place, staging) };
            widths >>= 8;
            window += 1;
        }
        index += 1;
    }
}

const fn least(left: u32, right: u32) -> u32 {
    if left < right { left } else { right }
}

/// One past the last panel of a window that begins at panel `begin`; its width is the lowest byte of `widths`, where the entry
/// has more than one window.
#[inline(always)]
fn window_end(tile: &TileWork, begin: u32, widths: u64) -> u32 {
    if tile.windows == 1 {
        return tile.end;
    }
    // With alpha = 0 the entry has no panels, whatever its windows have.
    least(tile.end, begin + (widths as u32 & 0xff))
}

/// Where a window is stored, by its columns, and the row and column at which it begins there: C, or its slot of the workspace.
#[inline(always)]
fn destination<const WINDOW_ROWS: usize, const CHUNKS: usize>(
    arguments: &Arguments,
    tile: &TileWork,
    window: u32,
) -> (Output, u32, u32) {
    let tile_n = CHUNKS * CHUNK;
    if tile.slot == STORED {
        let row = (tile.window + window) * WINDOW_ROWS as u32;
        return (arguments.output.transposed().until(row + WINDOW_ROWS as u32), tile.panel * tile_n as u32, row);
    }
    (arguments.sums(tile.slot, WINDOW_ROWS, tile_n).transposed(), 0, 0)
}

/// The product of one of a stage's panels, 16 of K, with chunk `chunk` of its rows of B.
///
/// # Safety
/// As [`Pending::multiply`](hopper_std::sm90::Pending::multiply), within whose `issue` this is called.
#[inline(always)]
unsafe fn multiply_panel<
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
    chunk: u32,
    panel: u32,
) {
    let line = panel * WINDOW_ROWS as u32;
    let lines = <Panels<C::Element, LINES> as TileShape>::ROWS as u32;
    let v = Stage::v(slot.stage()).at(line / lines).k_major(line % lines);
    let b = Stage::b(slot.stage()).mn_major_chunk(panel * EIGHTS_PER_PANEL as u32, chunk);
    // SAFETY: the caller's promise.
    unsafe { products.add::<C::Element, _>(b, v, 0) };
}
