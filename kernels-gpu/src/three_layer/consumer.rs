//! The consumers: products of two layers, the residual, then the store.

// `seq!` writes an expression out for each index, and for index 0 it says what nobody would write by hand.
#![allow(clippy::erasing_op, clippy::identity_op)]

use hopper_std::half::Half;
use hopper_std::ptx::wgmma::{Registers, SparseMma};
use hopper_std::sm90::{Accumulator, BlockScope, Consumer, FullSlot, Metadata, Pending, Products, Shared, WarpGroup};
use hopper_std::thread;

use super::config::{Arguments, CONSUMER_ROWS, Lifted, Stage, Values, WTile};
use super::layout::WARPS;
use super::lift::{Layers, Lifter};
use super::residual::add_residual;
use crate::linear::finish;

/// What a stage's products read; the second layer outlives them.
type InFlight<E, const TOKENS: usize> = (FullSlot<Stage<E, TOKENS>, BlockScope>, Metadata<4>);

/// Multiplies this worker's pieces. Warp group.
///
/// # Safety
/// The launch contract of [`Arguments`]; all warps of a consumer warp group call it.
#[inline(always)]
pub(super) unsafe fn consume<
    E: Half + SparseMma<REGISTERS>,
    const REGISTERS: usize,
    const TOKENS: usize,
    const STAGES: usize,
>(
    arguments: &Arguments,
    warp_group: WarpGroup,
    second: Shared<[Values<E>; 3]>,
    lifted: Shared<[Lifted; WARPS]>,
    mut ring: Consumer<Stage<E, TOKENS>, STAGES, BlockScope>,
) where
    [f32; REGISTERS]: Registers,
{
    let consumer = warp_group.index() - 1;
    let warp = consumer * 4 + warp_group.warp();
    // SAFETY: all consumer warps are here, each with a place of its own.
    let mut lifter = unsafe { Lifter::new(second, lifted.at(warp), warp) };
    let mut index = arguments.work.first(thread::block_idx_x());
    loop {
        let mut sums = Accumulator::<REGISTERS>::zeroed();
        // SAFETY: the list has a worker's pieces. The whole warp group is here, as at each stage below, and all consumers have the same
        // stages; layers are lifted, published and multiplied in turn.
        unsafe {
            let piece = arguments.work.piece(index);
            let (mut tile, end) = arguments.tiles_of(&piece);
            let mut pending = sums.begin::<InFlight<E, TOKENS>>();
            while tile < end {
                let slot = ring.wait();
                let layers = lifter.lift(Stage::w(slot.stage()));
                if let Some((done, metadata)) = pending.wait_all() {
                    metadata.end();
                    done.release();
                }
                lifter.publish(&layers);
                multiply::<E, REGISTERS, TOKENS>(&mut pending, slot, &layers, consumer);
                tile += 1;
            }
            if let Some((done, metadata)) = pending.wait_all() {
                metadata.end();
                done.release();
            }
            if piece.part == 0 {
                add_residual::<E, REGISTERS>(arguments, &piece, warp, &mut sums);
            }
            finish::<E, REGISTERS>(&arguments.output, &piece, warp, &mut sums);
            if piece.behind == 0 {
                break;
            }
        }
        index += 1;
    }
}

/// Issues sums += W X^T over 128 columns, a group for each layer. Warp group.
///
/// # Safety
/// As [`Pending::multiply_more`]; the layers are published, and the second one is not written before the wait.
#[inline(always)]
unsafe fn multiply<E: SparseMma<REGISTERS>, const REGISTERS: usize, const TOKENS: usize>(
    pending: &mut Pending<'_, REGISTERS, InFlight<E, TOKENS>>,
    slot: FullSlot<Stage<E, TOKENS>, BlockScope>,
    layers: &Layers<E>,
    consumer: u32,
) where
    [f32; REGISTERS]: Registers,
{
    // SAFETY: the caller's promise.
    unsafe {
        let read = (slot, layers.metadata());
        pending.multiply_more(&read, |products, (slot, metadata)| {
            let first = WTile::values(Stage::w(slot.stage()));
            multiply_layer::<E, REGISTERS, TOKENS, 0>(products, slot, first, metadata, consumer);
        });
        if layers.has_second {
            pending.multiply_more(&read, |products, (slot, metadata)| {
                multiply_layer::<E, REGISTERS, TOKENS, 2>(products, slot, layers.second, metadata, consumer);
            });
        }
        pending.keep(read);
    }
}

/// The products of a layer, whose words of metadata are `WORD` and the one after it.
///
/// # Safety
/// As [`multiply`], within whose group this is called.
#[inline(always)]
unsafe fn multiply_layer<E: SparseMma<REGISTERS>, const REGISTERS: usize, const TOKENS: usize, const WORD: usize>(
    products: &mut Products<'_, REGISTERS>,
    slot: &FullSlot<Stage<E, TOKENS>, BlockScope>,
    values: Shared<Values<E>>,
    metadata: &Metadata<4>,
    consumer: u32,
) {
    let a = values.k_major(consumer * CONSUMER_ROWS as u32);
    // SAFETY: the caller's promise. Of a box of X there are two steps; half of the lanes have the words of every other step.
    unsafe {
        hopper_std::seq!(HALF in 0..2 {
            let x = Stage::x(slot.stage()).at(HALF).k_major(0);
            products.add_sparse::<E, _, 0, 4>(a, x, [HALF * 2, 0], metadata, WORD + HALF);
            products.add_sparse::<E, _, 1, 4>(a, x, [HALF * 2 + 1, 2], metadata, WORD + HALF);
        });
    }
}
