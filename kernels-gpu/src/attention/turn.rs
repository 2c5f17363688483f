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

/// In which order consumers issue their products.
pub(super) trait Turns {
    /// The place of consumer `consumer`.
    fn of(consumer: u32) -> Self;

    /// Waits until it is this consumer's turn. Warp group.
    ///
    /// # Safety
    /// All warps of the warp group call it, each consumer as often as the other, [`pass`](Self::pass) after it.
    unsafe fn wait(&mut self);

    /// Passes the turn. Warp group.
    ///
    /// # Safety
    /// As [`wait`](Self::wait).
    unsafe fn pass(&mut self);

    /// Takes the last turn that was passed. Warp group.
    ///
    /// # Safety
    /// All warps of every consumer call it, once.
    unsafe fn end(self);
}

/// Each goes on as it can.
pub(super) struct Unordered;

impl Turns for Unordered {
    #[inline(always)]
    fn of(_: u32) -> Self {
        Self
    }

    #[inline(always)]
    unsafe fn wait(&mut self) {}

    #[inline(always)]
    unsafe fn pass(&mut self) {}

    #[inline(always)]
    unsafe fn end(self) {}
}

/// Two consumers take turns; consumer 0 comes first.
pub(super) struct Alternating {
    consumer: u32,
    begun: bool,
}

impl Turns for Alternating {
    #[inline(always)]
    fn of(consumer: u32) -> Self {
        Self { consumer, begun: false }
    }

    #[inline(always)]
    unsafe fn wait(&mut self) {
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

    #[inline(always)]
    unsafe fn pass(&mut self) {
        // SAFETY: the other consumer waits for it, or `end` does.
        unsafe { if self.consumer == 0 { Meeting::Turn1.arrive() } else { Meeting::Turn0.arrive() } }
    }

    #[inline(always)]
    unsafe fn end(self) {
        if self.consumer == 0 && self.begun {
            // SAFETY: consumer 1 has passed a turn that nobody has taken.
            unsafe { Meeting::Turn0.sync() };
        }
    }
}
