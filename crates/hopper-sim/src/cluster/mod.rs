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
mod ending;
mod faults;
mod instructions;
mod mbarriers;
mod memory;
mod products;
mod registers;
mod scheduler;
mod state;
mod warps;

use core::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};

use corosensei::Yielder;
use hopper_std::KernelSpec;
use hopper_std::sim::At;

use crate::memory::Memory;
use crate::schedule::{Mode, Random, Schedule};
use crate::shared::SharedMemory;

use state::{Block, ClusterBarrier, Groups, State, Status, Thread, Wait, Warp};
use warps::{GroupMeeting, Meeting};

/// Threads of a warp, and of a warp group.
pub(crate) const WARP: usize = 32;
pub(crate) const GROUP: usize = 128;

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
            // A block shares what it was launched with, whatever the multiprocessor has beside.
            free_registers: 0,
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
}
