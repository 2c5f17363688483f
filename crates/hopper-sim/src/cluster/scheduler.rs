//! Who goes next.

use core::panic::AssertUnwindSafe;
use std::any::Any;
use std::cell::RefCell;
use std::panic::catch_unwind;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use hopper_std::sim::with_machine;

use super::{Cluster, State, Status, WARP, Wait};
use crate::finding::{Finding, FindingKind, Report};
use crate::schedule::Mode;
use crate::shared::TaskId;

/// Bytes of a thread's stack: kernels that keep hundreds of registers need tens of kilobytes when they are not optimised.
const STACK_BYTES: usize = 256 << 10;

/// Instructions after which a launch is taken to have no end.
const MAX_INSTRUCTIONS: u64 = 400_000_000;

thread_local! {
    /// Stacks that nobody uses: a block needs hundreds, and the next one the same again.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

type Routine = Coroutine<(), (), (), DefaultStack>;

/// What the scheduler lets happen.
enum Next {
    Warp(usize),
    Task(TaskId),
    Nothing,
}

impl Cluster<'_> {
    /// Runs every thread to its end, or until nothing means anything.
    pub(crate) fn run(self, kernel: &(dyn Fn() + Sync)) -> Report {
        let mut routines: Vec<Option<Routine>> =
            (0..self.yielders.len()).map(|thread| Some(self.routine(thread, kernel))).collect();
        with_machine(&self, || {
            let mut last_warp = 0;
            let mut steps = 0_u64;
            loop {
                steps += 1;
                if self.state.borrow().stopped {
                    break;
                }
                match self.choose(&mut last_warp, steps) {
                    Next::Warp(warp) => self.run_warp(warp, &mut routines),
                    Next::Task(task) => self.carry_out_any(&mut self.state.borrow_mut(), task),
                    Next::Nothing => break,
                }
            }
        });
        for routine in routines.into_iter().flatten() {
            discard(&self, routine);
        }
        let mut state = self.state.into_inner();
        Report {
            findings: core::mem::take(&mut state.findings),
            bank_conflicts: state.bank_conflicts,
            num_instructions: state.num_instructions,
        }
    }

    fn routine(&self, thread: usize, kernel: &(dyn Fn() + Sync)) -> Routine {
        let stack = STACKS.with_borrow_mut(Vec::pop);
        let stack = stack.or_else(|| DefaultStack::new(STACK_BYTES).ok()).expect("memory for a thread's stack");
        let yielder = core::ptr::from_ref(&self.yielders[thread]);
        // SAFETY: only the lifetime is forgotten: every routine ends or is discarded before `run` does.
        let kernel: &'static (dyn Fn() + Sync) = unsafe { core::mem::transmute(kernel) };
        Coroutine::with_stack(stack, move |own, ()| {
            // SAFETY: the cluster outlives its routines, and stays where it is meanwhile.
            unsafe { (*yielder).set(core::ptr::from_ref(own)) };
            kernel();
        })
    }

    /// Lets the lanes of a warp that can go on run up to their next stop.
    fn run_warp(&self, warp: usize, routines: &mut [Option<Routine>]) {
        let lanes = self.state.borrow().ready[warp];
        for lane in (0..WARP).filter(|lane| lanes & (1 << lane) != 0) {
            let thread = warp * WARP + lane;
            {
                let state = self.state.borrow();
                if state.stopped {
                    return;
                }
                if state.threads[thread].status != Status::Ready {
                    continue;
                }
            }
            self.current.set(thread);
            let Some(routine) = &mut routines[thread] else { continue };
            match catch_unwind(AssertUnwindSafe(|| routine.resume(()))) {
                Ok(CoroutineResult::Yield(())) => {}
                Ok(CoroutineResult::Return(())) => {
                    self.end_thread(thread);
                    recycle(routines[thread].take());
                }
                Err(payload) => {
                    self.panicked(thread, &*payload);
                    recycle(routines[thread].take());
                }
            }
        }
        let mut state = self.state.borrow_mut();
        if state.num_instructions > MAX_INSTRUCTIONS {
            let details = format!("no end after {MAX_INSTRUCTIONS} instructions");
            let at = state.threads[warp * WARP].at;
            self.fault_of(&mut state, warp * WARP, FindingKind::Deadlock, at, details);
            state.stopped = true;
        }
    }

    fn end_thread(&self, thread: usize) {
        let mut state = self.state.borrow_mut();
        state.set_status(thread, Status::Ended);
        self.check_end(&mut state, thread);
        self.settle_barriers(&mut state, thread);
        state.progress += 1;
    }

    fn panicked(&self, thread: usize, payload: &(dyn Any + Send)) {
        let words = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let details = words.or_else(|| payload.downcast_ref::<String>().cloned());
        let mut state = self.state.borrow_mut();
        state.set_status(thread, Status::Ended);
        let finding = Finding {
            kind: FindingKind::Panic,
            kernel: self.spec.name,
            block: self.block_index(self.rank_of(thread)),
            thread: Some((thread % self.block_threads()) as u32),
            at: state.threads[thread].at,
            details: details.unwrap_or_else(|| "a panic".to_owned()),
        };
        state.find(finding);
        state.stopped = true;
    }

    pub(crate) fn carry_out_any(&self, state: &mut State, task: TaskId) {
        if state.products.contains_key(&task) {
            self.carry_out(state, task);
            state.progress += 1;
        } else {
            self.carry_out_copy(state, task);
        }
    }

    /// What may happen without a thread: copies, and of each warp group the product whose turn it is.
    fn due(state: &State) -> Vec<TaskId> {
        let mut due: Vec<TaskId> = state.tasks.keys().copied().collect();
        let mut groups = 0_u64;
        for (&task, product) in &state.products {
            let group = 1 << (product.group() % 64);
            if !product.carried_out && groups & group == 0 {
                groups |= group;
                due.push(task);
            }
        }
        due.sort_unstable();
        due
    }

    fn choose(&self, last_warp: &mut usize, steps: u64) -> Next {
        let mut state = self.state.borrow_mut();
        let mode = self.schedule.mode;
        let due = if mode == Mode::Late { Vec::new() } else { Self::due(&state) };
        if mode == Mode::Early && !due.is_empty() {
            return Next::Task(due[0]);
        }
        let mut ready: Vec<usize> = (0..state.ready.len()).filter(|&warp| state.ready[warp] != 0).collect();
        if mode == Mode::Starve {
            let starved = (self.schedule.seed as usize) % state.groups.len();
            let others: Vec<usize> =
                ready.iter().copied().filter(|&warp| self.group_of(warp * WARP) != starved).collect();
            if !others.is_empty() || !due.is_empty() {
                ready = others;
            }
        }
        match mode {
            Mode::Fair if !ready.is_empty() && (due.is_empty() || !steps.is_multiple_of(8)) => {
                let next = ready.iter().copied().find(|&warp| warp > *last_warp).unwrap_or(ready[0]);
                *last_warp = next;
                Next::Warp(next)
            }
            Mode::Fair if !due.is_empty() => Next::Task(due[0]),
            _ if ready.len() + due.len() > 0 => {
                // While threads can go on, one or the other is equally likely, however much is in flight.
                let thread_first = due.is_empty() || (!ready.is_empty() && state.random.below(2) == 0);
                match thread_first {
                    true => Next::Warp(ready[state.random.below(ready.len())]),
                    false => Next::Task(due[state.random.below(due.len())]),
                }
            }
            _ => self.last_resort(&mut state),
        }
    }

    /// No thread is ready: the end, late tasks, then those who poll, then a deadlock.
    fn last_resort(&self, state: &mut State) -> Next {
        if state.threads.iter().all(|thread| thread.status == Status::Ended) {
            self.check_cluster_end(state);
            return Next::Nothing;
        }
        let due = Self::due(state);
        if !due.is_empty() {
            return Next::Task(due[state.random.below(due.len())]);
        }
        if state.last_poll != state.progress {
            state.last_poll = state.progress;
            let polls = |thread: &usize| matches!(state.threads[*thread].status, Status::Waiting(Wait::Anything, _));
            let polling: Vec<usize> = (0..state.threads.len()).filter(polls).collect();
            for &thread in &polling {
                state.set_status(thread, Status::Ready);
            }
            if let Some(&thread) = polling.first() {
                return Next::Warp(thread / WARP);
            }
        }
        self.explain_deadlock(state);
        state.stopped = true;
        Next::Nothing
    }
}

/// Keeps the stack of a routine that has ended.
fn recycle(routine: Option<Routine>) {
    if let Some(routine) = routine
        && routine.done()
    {
        STACKS.with_borrow_mut(|stacks| stacks.push(routine.into_stack()));
    }
}

/// Ends a routine that has not.
fn discard(cluster: &Cluster<'_>, mut routine: Routine) {
    if routine.started() && !routine.done() {
        with_machine(cluster, || routine.force_unwind());
    }
    drop(routine);
}
