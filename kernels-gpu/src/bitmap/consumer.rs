//! The warps that decode and multiply.

// `seq!` writes an expression out for each index, and for index 0 it says what nobody would write by hand.
#![allow(clippy::identity_op)]

use hopper_std::half::Half;
use hopper_std::ptx::wgmma::{Mma, RegisterWords, Registers};
use hopper_std::sm90::{
    Accumulator, BlockScope, Consumer, Flight, FullSlot, Initial, LeftFragment, Shared, WarpGroup, WarpRing,
};
use hopper_std::thread;

use super::config::{Arguments, RING_GROUPS, XStage};
use super::strip::Strip;
use crate::linear::{UNIT_STEPS, WARPS, finish};

/// What the products of a part of a unit read.
type InFlight<E, const TOKENS: usize, const STEPS: usize, const WORDS: usize> =
    (FullSlot<XStage<E, TOKENS, STEPS>, BlockScope>, LeftFragment<WORDS>);

/// Multiplies this worker's pieces. Warp group.
///
/// `WORDS` are those of the left operand that are decoded at once: half a unit.
///
/// # Safety
/// The launch contract of [`Arguments`]; all warps of a consumer warp group call it.
#[inline(always)]
pub(super) unsafe fn consume<
    E: Half + Mma<REGISTERS>,
    const REGISTERS: usize,
    const TOKENS: usize,
    const STEPS: usize,
    const WORDS: usize,
    const STAGES: usize,
>(
    arguments: &Arguments,
    warp_group: WarpGroup,
    rings: Shared<[WarpRing<RING_GROUPS>; WARPS]>,
    mut x: Consumer<XStage<E, TOKENS, STEPS>, STAGES, BlockScope>,
) where
    [f32; REGISTERS]: Registers,
    [u32; WORDS]: RegisterWords,
{
    const { assert!(STEPS * 16 == WORDS && UNIT_STEPS == 2 * STEPS, "a unit is decoded in two parts") };
    let warp = (warp_group.index() - 1) * 4 + warp_group.warp();
    let mut index = arguments.work.first(thread::block_idx_x());
    // SAFETY: each warp has its own ring.
    let mut strip = unsafe { Strip::new(arguments, rings.at(warp), warp, index) };
    loop {
        let mut sums = Accumulator::<REGISTERS>::zeroed();
        // SAFETY: the list has a worker's pieces, and a piece a unit; the whole warp group is here, as at each step below.
        unsafe {
            let piece = arguments.work.piece(index);
            strip.begin(arguments, index, &piece);
            strip.next_unit(arguments);
            let left = strip.decode::<WORDS>(0);
            let mut flight = multiply::<E, REGISTERS, TOKENS, STEPS, WORDS>(&mut sums, Initial::Zero, (x.wait(), left));
            // Two parts of a unit, written out: what is decoded into lies in other registers than what is multiplied.
            loop {
                let left = strip.decode::<WORDS>(STEPS);
                left.finish_before_wait();
                end(flight.wait());
                flight = multiply::<E, REGISTERS, TOKENS, STEPS, WORDS>(&mut sums, Initial::Kept, (x.wait(), left));
                if !strip.has_more() {
                    break;
                }
                strip.next_unit(arguments);
                let left = strip.decode::<WORDS>(0);
                left.finish_before_wait();
                end(flight.wait());
                flight = multiply::<E, REGISTERS, TOKENS, STEPS, WORDS>(&mut sums, Initial::Kept, (x.wait(), left));
            }
            end(flight.wait());
            finish::<E, REGISTERS>(&arguments.output, &piece, warp, &mut sums);
            if piece.behind == 0 {
                break;
            }
        }
        index += 1;
    }
}

/// Issues sums += W X^T over a part of a unit. Warp group.
///
/// # Safety
/// As [`Accumulator::start`].
#[inline(always)]
unsafe fn multiply<
    E: Mma<REGISTERS>,
    const REGISTERS: usize,
    const TOKENS: usize,
    const STEPS: usize,
    const WORDS: usize,
>(
    sums: &mut Accumulator<REGISTERS>,
    initial: Initial,
    read: InFlight<E, TOKENS, STEPS, WORDS>,
) -> Flight<'_, REGISTERS, InFlight<E, TOKENS, STEPS, WORDS>>
where
    [f32; REGISTERS]: Registers,
    [u32; WORDS]: RegisterWords,
{
    // SAFETY: the caller's promise.
    unsafe {
        sums.start(initial, read, |products, (x, left)| {
            hopper_std::seq!(STEP in 0..4 {
                products.add_left_at::<E, _, WORDS>(left, STEP, x.stage().at(0).k_major(0), STEP);
            });
            hopper_std::seq!(STEP in 0..4 {
                products.add_left_at::<E, _, WORDS>(left, 4 + STEP, x.stage().at(1).k_major(0), STEP);
            });
        })
    }
}

/// The end of what products read, after the wait for them. Warp.
#[inline(always)]
fn end<E, const TOKENS: usize, const STEPS: usize, const WORDS: usize>((x, left): InFlight<E, TOKENS, STEPS, WORDS>)
where
    [u32; WORDS]: RegisterWords,
{
    left.end();
    x.release();
}
