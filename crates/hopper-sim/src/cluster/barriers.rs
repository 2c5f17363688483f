//! Barriers of the block and the cluster, mbarriers, fences and the split of registers.

use std::collections::BTreeSet;

use hopper_std::sim::{At, Fence};
use hopper_std::spec::REGISTERS;

use super::{Cluster, ClusterBarrier, State, Status, WARP, Wait};
use crate::finding::FindingKind;
use crate::mbarrier::{Mbarrier, Outcome};
use crate::schedule::Mode;
use crate::shared::BASE;

/// What a thread does where what it asks for is not complete yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incomplete {
    /// It waits.
    Wait,
    /// It goes on.
    GoOn,
}

/// Which way `setmaxnreg` goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resize {
    /// Gives registers up.
    Dec,
    /// Takes more.
    Inc,
}

impl Resize {
    const fn name(self) -> &'static str {
        match self {
            Self::Dec => "setmaxnreg.dec",
            Self::Inc => "setmaxnreg.inc",
        }
    }
}

/// A barrier, in words.
pub(crate) fn name_of((rank, address): (usize, u32)) -> String {
    format!("the mbarrier at byte {} of block {rank}", address - BASE)
}

/// One of a block's sixteen barriers.
#[derive(Clone, Default)]
pub(crate) struct BlockBarrier {
    /// Threads that complete it, `None` for all of the block, and where the first said so.
    expected: Option<(Option<u32>, At)>,
    pub(crate) arrived: Vec<usize>,
    /// The warps that completed it the first time, and where.
    members: Option<(BTreeSet<usize>, At)>,
}

impl Cluster<'_> {
    /// Arrives at a barrier of `count` threads, or of all threads of the block that have not ended.
    pub(crate) fn bar(&self, at: At, id: u32, count: Option<u32>, incomplete: Incomplete) {
        self.step(at);
        let (thread, rank) = (self.current.get(), self.rank());
        let threads = count.unwrap_or(self.spec.threads);
        if id > 15 || !threads.is_multiple_of(WARP as u32) || threads == 0 {
            self.fatal(FindingKind::BadOperand, at, format!("barrier {id} of {threads} threads"));
        }
        let mut state = self.state.borrow_mut();
        let barrier = &mut state.blocks[rank].barriers[id as usize];
        let (expected, first) = *barrier.expected.get_or_insert((count, at));
        let expected = expected.unwrap_or(self.spec.threads);
        if expected != threads {
            let details = format!("barrier {id} of {threads} threads, but of {expected} at {first}");
            drop(state);
            self.fatal(FindingKind::BarrierCollision, at, details);
        }
        if barrier.arrived.contains(&thread) {
            drop(state);
            let details = format!("a second arrival at barrier {id} before it is complete");
            self.fatal(FindingKind::BarrierCollision, at, details);
        }
        barrier.arrived.push(thread);
        if barrier.arrived.len() < self.needed(&state, rank, id) {
            drop(state);
            if incomplete == Incomplete::Wait {
                self.wait(Wait::Barrier(id), at);
            }
            return;
        }
        self.complete_bar(&mut state, rank, id, thread, at);
    }

    /// Arrivals that complete a barrier. Where it is of all threads, those that have ended do not count: PTX ISA 9.7.19,
    /// `exit`.
    pub(crate) fn needed(&self, state: &State, rank: usize, id: u32) -> usize {
        match state.blocks[rank].barriers[id as usize].expected {
            None => 0,
            Some((Some(count), _)) => count as usize,
            Some((None, _)) => {
                let goes_on = |thread: &usize| state.threads[*thread].status != Status::Ended;
                self.threads_of(rank).filter(goes_on).count()
            }
        }
    }

    /// Completes the barriers that waited for a thread which has ended, and for no other.
    pub(crate) fn settle_barriers(&self, state: &mut State, ended: usize) {
        let rank = self.rank_of(ended);
        for id in 0..16 {
            let barrier = &state.blocks[rank].barriers[id as usize];
            if let Some((None, at)) = barrier.expected
                && let Some(&last) = barrier.arrived.last()
                && barrier.arrived.len() == self.needed(state, rank, id)
            {
                self.complete_bar(state, rank, id, last, at);
            }
        }
        state.settle_cluster_barrier();
    }

    /// Lets go on who waits at a barrier, at which `thread` was the last to arrive.
    fn complete_bar(&self, state: &mut State, rank: usize, id: u32, thread: usize, at: At) {
        let barrier = &mut state.blocks[rank].barriers[id as usize];
        let members: BTreeSet<usize> = barrier.arrived.drain(..).map(|thread| thread / WARP).collect();
        let of_all = matches!(barrier.expected.take(), Some((None, _)));
        let collision = match &barrier.members {
            Some((before, first)) if *before != members && !of_all => Some(format!(
                "barrier {id} is used by warps {members:?}, but by warps {before:?} at {first}: two groups, one id"
            )),
            _ => None,
        };
        barrier.members.get_or_insert((members, at));
        if let Some(details) = collision {
            self.fault_of(state, thread, FindingKind::BarrierCollision, Some(at), details);
        }
        for other in self.threads_of(rank) {
            if matches!(state.threads[other].status, Status::Waiting(Wait::Barrier(waited), _) if waited == id) {
                state.set_status(other, Status::Ready);
            }
        }
        state.progress += 1;
    }

    pub(crate) fn cluster_arrive(&self, at: At) {
        self.step(at);
        let thread = self.current.get();
        let mut state = self.state.borrow_mut();
        if state.threads[thread].cluster_barrier != ClusterBarrier::Outside {
            drop(state);
            let details = "a second arrival at the cluster's barrier, with no wait between".to_owned();
            self.fatal(FindingKind::ArrivalOverrun, at, details);
        }
        state.threads[thread].cluster_barrier = ClusterBarrier::Arrived;
        state.settle_cluster_barrier();
    }

    pub(crate) fn cluster_wait(&self, at: At) {
        self.step(at);
        let thread = self.current.get();
        let known = self.state.borrow().threads[thread].cluster_barrier;
        match known {
            ClusterBarrier::Outside => {
                let details = "a wait at the cluster's barrier, with no arrival before it".to_owned();
                self.fatal(FindingKind::BadBarrier, at, details);
            }
            ClusterBarrier::Arrived => self.wait(Wait::Cluster, at),
            ClusterBarrier::Complete => {}
        }
        self.state.borrow_mut().threads[thread].cluster_barrier = ClusterBarrier::Outside;
    }

    pub(crate) fn fence(&self, at: At, fence: Fence) {
        self.step(at);
        let thread = self.current.get();
        let mut state = self.state.borrow_mut();
        match fence {
            Fence::ProxyAsync | Fence::ProxyAsyncShared => {
                state.threads[thread].epoch += 1;
                state.threads[thread].init_fences += 1;
            }
            Fence::MbarrierInit => state.threads[thread].init_fences += 1,
            Fence::Cluster | Fence::Gpu => {}
        }
    }

    /// `setmaxnreg`, by a whole warp.
    pub(crate) fn setmaxnreg(&self, at: At, resize: Resize, count: u32) {
        if !(24..=256).contains(&count) || !count.is_multiple_of(8) {
            self.fatal(
                FindingKind::BadOperand,
                at,
                format!("{count} registers: a multiple of 8 from 24 to 256 is wanted"),
            );
        }
        let (warp, rank) = (self.current.get() / WARP, self.rank());
        self.meet_for(at, resize.name(), |state| self.check_resize(state, at, (resize, count)));
        loop {
            let mut state = self.state.borrow_mut();
            let had = state.warps[warp].registers;
            let more = (i64::from(count) - i64::from(had)) * WARP as i64;
            let wrong = match resize {
                Resize::Dec => more > 0,
                Resize::Inc => more < 0,
            };
            if wrong {
                drop(state);
                self.fatal(FindingKind::BadOperand, at, format!("{} to {count} registers from {had}", resize.name()));
            }
            if state.blocks[rank].free_registers >= more {
                state.blocks[rank].free_registers -= more;
                state.warps[warp].registers = count;
                state.wake(|wait| matches!(wait, Wait::Registers(_)));
                return;
            }
            drop(state);
            self.wait(Wait::Registers(count), at);
        }
    }

    /// The warps of a warp group must execute the same `setmaxnreg` in the same order. PTX ISA 9.7.19.5.
    fn check_resize(&self, state: &mut State, at: At, own: (Resize, u32)) {
        let thread = self.current.get();
        let index = state.warps[thread / WARP].num_resizes;
        state.warps[thread / WARP].num_resizes += 1;
        let resizes = &mut state.resizes[self.group_of(thread)];
        match resizes.get(index) {
            None => resizes.push((own, at)),
            Some(&(first, _)) if first == own => {}
            Some(&((resize, count), first)) => {
                let details = format!(
                    "{} to {} registers, while another warp of the warp group executes {} to {count} at {first}",
                    own.0.name(),
                    own.1,
                    resize.name()
                );
                self.fault(state, FindingKind::Divergence, at, details);
            }
        }
    }

    /// Whether the warps of each warp group have executed each `setmaxnreg`.
    pub(crate) fn check_resizes(&self, state: &mut State) {
        for group in 0..state.groups.len() {
            for first in self.group_threads(group).step_by(WARP) {
                let Some(&((resize, _), at)) = state.resizes[group].get(state.warps[first / WARP].num_resizes) else {
                    continue;
                };
                let details = format!("{} of a warp group, but not of this warp of it", resize.name());
                self.fault_of(state, first, FindingKind::Divergence, Some(at), details);
            }
        }
    }

    /// In words, who wants how many registers.
    pub(crate) fn register_demand(&self, state: &State, rank: usize) -> String {
        let warps = self.block_threads() / WARP;
        let demand: u32 = (rank * warps..(rank + 1) * warps)
            .map(|warp| match state.threads[warp * WARP].status {
                Status::Waiting(Wait::Registers(count), _) => count * WARP as u32,
                _ => state.warps[warp].registers * WARP as u32,
            })
            .sum();
        format!(
            "the block's warps want {demand} registers together, the multiprocessor has {REGISTERS}: they wait forever"
        )
    }

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
    /// Completes the cluster's barrier where all threads that have not ended have arrived. PTX ISA 9.7.13.3.
    fn settle_cluster_barrier(&mut self) {
        let mut going_on = self.threads.iter().filter(|thread| thread.status != Status::Ended).peekable();
        if going_on.peek().is_none() || !going_on.all(|thread| thread.cluster_barrier == ClusterBarrier::Arrived) {
            return;
        }
        for thread in &mut self.threads {
            thread.cluster_barrier = ClusterBarrier::Complete;
        }
        self.wake(|wait| wait == Wait::Cluster);
    }

    /// A barrier that is there.
    ///
    /// # Panics
    /// Where it is not.
    pub(crate) fn mbarrier(&mut self, key: (usize, u32)) -> &mut Mbarrier {
        self.mbarriers.get_mut(&key).expect("the barrier was looked up before")
    }
}
