//! What changes while a cluster runs: its threads, warps and blocks, and whatever is in flight.

use std::collections::{BTreeMap, HashMap, HashSet};

use hopper_std::sim::At;

use super::copies::Task;
use super::products::{Accumulator, Product};
use super::warps::{GroupMeeting, Meeting};
use super::{WARP, barriers, memory, registers};
use crate::finding::{Finding, FindingKind};
use crate::mbarrier::Mbarrier;
use crate::schedule::Random;
use crate::shared::{SharedMemory, TaskId};

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The rest of its warp.
    Warp,
    /// The rest of its warp group.
    Group,
    /// A barrier of its block.
    Barrier(u32),
    /// A phase of an mbarrier: block, address, parity.
    Mbarrier(usize, u32, u32),
    /// The threads of its cluster.
    Cluster,
    /// Registers: as many as this a thread.
    Registers(u32),
    /// Anything new: it polls.
    Anything,
}

/// Whether a thread can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ready,
    Waiting(Wait, At),
    Ended,
}

/// How far a thread is with the cluster's barrier, at which it arrives and waits in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClusterBarrier {
    /// It has not arrived since it last waited.
    Outside,
    /// It has arrived, others have not.
    Arrived,
    /// It has arrived, and so have all others.
    Complete,
}

/// A thread.
pub(crate) struct Thread {
    pub(crate) status: Status,
    /// Proxy fences so far.
    pub(crate) epoch: u32,
    /// Fences so far that make barriers visible, to copies and to other blocks.
    pub(crate) init_fences: u32,
    /// Tasks of the open group of bulk stores, and of the committed ones.
    pub(crate) bulk: Groups,
    /// The same for `cp.async`.
    pub(crate) copies: Groups,
    /// How far it is with the cluster's barrier.
    pub(crate) cluster_barrier: ClusterBarrier,
    /// The last place it was seen at.
    pub(crate) at: Option<At>,
}

/// Tasks in groups, as commit and wait count them.
#[derive(Clone, Default)]
pub(crate) struct Groups {
    pub(crate) open: Vec<TaskId>,
    pub(crate) committed: Vec<Vec<TaskId>>,
}

impl Groups {
    pub(crate) fn commit(&mut self) {
        let group = core::mem::take(&mut self.open);
        self.committed.push(group);
    }

    /// All groups but the last `count`.
    pub(crate) fn but_last(&self, count: u32) -> impl Iterator<Item = &Vec<TaskId>> {
        self.committed.iter().take(self.committed.len().saturating_sub(count as usize))
    }

    /// The tasks of all groups but the last `count`, which are taken out.
    pub(crate) fn all_but(&mut self, count: u32) -> Vec<TaskId> {
        let done = self.committed.len().saturating_sub(count as usize);
        self.committed.drain(..done).flatten().collect()
    }
}

/// A warp.
pub(crate) struct Warp {
    pub(crate) meeting: Meeting,
    /// Registers a thread.
    pub(crate) registers: u32,
    /// Groups of products.
    pub(crate) products: Groups,
    /// Whether a `wgmma.fence` covers the registers.
    pub(crate) fenced: bool,
    /// How often it has executed `setmaxnreg`.
    pub(crate) num_resizes: usize,
    /// Accesses to shared memory that some lanes have made, by line.
    pub(crate) banks: memory::Banks,
}

/// A block.
pub(crate) struct Block {
    pub(crate) shared: SharedMemory,
    /// Barriers 0 to 15.
    pub(crate) barriers: Vec<barriers::BlockBarrier>,
    /// Registers that nobody has.
    pub(crate) free_registers: i64,
}

/// Everything that changes.
pub(crate) struct State {
    pub(crate) threads: Vec<Thread>,
    /// The lanes of each warp that can go on.
    pub(crate) ready: Vec<u32>,
    pub(crate) warps: Vec<Warp>,
    pub(crate) groups: Vec<GroupMeeting>,
    /// What `setmaxnreg` a warp group executes, in order, and where its first warp did.
    pub(crate) resizes: Vec<Vec<((registers::Resize, u32), At)>>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) mbarriers: BTreeMap<(usize, u32), Mbarrier>,
    pub(crate) tasks: BTreeMap<TaskId, Task>,
    pub(crate) products: BTreeMap<TaskId, Product>,
    pub(crate) accumulators: HashMap<u32, Accumulator>,
    pub(crate) last_task: TaskId,
    pub(crate) last_accumulator: u32,
    pub(crate) random: Random,
    pub(crate) findings: Vec<Finding>,
    pub(super) seen: HashSet<(FindingKind, Option<At>)>,
    /// Nothing that follows would mean anything.
    pub(crate) stopped: bool,
    pub(crate) num_instructions: u64,
    pub(crate) bank_conflicts: u64,
    /// Events that a polling thread might have waited for.
    pub(crate) progress: u64,
    /// That count when those who poll were last let go on.
    pub(crate) last_poll: u64,
}

impl State {
    pub(crate) fn find(&mut self, finding: Finding) {
        if self.seen.insert((finding.kind, finding.at)) {
            self.findings.push(finding);
        }
    }

    pub(crate) fn set_status(&mut self, thread: usize, status: Status) {
        self.threads[thread].status = status;
        let bit = 1 << (thread % WARP);
        match status {
            Status::Ready => self.ready[thread / WARP] |= bit,
            Status::Waiting(..) | Status::Ended => self.ready[thread / WARP] &= !bit,
        }
    }

    /// Lets go on whoever waits for something that `over` says is over.
    pub(crate) fn wake(&mut self, over: impl Fn(Wait) -> bool) {
        self.progress += 1;
        for thread in 0..self.threads.len() {
            if let Status::Waiting(wait, _) = self.threads[thread].status
                && (over(wait) || wait == Wait::Anything)
            {
                self.set_status(thread, Status::Ready);
            }
        }
    }

    pub(crate) fn new_task(&mut self) -> TaskId {
        self.last_task += 1;
        self.last_task
    }

    /// A task, in words.
    pub(crate) fn describe(&self, task: TaskId) -> String {
        match (self.tasks.get(&task), self.products.get(&task)) {
            (Some(task), _) => format!("the copy issued at {}", task.at),
            (_, Some(product)) => format!("the product issued at {}", product.at),
            _ => "an operation that is in flight".to_owned(),
        }
    }
}
