//! The warps that decode and multiply.

use hopper_std::half::Half;
use hopper_std::ptx::wgmma::{Mma, Registers};
use hopper_std::sm90::{
    Accumulator, BlockScope, Consumer, Flight, FullSlot, Initial, LeftFragment, Shared, WarpGroup, WarpRing,
};
use hopper_std::thread;

use super::config::{Arguments, RING_GROUPS, XTile};
use super::strip::Strip;
use crate::linear::{WARPS, finish};

/// What a step's products read.
type InFlight<E, const TOKENS: usize> = (FullSlot<XTile<E, TOKENS>, BlockScope>, LeftFragment<16>);

/// Multiplies this worker's pieces. Warp group.
///
/// # Safety
/// The launch contract of [`Arguments`]; all warps of a consumer warp group call it.
#[inline(always)]
pub(super) unsafe fn consume<
    E: Half + Mma<REGISTERS>,
    const REGISTERS: usize,
    const TOKENS: usize,
    const STAGES: usize,
>(
    arguments: &Arguments,
    warp_group: WarpGroup,
    rings: Shared<[WarpRing<RING_GROUPS>; WARPS]>,
    mut x: Consumer<XTile<E, TOKENS>, STAGES, BlockScope>,
) where
    [f32; REGISTERS]: Registers,
{
    let warp = (warp_group.index() - 1) * 4 + warp_group.warp();
    let mut index = arguments.work.first(thread::block_idx_x());
    // SAFETY: each warp has its own ring.
    let mut strip = unsafe { Strip::new(arguments, rings.at(warp), warp, index) };
    loop {
        let mut sums = Accumulator::<REGISTERS>::zeroed();
        // SAFETY: the list has a worker's pieces; the whole warp group is here, as at each step below.
        unsafe {
            let piece = arguments.work.piece(index);
            strip.begin(arguments, index, &piece);
            let mut initial = Initial::Zero;
            while strip.has_more() {
                strip.next_unit(arguments);
                multiply_unit::<E, REGISTERS, TOKENS, STAGES>(&mut strip, &mut sums, initial, &mut x);
                initial = Initial::Kept;
            }
            finish::<E, REGISTERS>(&arguments.output, &piece, warp, &mut sums);
            if piece.behind == 0 {
                break;
            }
        }
        index += 1;
    }
}

/// sums += W X^T over a unit, a step's decoding beside the products of the one before. Warp group.
///
/// # Safety
/// The launch contract of [`Arguments`]; all warps of a consumer warp group call it.
#[inline(always)]
unsafe fn multiply_unit<E: Mma<REGISTERS>, const REGISTERS: usize, const TOKENS: usize, const STAGES: usize>(
    strip: &mut Strip,
    sums: &mut Accumulator<REGISTERS>,
    initial: Initial,
    x: &mut Consumer<XTile<E, TOKENS>, STAGES, BlockScope>,
) where
    [f32; REGISTERS]: Registers,
{
    // SAFETY: the unit's values have arrived; a step's X is a part of its slot.
    unsafe {
        let left = strip.windows(0).expand();
        let mut flight = multiply::<E, REGISTERS, TOKENS>(sums, initial, (x.wait(), left));
        hopper_std::seq!(STEP in 1..4 {
            let left = strip.windows(STEP).expand();
            left.finish_before_wait();
            end(flight.wait());
            flight = multiply::<E, REGISTERS, TOKENS>(sums, Initial::Kept, (x.wait(), left));
        });
        end(flight.wait());
    }
}

/// The end of what a step's products read. Warp.
#[inline(always)]
fn end<E, const TOKENS: usize>((x, left): InFlight<E, TOKENS>) {
    left.end();
    x.release();
}

/// Issues sums += W X^T over 64 columns. Warp group.
///
/// # Safety
/// As [`Accumulator::start`].
#[inline(always)]
unsafe fn multiply<E: Mma<REGISTERS>, const REGISTERS: usize, const TOKENS: usize>(
    sums: &mut Accumulator<REGISTERS>,
    initial: Initial,
    read: InFlight<E, TOKENS>,
) -> Flight<'_, REGISTERS, InFlight<E, TOKENS>>
where
    [f32; REGISTERS]: Registers,
{
    // SAFETY: the caller's promise.
    unsafe {
        sums.start(initial, read, |products, (x, left)| {
            let x = x.stage().k_major(0);
            hopper_std::seq!(STEP in 0..4 {
                products.add_left::<E, _, 16>(left, x, STEP);
            });
        })
    }
}
