//! Warp groups, and how they share the registers.

use hopper_macros::instruction;

use crate::ptx::registers;
use crate::spec::REGISTERS;
use crate::{thread, warp};

/// Four warps: what issues a warp-group product.
#[derive(Clone, Copy, Debug)]
pub struct WarpGroup {
    index: u32,
}

impl WarpGroup {
    /// Threads of a warp group.
    pub const THREADS: u32 = 128;

    /// The warp group of this thread; a value that the compiler knows to be the same in all of its warp.
    ///
    /// # Safety
    /// All 32 lanes of the warp call it together.
    #[instruction]
    pub unsafe fn current() -> Self {
        // SAFETY: the caller's promise.
        Self { index: unsafe { warp::broadcast(thread::thread_idx_x() / Self::THREADS, 0) } }
    }

    /// Its index in the block.
    #[inline(always)]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// This thread's warp within the group, 0 to 3.
    #[instruction]
    pub fn warp(self) -> u32 {
        thread::thread_idx_x() / 32 % 4
    }
}

/// How a block of one producer warp group and `CONSUMERS` consumer warp groups splits the registers, `BLOCKS` such blocks on a
/// multiprocessor.
///
/// The counts are registers a thread, multiples of 8 from 24 to 256. Warp groups share what the block was launched with: for
/// each thread the multiprocessor's 65,536 registers over its threads, rounded down to a multiple of 8. A split that
/// does not fit would make `setmaxnreg.inc` wait forever, as 32 + 2 x 240 of 3 x 168 did on an H200; here it does not compile.
#[derive(Clone, Copy, Debug)]
pub struct RegisterBudget<const PRODUCER: u32, const CONSUMER: u32, const CONSUMERS: u32, const BLOCKS: u32 = 1>;

impl<const PRODUCER: u32, const CONSUMER: u32, const CONSUMERS: u32, const BLOCKS: u32>
    RegisterBudget<PRODUCER, CONSUMER, CONSUMERS, BLOCKS>
{
    /// Threads of the block.
    pub const THREADS: u32 = WarpGroup::THREADS * (1 + CONSUMERS);

    /// Evaluating it fails to compile where the split does not fit.
    pub const FITS: () = {
        assert!(PRODUCER >= 24 && PRODUCER <= 256 && PRODUCER.is_multiple_of(8), "register counts are multiples of 8");
        assert!(CONSUMER >= 24 && CONSUMER <= 256 && CONSUMER.is_multiple_of(8), "register counts are multiples of 8");
        let at_launch = REGISTERS / (BLOCKS * Self::THREADS) / 8 * 8;
        let at_launch = if at_launch > 248 { 248 } else { at_launch };
        assert!(
            PRODUCER + CONSUMERS * CONSUMER <= (1 + CONSUMERS) * at_launch,
            "the register split does not fit what the block is launched with: setmaxnreg would hang"
        );
        assert!(PRODUCER <= at_launch && CONSUMER >= at_launch, "producers give registers up, consumers take them");
    };

    /// Gives up what the producer does not need.
    ///
    /// # Safety
    /// All warps of the producer warp group call it, once, before anything that the consumers wait for.
    #[instruction]
    pub unsafe fn become_producer() {
        const { Self::FITS };
        // SAFETY: the split fits; the specification gives the kernel its launch bounds.
        unsafe { registers::setmaxnreg_dec::<PRODUCER>() }
    }

    /// Takes what the accumulators need.
    ///
    /// # Safety
    /// All warps of a consumer warp group call it, once.
    #[instruction]
    pub unsafe fn become_consumer() {
        const { Self::FITS };
        // SAFETY: as above.
        unsafe { registers::setmaxnreg_inc::<CONSUMER>() }
    }
}
