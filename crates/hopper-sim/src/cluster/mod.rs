//! One cluster at work: its threads as coroutines, its shared memory, and whatever is in flight.
//!
//! ```text
//!  scheduler            thread (coroutine)                      state
//!  ---------            ------------------                      -----
//!  choose a warp   ->   runs up to its next meeting or wait  -> marks, barriers, tasks
//!  choose a task   ->                                           a copy lands, a product is computed
//!  nothing left    ->                                           all ended, or a deadlock
//! ```
//!
//! A thread gives control back only inside an instruction, so that the state changes one instruction at a time.

mod barriers;
mod copies;
mod deadlock;
mod instructions;
mod memory;
mod products;
mod scheduler;
mod warps;

use core::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};

use corosensei::Yielder;
use hopper_std::KernelSpec;
use hopper_std::sim::At;

use crate::finding::{Finding, FindingKind};
use crate::mbarrier::Mbarrier;
use crate::memory::Memory;
use crate::schedule::{Mode, Random, Schedule};
use crate::shared::{BASE, Fault, RANK_SHIFT, SharedMemory, TaskId};

use copies::Task;
use products::{Accumulator, Product};
use warps::{GroupMeeting, Meeting};

/// Threads of a warp, and of a warp group.
pub(crate) const WARP: usize = 32;
pub(crate) const GROUP: usize = 128;

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
    pub(crate) resizes: Vec<Vec<((barriers::Resize, u32), At)>>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) mbarriers: BTreeMap<(usize, u32), Mbarrier>,
    pub(crate) tasks: BTreeMap<TaskId, Task>,
    pub(crate) products: BTreeMap<TaskId, Product>,
    pub(crate) accumulators: HashMap<u32, Accumulator>,
    pub(crate) last_task: TaskId,
    pub(crate) last_accumulator: u32,
    pub(crate) random: Random,
    pub(crate) findings: Vec<Finding>,
    seen: HashSet<(FindingKind, Option<At>)>,
    /// Nothing that follows would mean anything.
    pub(crate) stopped: bool,
    pub(crate) num_instructions: u64,
    pub(crate) bank_conflicts: u64,
    /// Events that a polling thread might have waited for.
    pub(crate) progress: u64,
    /// That count when those who poll were last let go on.
    pub(crate) last_poll: u64,
}

/// A cluster, for as long as it runs.
pub(crate) struct Cluster<'a> {
    pub(crate) spec: &'a KernelSpec,
    pub(crate) grid: [u32; 3],
    /// The first block.
    pub(crate) origin: [u32; 3],
    pub(crate) memory: &'a Memory,
    pub(crate) schedule: Schedule,
    pub(crate) state: RefCell<State>,
    /// The thread that runs, in the cluster.
    pub(crate) current: Cell<usize>,
    pub(crate) yielders: Vec<Cell<*const Yielder<(), ()>>>,
}

impl<'a> Cluster<'a> {
    pub(crate) fn new(
        spec: &'a KernelSpec,
        grid: [u32; 3],
        origin: [u32; 3],
        memory: &'a Memory,
        schedule: Schedule,
    ) -> Self {
        let num_blocks = spec.cluster as usize;
        let (block_threads, num_threads) = (spec.threads as usize, num_blocks * spec.threads as usize);
        let thread = || Thread {
            status: Status::Ready,
            epoch: 0,
            init_fences: 0,
            bulk: Groups::default(),
            copies: Groups::default(),
            cluster_barrier: ClusterBarrier::Outside,
            at: None,
        };
        let num_groups = num_blocks * block_threads.div_ceil(GROUP);
        let registers = spec.launch_registers();
        let warp = || Warp {
            meeting: Meeting::default(),
            registers,
            products: Groups::default(),
            fenced: false,
            num_resizes: 0,
            banks: memory::Banks::default(),
        };
        let block = || Block {
            shared: SharedMemory::new(spec.shared_bytes),
            barriers: vec![barriers::BlockBarrier::default(); 16],
            free_registers: i64::from(hopper_std::spec::REGISTERS) - i64::from(registers) * block_threads as i64,
        };
        let seed = origin.iter().fold(schedule.seed, |seed, &index| Random::new(seed ^ u64::from(index)).next());
        let state = State {
            threads: (0..num_threads).map(|_| thread()).collect(),
            ready: vec![u32::MAX; num_threads / WARP],
            warps: (0..num_threads / WARP).map(|_| warp()).collect(),
            groups: (0..num_groups).map(|_| GroupMeeting::default()).collect(),
            resizes: vec![Vec::new(); num_groups],
            blocks: (0..num_blocks).map(|_| block()).collect(),
            mbarriers: BTreeMap::new(),
            tasks: BTreeMap::new(),
            products: BTreeMap::new(),
            accumulators: HashMap::new(),
            last_task: 0,
            last_accumulator: 0,
            random: Random::new(seed),
            findings: Vec::new(),
            seen: HashSet::new(),
            stopped: false,
            num_instructions: 0,
            bank_conflicts: 0,
            progress: 1,
            last_poll: 0,
        };
        let yielders = (0..num_threads).map(|_| Cell::new(core::ptr::null())).collect();
        Self { spec, grid, origin, memory, schedule, state: RefCell::new(state), current: Cell::new(0), yielders }
    }

    /// Threads of a block.
    pub(crate) fn block_threads(&self) -> usize {
        self.spec.threads as usize
    }

    /// The rank of the block of a thread.
    pub(crate) fn rank_of(&self, thread: usize) -> usize {
        thread / self.block_threads()
    }

    /// The warp group of a thread; a block's last may have fewer threads.
    pub(crate) fn group_of(&self, thread: usize) -> usize {
        let (rank, within) = (self.rank_of(thread), thread % self.block_threads());
        rank * self.block_threads().div_ceil(GROUP) + within / GROUP
    }

    /// The threads of a warp group.
    pub(crate) fn group_threads(&self, group: usize) -> core::ops::Range<usize> {
        let groups = self.block_threads().div_ceil(GROUP);
        let block = group / groups * self.block_threads();
        let first = group % groups * GROUP;
        block + first..block + (first + GROUP).min(self.block_threads())
    }

    /// The threads of a block.
    pub(crate) fn threads_of(&self, rank: usize) -> core::ops::Range<usize> {
        rank * self.block_threads()..(rank + 1) * self.block_threads()
    }

    /// Whether all threads of a block have ended: its shared memory is no more.
    pub(crate) fn has_ended(&self, state: &State, rank: usize) -> bool {
        self.threads_of(rank).all(|thread| state.threads[thread].status == Status::Ended)
    }

    /// The rank of the block that runs.
    pub(crate) fn rank(&self) -> usize {
        self.rank_of(self.current.get())
    }

    /// The coordinates of a block.
    pub(crate) fn block_index(&self, rank: usize) -> [u32; 3] {
        [self.origin[0] + rank as u32, self.origin[1], self.origin[2]]
    }

    /// Gives control back to the scheduler.
    pub(crate) fn suspend(&self) {
        let yielder = self.yielders[self.current.get()].get();
        // SAFETY: the thread that runs is a coroutine, which has left its yielder here and is still on its stack.
        unsafe { (*yielder).suspend(()) };
    }

    /// Ends this thread's part: nothing that follows would mean anything.
    pub(crate) fn stop(&self) -> ! {
        self.state.borrow_mut().stopped = true;
        loop {
            self.suspend();
        }
    }

    /// Makes this thread wait until somebody [wakes](State::wake) it.
    pub(crate) fn wait(&self, wait: Wait, at: At) {
        let thread = self.current.get();
        self.state.borrow_mut().set_status(thread, Status::Waiting(wait, at));
        self.suspend();
    }

    /// Counts an instruction, and now and then lets others go first.
    pub(crate) fn step(&self, at: At) {
        let switch = {
            let mut state = self.state.borrow_mut();
            state.num_instructions += 1;
            let thread = self.current.get();
            state.threads[thread].at = Some(at);
            match self.schedule.mode {
                // Seldom, but often enough for those who spin on a word that another thread writes.
                Mode::Fair => state.num_instructions.is_multiple_of(256),
                _ => state.random.below(16) == 0,
            }
        };
        if switch {
            self.suspend();
        }
    }

    /// A fault of the thread that runs.
    pub(crate) fn fault(&self, state: &mut State, kind: FindingKind, at: At, details: String) {
        self.fault_of(state, self.current.get(), kind, Some(at), details);
    }

    /// A fault of a thread.
    pub(crate) fn fault_of(
        &self,
        state: &mut State,
        thread: usize,
        kind: FindingKind,
        at: Option<At>,
        details: String,
    ) {
        let block = self.block_index(self.rank_of(thread));
        let thread = Some((thread % self.block_threads()) as u32);
        state.find(Finding { kind, kernel: self.spec.name, block, thread, at, details });
    }

    /// A fault after which nothing means anything.
    pub(crate) fn fatal(&self, kind: FindingKind, at: At, details: String) -> ! {
        self.fault(&mut self.state.borrow_mut(), kind, at, details);
        self.stop()
    }

    /// The block and the address in it that a shared address of this thread's names.
    pub(crate) fn resolve(&self, at: At, address: u32, num_bytes: u32, align: u32) -> (usize, u32) {
        let offset = address & ((1 << RANK_SHIFT) - 1);
        let rank = match address >> RANK_SHIFT {
            0 => self.rank(),
            named => named as usize - 1,
        };
        if rank >= self.spec.cluster as usize {
            self.fatal(FindingKind::OutOfBounds, at, format!("{address:#x} is in no block of the cluster"));
        }
        if !offset.is_multiple_of(align) {
            let details = format!("shared address {offset:#x} is no multiple of {align}");
            self.fatal(FindingKind::Misaligned, at, details);
        }
        let inside = self.state.borrow().blocks[rank].shared.contains(offset, num_bytes);
        if !inside {
            self.fatal(FindingKind::OutOfBounds, at, self.beyond(offset, num_bytes));
        }
        (rank, offset)
    }

    /// What is not within a block's shared memory, in words.
    pub(crate) fn beyond(&self, address: u32, num_bytes: u32) -> String {
        let relative = i64::from(address) - i64::from(BASE);
        format!("{num_bytes} bytes at byte {relative} of {} of shared memory", self.spec.shared_bytes)
    }

    /// As [`resolve`](Self::resolve), for an instruction that names this block's memory only.
    pub(crate) fn resolve_own(&self, at: At, address: u32, num_bytes: u32, align: u32) -> u32 {
        if address >> RANK_SHIFT != 0 {
            let details =
                format!("{address:#x} is an address of the cluster's window, this instruction takes the block's");
            self.fatal(FindingKind::OutOfBounds, at, details);
        }
        self.resolve(at, address, num_bytes, align).1
    }

    /// Records what a check of shared memory found.
    pub(crate) fn shared_fault(&self, state: &mut State, at: At, rank: usize, fault: &Fault) {
        let relative = fault.address - BASE;
        let other = state.describe(fault.task);
        let details = match fault.kind {
            FindingKind::ReadInFlight => format!("byte {relative} of shared memory is being written by {other}"),
            FindingKind::OverwriteInFlight if fault.task != 0 => {
                format!("byte {relative} of shared memory is being written by {other}")
            }
            FindingKind::OverwriteInFlight => {
                let reader = state.reader_of(rank, fault.address);
                format!("byte {relative} of shared memory is being read by {reader}")
            }
            FindingKind::MissingProxyFence => {
                let writer = state.blocks[rank].shared.writer(fault.address);
                format!(
                    "byte {relative} of shared memory was written by an ordinary store of thread {}, with no \
                     fence.proxy.async after it",
                    writer.map_or_else(|| "?".to_owned(), |writer| writer.to_string())
                )
            }
            _ => format!("byte {relative} of shared memory was never written"),
        };
        self.fault(state, fault.kind, at, details);
    }
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
