//! Barriers of the block and the cluster, and fences.

use std::collections::BTreeSet;

use hopper_std::sim::{At, Fence};

use super::{Cluster, ClusterBarrier, State, Status, WARP, Wait};
use crate::finding::FindingKind;

/// What a thread does where what it asks for is not complete yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incomplete {
    /// It waits.
    Wait,
    /// It goes on.
    GoOn,
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
}
