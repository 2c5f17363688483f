//! The consumers of the copy engine's stages, in a block of their own roles and in one that has none.

use hopper_std::half::Bf16;
use hopper_std::ptx::warp::bar_warp_sync;
use hopper_std::ptx::wgmma::{Mma, Registers};
use hopper_std::sm90::{Accumulator, BlockScope, Consumer, Initial, Producer, Shared, WarpGroup};
use hopper_std::thread;

use super::config::{Arguments, BLOCK_COLS, BLOCK_ROWS, BlockOfA, Columns, Operands, PanelOfB};
use crate::bcsr::TileWork;
use crate::bcsr::config::{Operands as Factors, Panel};
use crate::bcsr::consumer::multiply_stage;
use crate::bcsr::producer::Maps;
use crate::store::{Meeting, Place, Staging, store};

/// The operands' halves of the ring, for threads that fill and read in turn.
pub type Ring<const N: usize> = (Producer<Operands<N>, 1, BlockScope>, Consumer<Operands<N>, 1, BlockScope>);

/// Multiplies and stores this worker's tiles, whose stages another warp group brings. Warp group.
///
/// # Safety
/// The launch contract of [`Arguments`]; all warps of consumer `consumer`, 0 or 1, call it.
#[inline(always)]
pub unsafe fn consume<
    const N: usize,
    const REGISTERS: usize,
    const STORED: usize,
    const STAGES: usize,
    const STAGING_COLS: usize,
>(
    arguments: &Arguments,
    (warp_group, consumer): (WarpGroup, u32),
    staging: Shared<Staging<STAGING_COLS>>,
    mut ring: Consumer<Operands<N>, STAGES, BlockScope>,
) where
    Bf16: Mma<REGISTERS>,
    [f32; REGISTERS]: Registers,
    [f32; STORED]: Registers,
{
    let sum = |accumulator: &mut Accumulator<REGISTERS>, tile: &TileWork| {
        // SAFETY: the whole warp group is here; the operands are parts of the slot.
        unsafe {
            if STAGES == 1 {
                let mut stage = tile.begin;
                while stage < tile.end {
                    multiply_at_once::<N, REGISTERS, STAGES>(accumulator, &mut ring, consumer);
                    stage += 1;
                }
            } else {
                multiply_one_behind_another::<N, REGISTERS, STAGES>(accumulator, &mut ring, tile, consumer);
            }
        }
    };
    // SAFETY: the caller's promise.
    unsafe { each_tile::<N, REGISTERS, STORED, STAGING_COLS>(arguments, (warp_group, consumer), staging, sum) }
}

/// As [`consume`], where the first thread of the block also asks for the stages. Block.
///
/// # Safety
/// As [`consume`], of both consumers, which are all of the block.
#[inline(always)]
pub unsafe fn fill_and_consume<const N: usize, const REGISTERS: usize, const STAGING_COLS: usize>(
    arguments: &Arguments,
    maps: &Maps<BlockOfA, PanelOfB<N>>,
    warp_group: WarpGroup,
    staging: Shared<Staging<STAGING_COLS>>,
    (mut producer, mut ring): Ring<N>,
) where
    Bf16: Mma<REGISTERS>,
    [f32; REGISTERS]: Registers,
{
    let (consumer, lists) = (warp_group.index(), arguments.bcsr);
    let sum = |accumulator: &mut Accumulator<REGISTERS>, tile: &TileWork| {
        let (n, mut stage) = ((tile.panel as usize * N) as i32, tile.begin);
        while stage < tile.end {
            // SAFETY: a tile's blocks are in the list; the operands are parts of the slot, each filled once; the warp comes
            // together before the whole warp group multiplies.
            unsafe {
                if thread::thread_idx_x() == 0 {
                    let [block, column] = lists.blocks.get(stage);
                    let slot = producer.acquire();
                    let (operands, k) = (slot.stage().at(0), (column as usize * BLOCK_COLS) as i32);
                    slot.load_3d_hinted(Factors::a(operands), maps.a, [0, 0, block as i32], lists.policy_a);
                    Panel::load(&slot, Factors::b(operands).at(0), maps.b, [k, n], lists.policy_b);
                }
                bar_warp_sync();
                multiply_at_once::<N, REGISTERS, 1>(accumulator, &mut ring, consumer);
            }
            stage += 1;
        }
    };
    // SAFETY: the caller's promise.
    unsafe { each_tile::<N, REGISTERS, REGISTERS, STAGING_COLS>(arguments, (warp_group, consumer), staging, sum) }
}

/// Adds up and stores each of this worker's tiles. Warp group.
///
/// # Safety
/// The launch contract of [`Arguments`]; all warps of the consumer call it.
#[inline(always)]
unsafe fn each_tile<const N: usize, const REGISTERS: usize, const STORED: usize, const STAGING_COLS: usize>(
    arguments: &Arguments,
    (warp_group, consumer): (WarpGroup, u32),
    staging: Shared<Staging<STAGING_COLS>>,
    mut sum: impl FnMut(&mut Accumulator<REGISTERS>, &TileWork),
) where
    [f32; REGISTERS]: Registers,
    [f32; STORED]: Registers,
{
    let (lists, worker) = (arguments.bcsr, thread::block_idx_x());
    // SAFETY: the offsets have one more element than there are workers.
    let (mut index, last) = unsafe { (lists.tile_offsets.get(worker), lists.tile_offsets.get(worker + 1)) };
    while index < last {
        // SAFETY: a worker's tiles are in the list.
        let tile = unsafe { lists.tile(index) };
        let mut accumulator = Accumulator::<REGISTERS>::zeroed();
        sum(&mut accumulator, &tile);
        let (row, col) = (tile.row_block * BLOCK_ROWS as u32 + consumer * 64, tile.panel * N as u32);
        let place = Place { row, col, warp: warp_group.warp(), meeting: Meeting::of_consumer(consumer) };
        // What is stored has 16 columns at least; a narrower tile ends before.
        let (output, mut stored) = (lists.output.until(col + N as u32), accumulator.resized::<STORED>());
        // SAFETY: the whole warp group is here; the launch contract covers C.
        unsafe { store::<Bf16, STORED, STAGING_COLS>(&output, &mut stored, place, staging) };
        index += 1;
    }
}

/// Multiplies one stage, waits for it and gives it back: with a single stage the producer could not go on otherwise.
///
/// # Safety
/// All warps of the warp group call it together.
#[inline(always)]
unsafe fn multiply_at_once<const N: usize, const REGISTERS: usize, const STAGES: usize>(
    accumulator: &mut Accumulator<REGISTERS>,
    ring: &mut Consumer<Operands<N>, STAGES, BlockScope>,
    consumer: u32,
) where
    Bf16: Mma<REGISTERS>,
    [f32; REGISTERS]: Registers,
{
    // SAFETY: the caller's promise; the operands are parts of the slot.
    let slot = unsafe {
        let flight = accumulator.start(Initial::Kept, ring.wait(), |products, slot| {
            multiply_stage::<Columns<N>, REGISTERS, 1, 1>(products, slot, consumer * 64, 0);
        });
        flight.wait()
    };
    slot.release();
}

/// Multiplies all stages of a tile; each is given back when the products of the next are in flight.
///
/// # Safety
/// All warps of the warp group call it together.
#[inline(always)]
unsafe fn multiply_one_behind_another<const N: usize, const REGISTERS: usize, const STAGES: usize>(
    accumulator: &mut Accumulator<REGISTERS>,
    ring: &mut Consumer<Operands<N>, STAGES, BlockScope>,
    tile: &TileWork,
    consumer: u32,
) where
    Bf16: Mma<REGISTERS>,
    [f32; REGISTERS]: Registers,
{
    let mut pending = accumulator.begin();
    let mut stage = tile.begin;
    while stage < tile.end {
        // SAFETY: the caller's promise; the operands are parts of the slot.
        let read = unsafe {
            pending.multiply(ring.wait(), |products, slot| {
                multiply_stage::<Columns<N>, REGISTERS, 1, 1>(products, slot, consumer * 64, 0);
            })
        };
        if let Some(slot) = read {
            slot.release();
        }
        stage += 1;
    }
    // SAFETY: the caller's promise.
    if let Some(slot) = unsafe { pending.wait() } {
        slot.release();
    }
}
