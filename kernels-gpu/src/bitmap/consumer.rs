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
    // SAFETY: the block's worker has pieces.
    let (first, last) = unsafe { arguments.work.pieces_of(thread::block_idx_x()) };
    // SAFETY: each warp has its own ring.
    let mut strip = unsafe { Strip::new(arguments, rings.at(warp), warp, first, last) };
    let mut index = first;
    while index < last {
        let mut sums = Accumulator::<REGISTERS>::zeroed();
        // SAFETY: the list has a worker's pieces; the whole warp group is here, as at each step below; a step's X is a part of its
        // slot.
        unsafe {
            let piece = arguments.work.piece(index);
            strip.begin(arguments, index, &piece);
            let left = strip.decode(arguments);
            let mut flight = multiply::<E, REGISTERS, TOKENS>(&mut sums, Initial::Zero, (x.wait(), left));
            while strip.has_more() {
                let left = strip.decode(arguments);
                left.finish_before_wait();
                let (slot, _) = flight.wait();
                slot.release();
                flight = multiply::<E, REGISTERS, TOKENS>(&mut sums, Initial::Kept, (x.wait(), left));
            }
            let (slot, _) = flight.wait();
            slot.release();
            finish::<E, REGISTERS>(&arguments.output, &piece, warp, &mut sums);
        }
        index += 1;
    }
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
