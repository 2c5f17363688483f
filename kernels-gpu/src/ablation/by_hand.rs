//! The kernels whose threads copy the operands themselves: loads to registers, stores to shared memory, a barrier.

// `seq!` writes an expression out for each index, and for index 0 it says what nobody would write by hand.
#![allow(clippy::erasing_op, clippy::identity_op)]

use hopper_std::half::{Bf16, Half};
use hopper_std::hint::opaque;
use hopper_std::ptx::convert::fma_rn_f32;
use hopper_std::ptx::fence::fence_proxy_async_shared_cta;
use hopper_std::ptx::memory::{ld_global_nc_u16, ld_global_nc_v4_u32, ld_shared_v4_u32, st_shared_v4_u32};
use hopper_std::ptx::wgmma::{Mma, Registers};
use hopper_std::seq;
use hopper_std::sm90::{Accumulator, AccumulatorFragment, Initial, Shared, SharedMemory, WarpGroup};
use hopper_std::thread;
use hopper_std::warp::lane_id;

use super::config::{Arguments, BLOCK_COLS, BLOCK_ROWS, BlockOfA, KernelSmem, Operands, PanelOfB};
use crate::bcsr::config::Operands as Factors;
use crate::store::{Meeting, Place, store};

/// Threads of a block: two warp groups of 64 rows.
pub const THREADS: u32 = 2 * WarpGroup::THREADS;

/// Elements that a thread copies at once.
const UNIT: u32 = 8;

/// Units of a line of 64 elements.
const UNITS: u32 = BLOCK_COLS as u32 / UNIT;

/// Units of A that a thread copies.
const UNITS_OF_A: usize = BLOCK_ROWS * UNITS as usize / THREADS as usize;

/// What multiplies.
pub trait Multiplier<const N: usize, const REGISTERS: usize> {
    /// After its writes and before the barrier, so that the multiplier sees them. Thread.
    fn publish();

    /// D += A B, with the 64 rows of A from `first_row` on. Warp group.
    ///
    /// # Safety
    /// All warps of the warp group call it together, on a stage that stays as it is until it returns.
    unsafe fn multiply(accumulator: &mut Accumulator<REGISTERS>, stage: Shared<Operands<N>>, first_row: u32, warp: u32);
}

/// The CUDA cores.
pub enum Cores {}

/// The tensor cores.
pub enum TensorCores {}

impl Multiplier<128, 64> for Cores {
    #[inline(always)]
    fn publish() {}

    /// Each thread has the elements of D that it would have of a product by tensor cores.
    #[inline(always)]
    unsafe fn multiply(accumulator: &mut Accumulator<64>, stage: Shared<Operands<128>>, first_row: u32, warp: u32) {
        let operands = stage.at(0);
        let (a, b) = (Factors::a(operands), Factors::b(operands).at(0));
        let (row, col) = (first_row + AccumulatorFragment::row(warp, lane_id()), AccumulatorFragment::col(lane_id()));
        let registers = accumulator.modify();
        let mut unit = 0;
        while unit < UNITS {
            // SAFETY: the units are the stage's.
            unsafe {
                let left = |row| ld_shared_v4_u32(a.address() + BlockOfA::unit_offset(row, unit));
                let right = |col| ld_shared_v4_u32(b.address() + PanelOfB::<128>::unit_offset(col, unit));
                let (upper, lower) = (left(row), left(row + 8));
                seq!(G in 0..16 {
                    let (first, second) = (right(G * 8 + col), right(G * 8 + col + 1));
                    registers[G * 4] = add_unit(registers[G * 4], upper, first);
                    registers[G * 4 + 1] = add_unit(registers[G * 4 + 1], upper, second);
                    registers[G * 4 + 2] = add_unit(registers[G * 4 + 2], lower, first);
                    registers[G * 4 + 3] = add_unit(registers[G * 4 + 3], lower, second);
                });
            }
            unit = opaque(unit + 1);
        }
    }
}

/// The sum with eight products, one after the other.
#[inline(always)]
fn add_unit(mut sum: f32, left: [u32; 4], right: [u32; 4]) -> f32 {
    let mut word = 0;
    while word < 4 {
        let ((a, b), (c, d)) = (Bf16::unpack(left[word]), Bf16::unpack(right[word]));
        // SAFETY: arithmetic has no preconditions.
        sum = unsafe { fma_rn_f32(b, d, fma_rn_f32(a, c, sum)) };
        word += 1;
    }
    sum
}

impl<const N: usize, const REGISTERS: usize> Multiplier<N, REGISTERS> for TensorCores
where
    Bf16: Mma<REGISTERS>,
    [f32; REGISTERS]: Registers,
{
    #[inline(always)]
    fn publish() {
        // SAFETY: a fence has no preconditions.
        unsafe { fence_proxy_async_shared_cta() }
    }

    #[inline(always)]
    unsafe fn multiply(accumulator: &mut Accumulator<REGISTERS>, stage: Shared<Operands<N>>, first_row: u32, _: u32) {
        let operands = stage.at(0);
        let (a, b) = (Factors::a(operands).k_major(first_row), Factors::b(operands).at(0).k_major(0));
        // SAFETY: the caller's promise.
        unsafe {
            let flight = accumulator.start(Initial::Kept, (), |products, ()| {
                let mut step = 0;
                while step < BLOCK_COLS as u32 / 16 {
                    products.add::<Bf16, _>(a, b, step);
                    step += 1;
                }
            });
            flight.wait();
        }
    }
}

/// The kernels without the copy engine. Block.
///
/// # Safety
/// The launch contract of [`Arguments`].
#[inline(always)]
pub unsafe fn run<
    M: Multiplier<N, REGISTERS>,
    const N: usize,
    const REGISTERS: usize,
    const PANEL_UNITS: usize,
    const STAGING_COLS: usize,
>(
    arguments: Arguments,
) where
    [f32; REGISTERS]: Registers,
{
    const { assert!(REGISTERS * 2 == N && PANEL_UNITS * THREADS as usize == N * UNITS as usize, "all of a panel") };
    // SAFETY: the specification asks for this struct's bytes; every thread of the block is here.
    let (smem, warp_group) = unsafe { (SharedMemory::<KernelSmem<N, 1, STAGING_COLS>>::take(), WarpGroup::current()) };
    let stage = KernelSmem::<N, 1, STAGING_COLS>::stages(smem).at(0);
    let staging = KernelSmem::<N, 1, STAGING_COLS>::staging(smem).at(warp_group.index());
    let (first_row, warp, worker) = (warp_group.index() * 64, warp_group.warp(), thread::block_idx_x());
    let lists = arguments.bcsr;
    // SAFETY: the offsets have one more element than there are workers.
    let (mut index, last) = unsafe { (lists.tile_offsets.get(worker), lists.tile_offsets.get(worker + 1)) };
    while index < last {
        // SAFETY: a worker's tiles are in the list.
        let tile = unsafe { lists.tile(index) };
        let (mut accumulator, col) = (Accumulator::<REGISTERS>::zeroed(), tile.panel * N as u32);
        let mut at = tile.begin;
        while at < tile.end {
            // SAFETY: a tile's blocks are in the list; the stage is free between the barriers, and full after them.
            unsafe {
                let [block, column] = lists.blocks.get(at);
                let (a, b) = (load_a(&arguments, block), load_b::<PANEL_UNITS>(&arguments, col, column));
                thread::sync_threads();
                store_units::<BLOCK_ROWS, UNITS_OF_A>(Factors::a(stage.at(0)), a);
                store_units::<N, PANEL_UNITS>(Factors::b(stage.at(0)).at(0), b);
                M::publish();
                thread::sync_threads();
                M::multiply(&mut accumulator, stage, first_row, warp);
            }
            at += 1;
        }
        let row = tile.row_block * BLOCK_ROWS as u32 + first_row;
        let place = Place { row, col, warp, meeting: Meeting::of_consumer(warp_group.index()) };
        // SAFETY: the whole warp group is here; the launch contract covers C.
        unsafe { store::<Bf16, REGISTERS, STAGING_COLS>(&lists.output, &mut accumulator, place, staging) };
        index += 1;
    }
}

/// Line and unit of this thread's unit `index`.
#[inline(always)]
fn place_of(index: usize) -> (u32, u32) {
    let at = index as u32 * THREADS + thread::thread_idx_x();
    (at / UNITS, at % UNITS)
}

/// This thread's units of a block of A.
///
/// # Safety
/// A has the block.
#[inline(always)]
unsafe fn load_a(arguments: &Arguments, block: u32) -> [[u32; 4]; UNITS_OF_A] {
    let first = arguments.values.wrapping_add(block as usize * (BLOCK_ROWS * BLOCK_COLS * 2));
    let mut units = [[0; 4]; UNITS_OF_A];
    let mut index = 0;
    while index < UNITS_OF_A {
        let (line, unit) = place_of(index);
        let address = first.wrapping_add(((line * UNITS + unit) * UNIT) as usize * 2);
        // SAFETY: the unit is the block's, and aligned.
        units[index] = unsafe { ld_global_nc_v4_u32(address.cast()) };
        index += 1;
    }
    units
}

/// This thread's units of the panel of B that begins at column `col`, rows of block column `column`; zeros beyond the edges.
///
/// # Safety
/// B is as the contract says.
#[inline(always)]
unsafe fn load_b<const PANEL_UNITS: usize>(arguments: &Arguments, col: u32, column: u32) -> [[u32; 4]; PANEL_UNITS] {
    let mut units = [[0; 4]; PANEL_UNITS];
    let mut index = 0;
    while index < PANEL_UNITS {
        let (line, unit) = place_of(index);
        let (line, first) = (col + line, column * BLOCK_COLS as u32 + unit * UNIT);
        let position = u64::from(line) * arguments.b_leading_dimension + u64::from(first);
        let address = arguments.b.wrapping_add(position as usize * 2);
        if line < arguments.bcsr.output.num_cols && first < arguments.num_inner {
            let there = arguments.num_inner - first;
            // SAFETY: the unit begins within B's line, and as many elements of it are there.
            units[index] = unsafe {
                if there >= UNIT { ld_global_nc_v4_u32(address.cast()) } else { load_some(address.cast(), there) }
            };
        }
        index += 1;
    }
    units
}

/// The first `count` elements of a unit, fewer than eight, and zeros.
///
/// # Safety
/// They are there.
#[inline(always)]
unsafe fn load_some(address: *const u16, count: u32) -> [u32; 4] {
    let element = |index: usize| {
        if (index as u32) < count {
            // SAFETY: the caller's promise.
            u32::from(unsafe { ld_global_nc_u16(address.wrapping_add(index)) })
        } else {
            0
        }
    };
    let pair = |word: usize| element(2 * word) | element(2 * word + 1) << 16;
    [pair(0), pair(1), pair(2), pair(3)]
}

/// Stores this thread's units of a tile, swizzled.
///
/// # Safety
/// Nobody reads the tile, and no other thread has these units.
#[inline(always)]
unsafe fn store_units<const LINES: usize, const COUNT: usize>(tile: Shared<PanelOfB<LINES>>, units: [[u32; 4]; COUNT]) {
    let mut index = 0;
    while index < COUNT {
        let (line, unit) = place_of(index);
        // SAFETY: the unit is the tile's, and aligned.
        unsafe { st_shared_v4_u32(tile.address() + PanelOfB::<LINES>::unit_offset(line, unit), units[index]) };
        index += 1;
    }
}
