//! Barriers in shared memory, by their addresses.

use hopper_std::sim::At;

use super::barriers::Incomplete;
use super::{Cluster, State, Wait};
use crate::finding::FindingKind;
use crate::mbarrier::{Mbarrier, Outcome};
use crate::schedule::Mode;
use crate::shared::BASE;

/// A barrier, in words.
pub(crate) fn name_of((rank, address): (usize, u32)) -> String {
    format!("the mbarrier at byte {} of block {rank}", address - BASE)
}

impl Cluster<'_> {
    pub(crate) fn mbarrier_init(&self, at: At, address: u32, count: u32) {
        self.step(at);
        let offset = self.resolve_own(at, address, 8, 8);
        let key = (self.rank(), offset);
        if count == 0 || count >= 1 << 20 {
            self.fatal(FindingKind::BadOperand, at, format!("an mbarrier of {count} arrivals"));
        }
        let mut state = self.state.borrow_mut();
        if state.mbarriers.contains_key(&key) {
            let details = format!("{} is initialised twice", name_of(key));
            self.fault(&mut state, FindingKind::BadBarrier, at, details);
        }
        state.blocks[key.0].shared.poke(offset, &[0; 8]);
        let thread = self.current.get();
        let initialised = (thread, state.threads[thread].init_fences);
        let mut mbarrier = Mbarrier::new(count);
        mbarrier.initialised = initialised;
        state.mbarriers.insert(key, mbarrier);
    }

    pub(crate) fn mbarrier_inval(&self, at: At, address: u32) {
        self.step(at);
        let key = self.own_mbarrier(at, address);
        self.state.borrow_mut().mbarriers.remove(&key);
    }

    /// The barrier at an address of this block: most instructions take no other.
    pub(crate) fn own_mbarrier(&self, at: At, address: u32) -> (usize, u32) {
        let offset = self.resolve_own(at, address, 8, 8);
        self.mbarrier(at, offset)
    }

    /// The barrier at an address, of this block or of the cluster.
    pub(crate) fn mbarrier(&self, at: At, address: u32) -> (usize, u32) {
        let key = self.resolve(at, address, 8, 8);
        let state = self.state.borrow();
        if !state.mbarriers.contains_key(&key) {
            drop(state);
            let details = format!("no mbarrier is initialised at byte {} of block {}", key.1 - BASE, key.0);
            self.fatal(FindingKind::BadBarrier, at, details);
        }
        if self.has_ended(&state, key.0) {
            drop(state);
            let details = format!("block {} of the cluster has ended: its shared memory is no more", key.0);
            self.fatal(FindingKind::BadBarrier, at, details);
        }
        key
    }

    /// What is written must not be a barrier, for as long as that is one.
    pub(crate) fn check_no_barrier(&self, state: &mut State, at: At, rank: usize, address: u32, num_bytes: u32) {
        let near = (rank, address.saturating_sub(7))..(rank, address + num_bytes);
        if let Some((&(_, barrier), _)) = state.mbarriers.range(near).next() {
            let details = format!("a write over {}", name_of((rank, barrier)));
            self.fault(state, FindingKind::BadBarrier, at, details);
        }
    }

    /// A barrier is used by a copy or from another block: those see it only after a fence of who initialised it.
    pub(crate) fn check_visible(&self, state: &mut State, at: At, key: (usize, u32)) {
        let (thread, fences) = state.mbarrier(key).initialised;
        if state.threads[thread].init_fences <= fences {
            let details = format!(
                "{} was initialised by thread {}, with no fence.mbarrier_init or fence.proxy.async after it",
                name_of(key),
                thread % self.block_threads()
            );
            self.fault(state, FindingKind::MissingProxyFence, at, details);
        }
    }

    /// Arrives at a barrier of this block, of which `bytes` more are expected.
    pub(crate) fn mbarrier_arrive(&self, at: At, address: u32, bytes: u32) {
        self.step(at);
        self.check_expected(at, bytes);
        let key = self.own_mbarrier(at, address);
        self.arrive(at, key, bytes);
    }

    /// Arrives at a barrier of any block of the cluster.
    pub(crate) fn mbarrier_arrive_cluster(&self, at: At, address: u32) {
        self.step(at);
        let key = self.mbarrier(at, address);
        self.arrive(at, key, 0);
    }

    fn arrive(&self, at: At, key: (usize, u32), bytes: u32) {
        let thread = self.current.get();
        let mut state = self.state.borrow_mut();
        if key.0 != self.rank() {
            self.check_visible(&mut state, at, key);
        }
        let outcome = state.mbarrier(key).arrive(thread, bytes);
        self.settle(&mut state, key, outcome, thread, at);
    }

    /// A barrier counts bytes up to 2^20 - 1. PTX ISA 9.7.13.15.2.
    fn check_expected(&self, at: At, bytes: u32) {
        if bytes >= 1 << 20 {
            self.fatal(FindingKind::BadOperand, at, format!("{bytes} bytes, but an mbarrier counts less than 2^20"));
        }
    }

    pub(crate) fn mbarrier_expect(&self, at: At, address: u32, bytes: u32) {
        self.step(at);
        self.check_expected(at, bytes);
        let key = self.own_mbarrier(at, address);
        self.state.borrow_mut().mbarrier(key).expect(bytes);
    }

    /// Whether the phase is complete.
    pub(crate) fn mbarrier_wait(&self, at: At, address: u32, parity: u32, incomplete: Incomplete) -> bool {
        self.step(at);
        if parity > 1 {
            self.fatal(FindingKind::BadOperand, at, format!("parity {parity}"));
        }
        let (key, waits) = (self.own_mbarrier(at, address), incomplete == Incomplete::Wait);
        {
            let mut state = self.state.borrow_mut();
            // The instruction may give up early: its caller must ask again.
            if waits && self.schedule.mode == Mode::Random && state.random.below(16) == 0 {
                return false;
            }
            if state.mbarrier(key).is_complete(parity) {
                return true;
            }
        }
        if waits {
            self.wait(Wait::Mbarrier(key.0, key.1, parity), at);
            // Who is slow may find that another phase is complete by now, and this parity open again.
            return self.state.borrow().mbarriers.get(&key).is_none_or(|barrier| barrier.is_complete(parity));
        }
        self.wait(Wait::Anything, at);
        false
    }

    /// What an event at a barrier leads to.
    pub(crate) fn settle(&self, state: &mut State, key: (usize, u32), outcome: Outcome, thread: usize, at: At) {
        let name = name_of(key);
        let fault = match outcome {
            Outcome::Open => return,
            Outcome::Complete => None,
            Outcome::CompleteTooEarly(bytes) => Some((
                FindingKind::TransactionBytes,
                format!("{name} completes its phase while {bytes} bytes of copies are still on their way to it"),
            )),
            Outcome::TooManyBytes(bytes) => Some((
                FindingKind::TransactionBytes,
                format!("{name} got {bytes} bytes more than it was told to expect"),
            )),
            Outcome::Overrun => {
                let count = state.mbarrier(key).count;
                Some((
                    FindingKind::ArrivalOverrun,
                    format!(
                        "{name} counts {count} arrivals a phase, and this is one too many, or in another thread's place"
                    ),
                ))
            }
        };
        if let Some((kind, details)) = fault {
            self.fault_of(state, thread, kind, Some(at), details);
            state.stopped |= kind == FindingKind::ArrivalOverrun;
        }
        let parity = ((state.mbarrier(key).phase + 1) % 2) as u32;
        state.wake(|wait| wait == Wait::Mbarrier(key.0, key.1, parity));
    }
}

impl State {
    /// A barrier that is there.
    ///
    /// # Panics
    /// Where it is not.
    pub(crate) fn mbarrier(&mut self, key: (usize, u32)) -> &mut Mbarrier {
        self.mbarriers.get_mut(&key).expect("the barrier was looked up before")
    }
}
