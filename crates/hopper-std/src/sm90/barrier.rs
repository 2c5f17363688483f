//! Full and empty: two kinds of barrier that must not be confused.

use hopper_macros::instruction;

use super::Shared;
use crate::ptx::mbarrier;

/// The parity of a barrier's phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Phase(u32);

impl Phase {
    /// The phase that completes first.
    pub const FIRST: Self = Self(0);
    /// The phase before the first, which counts as complete: what a producer waits for in a ring nobody has used.
    pub const BEFORE_FIRST: Self = Self(1);

    /// The other parity.
    pub(super) const fn flipped(self) -> Self {
        Self(self.0 ^ 1)
    }

    /// 0 or 1.
    pub const fn parity(self) -> u32 {
        self.0
    }
}

macro_rules! barriers {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[repr(transparent)]
            pub struct $name {
                word: u64,
            }

            impl Shared<$name> {
                /// Waits until the phase of this parity is complete. Thread.
                ///
                /// # Safety
                /// The barrier is initialised and visible to this thread.
                #[instruction]
                pub unsafe fn wait(self, phase: Phase) {
                    // SAFETY: the caller's promise; a `Shared` is in this block.
                    while !unsafe { mbarrier::mbarrier_try_wait_parity(self.address(), phase.parity()) } {}
                }
            }
        )*
    };
}

barriers! {
    /// Completes when a slot's data has arrived: one arrival, and the bytes it expects.
    FullBarrier;
    /// Completes when every reader has released the slot.
    EmptyBarrier;
}

impl Shared<FullBarrier> {
    /// Arrives and says how many bytes will. Thread.
    ///
    /// # Safety
    /// The barrier is initialised, counts this arrival, and exactly `bytes` bytes are copied on its current phase.
    #[instruction]
    pub unsafe fn expect(self, bytes: u32) {
        // SAFETY: the caller's promise.
        unsafe { mbarrier::mbarrier_arrive_expect_tx(self.address(), bytes) }
    }
}
