//! Ping-pong: consumers take turns in issuing products, so that one's softmax runs beside the other's products.
//!
//! ```text
//! consumer 0:  products | softmax  | products | softmax  ..
//! consumer 1:           | products | softmax  | products ..
//! ```

use hopper_std::sm90::NamedBarrier;

hopper_std::named_barriers! {
    /// The barriers of the block, beside the one of all.
    pub(super) enum Meeting {
        /// Consumer 0 may issue.
        Turn0 = 1: 256,
        /// Consumer 1 may issue.
        Turn1 = 2: 256,
        /// Consumer 0 has written its rows of O.
        Store0 = 3: 128,
        /// Consumer 1 has written its rows of O.
        Store1 = 4: 128,
        /// Consumer 2 has written its rows of O.
        Store2 = 5: 128,
    }
}

impl Meeting {
    /// Where a consumer's warps meet before they store.
    #[inline(always)]
    pub(super) const fn store(consumer: u32) -> Self {
        match consumer {
            0 => Self::Store0,
            1 => Self::Store1,
            _ => Self::Store2,
        }
    }
}

/// A consumer's place in the order. With `TURNS` two consumers alternate; else each goes on as it can.
pub(super) struct Turn<const TURNS: bool> {
    consumer: u32,
    begun: bool,
}

impl<const TURNS: bool> Turn<TURNS> {
    /// Consumer 0 comes first.
    #[inline(always)]
    pub(super) const fn of(consumer: u32) -> Self {
        Self { consumer, begun: false }
    }

    /// Waits until it is this consumer's turn. Warp group.
    ///
    /// # Safety
    /// All warps of the warp group call it, each consumer as often as the other, [`pass`](Self::pass) after it.
    #[inline(always)]
    pub(super) unsafe fn wait(&mut self) {
        if TURNS {
            // SAFETY: the other consumer passes the turn as often as this one waits for it.
            unsafe {
                if self.consumer == 1 {
                    Meeting::Turn1.sync();
                } else if self.begun {
                    Meeting::Turn0.sync();
                }
            }
            self.begun = true;
        }
    }

    /// Passes the turn. Warp group.
    ///
    /// # Safety
    /// As [`wait`](Self::wait).
    #[inline(always)]
    pub(super) unsafe fn pass(&mut self) {
        if TURNS {
            // SAFETY: the other consumer waits for it, or `end` does.
            unsafe { if self.consumer == 0 { Meeting::Turn1.arrive() } else { Meeting::Turn0.arrive() } }
        }
    }

    /// Takes the last turn that consumer 1 has passed. Warp group.
    ///
    /// # Safety
    /// All warps of every consumer call it, once.
    #[inline(always)]
    pub(super) unsafe fn end(self) {
        if TURNS && self.consumer == 0 && self.begun {
            // SAFETY: as above.
            unsafe { Meeting::Turn0.sync() };
        }
    }
}
