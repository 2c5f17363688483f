//! mbarriers: phases, pending arrivals and transaction bytes. PTX ISA 9.7.13.15.

use std::collections::BTreeMap;

/// The state of one barrier.
#[derive(Clone, Debug)]
pub(crate) struct Mbarrier {
    /// Arrivals that a phase counts.
    pub(crate) count: u32,
    /// Arrivals that the current phase still waits for.
    pub(crate) pending: i64,
    /// Bytes that it still waits for; less than none where copies were faster than the announcement.
    pub(crate) tx: i64,
    /// Completed phases.
    pub(crate) phase: u64,
    /// Bytes of copies on their way that will complete here.
    pub(crate) in_flight: i64,
    /// Threads of the cluster that have arrived in this phase, and how often.
    arrived: BTreeMap<usize, u32>,
    /// The same of the phase before.
    before: Option<BTreeMap<usize, u32>>,
    /// The thread that initialised it, and how many fences had made its barriers visible by then.
    pub(crate) initialised: (usize, u32),
}

/// What an event did to a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The phase goes on.
    Open,
    /// It is complete.
    Complete,
    /// It is complete, but this many bytes are still on their way to it.
    CompleteTooEarly(i64),
    /// More bytes have come than were expected, by this many.
    TooManyBytes(i64),
    /// More arrivals than the phase counts, or of a thread more than in the phase before.
    Overrun,
}

impl Mbarrier {
    pub(crate) fn new(count: u32) -> Self {
        let pending = i64::from(count);
        Self {
            count,
            pending,
            tx: 0,
            phase: 0,
            in_flight: 0,
            arrived: BTreeMap::new(),
            before: None,
            initialised: (0, 0),
        }
    }

    /// Whether the phase of this parity is complete.
    pub(crate) fn is_complete(&self, parity: u32) -> bool {
        self.phase % 2 != u64::from(parity)
    }

    /// An arrival of `thread`, which first announces `bytes`.
    pub(crate) fn arrive(&mut self, thread: usize, bytes: u32) -> Outcome {
        if self.pending == 0 {
            return Outcome::Overrun;
        }
        *self.arrived.entry(thread).or_default() += 1;
        self.tx += i64::from(bytes);
        self.pending -= 1;
        self.settle()
    }

    /// An arrival that stands for a thread's copies: the thread may arrive by itself, too.
    pub(crate) fn arrive_for_copies(&mut self) -> Outcome {
        if self.pending == 0 {
            return Outcome::Overrun;
        }
        self.pending -= 1;
        self.settle()
    }

    /// Announces bytes without arriving.
    pub(crate) fn expect(&mut self, bytes: u32) {
        self.tx += i64::from(bytes);
    }

    /// Bytes have arrived.
    pub(crate) fn complete(&mut self, bytes: u32) -> Outcome {
        self.tx -= i64::from(bytes);
        self.in_flight -= i64::from(bytes);
        self.settle()
    }

    fn settle(&mut self) -> Outcome {
        if self.pending > 0 || self.tx > 0 {
            return Outcome::Open;
        }
        if self.tx < 0 {
            let excess = -self.tx;
            self.next_phase();
            return Outcome::TooManyBytes(excess);
        }
        // A thread may arrive more than once where the count says so, but then it does in every phase: where phases
        // differ, a second arrival took the place of another thread's.
        let repeats = |arrived: &BTreeMap<usize, u32>| arrived.values().any(|&times| times > 1);
        let stray = self
            .before
            .as_ref()
            .is_some_and(|before| *before != self.arrived && (repeats(before) || repeats(&self.arrived)));
        self.next_phase();
        match self.in_flight {
            _ if stray => Outcome::Overrun,
            0 => Outcome::Complete,
            bytes => Outcome::CompleteTooEarly(bytes),
        }
    }

    fn next_phase(&mut self) {
        self.phase += 1;
        self.pending = i64::from(self.count);
        self.tx = 0;
        self.before = Some(core::mem::take(&mut self.arrived));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_needs_arrivals_and_bytes() {
        let mut barrier = Mbarrier::new(2);
        assert!(!barrier.is_complete(0) && barrier.is_complete(1));
        barrier.in_flight = 64;
        assert_eq!(barrier.arrive(0, 64), Outcome::Open);
        assert_eq!(barrier.complete(64), Outcome::Open);
        assert_eq!(barrier.arrive(1, 0), Outcome::Complete);
        assert!(barrier.is_complete(0) && !barrier.is_complete(1));
        assert_eq!((barrier.pending, barrier.tx), (2, 0));
    }

    #[test]
    fn bytes_may_come_before_they_are_announced() {
        let mut barrier = Mbarrier::new(1);
        barrier.in_flight = 32;
        assert_eq!(barrier.complete(32), Outcome::Open);
        assert_eq!(barrier.arrive(0, 32), Outcome::Complete);
    }

    #[test]
    fn a_thread_may_arrive_twice_if_it_always_does() {
        let mut barrier = Mbarrier::new(2);
        for _ in 0..3 {
            assert_eq!([barrier.arrive(7, 0), barrier.arrive(7, 0)], [Outcome::Open, Outcome::Complete]);
        }
        assert_eq!([barrier.arrive(8, 0), barrier.arrive(8, 0)], [Outcome::Open, Outcome::Overrun]);
    }

    #[test]
    fn wrong_counts() {
        let mut barrier = Mbarrier::new(1);
        barrier.in_flight = 64;
        assert_eq!(barrier.arrive(0, 32), Outcome::Open);
        assert_eq!(barrier.arrive(1, 0), Outcome::Overrun);
        assert_eq!(barrier.complete(64), Outcome::TooManyBytes(32));
        let mut barrier = Mbarrier::new(1);
        barrier.in_flight = 64;
        assert_eq!(barrier.arrive(0, 0), Outcome::CompleteTooEarly(64));
    }
}
