//! mbarriers: phases, pending arrivals and transaction bytes. PTX ISA 9.7.13.15.

use std::collections::HashSet;

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
    /// Threads of the cluster that have arrived in this phase.
    pub(crate) arrived: HashSet<usize>,
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
    /// More arrivals than the phase counts.
    Overrun,
}

impl Mbarrier {
    pub(crate) fn new(count: u32) -> Self {
        let pending = i64::from(count);
        Self { count, pending, tx: 0, phase: 0, in_flight: 0, arrived: HashSet::new() }
    }

    /// Whether the phase of this parity is complete.
    pub(crate) fn is_complete(&self, parity: u32) -> bool {
        self.phase % 2 != u64::from(parity)
    }

    /// An arrival of `thread`, which first announces `bytes`.
    pub(crate) fn arrive(&mut self, thread: usize, bytes: u32) -> Outcome {
        if self.pending == 0 || !self.arrived.insert(thread) {
            return Outcome::Overrun;
        }
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
        self.next_phase();
        match self.in_flight {
            0 => Outcome::Complete,
            bytes => Outcome::CompleteTooEarly(bytes),
        }
    }

    fn next_phase(&mut self) {
        self.phase += 1;
        self.pending = i64::from(self.count);
        self.tx = 0;
        self.arrived.clear();
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
