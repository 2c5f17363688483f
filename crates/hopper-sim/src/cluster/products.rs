//! Warp-group products: issued, carried out in order at a time that the schedule chooses, and waited for.
//!
//! While products are in flight each register of their accumulator holds a NaN that names it. It is replaced by the sum
//! where the compiler is told that the registers have new values ([`tie`](Cluster::tie)), once this warp has waited; a
//! NaN that gets anywhere else is caught there.

use hopper_std::sim::{At, MmaLeft, MmaType, Wgmma};

use super::warps::Share;
use super::{Cluster, GROUP, State, WARP};
use crate::finding::FindingKind;
use crate::fragments;
use crate::product::{self, Left, Metadata, Operand};
use crate::shared::TaskId;

/// The bits of a NaN that names an accumulator, but for its number. It is a signalling one: arithmetic makes it quiet, and
/// may change its sign, so that a register that was computed with is told from one that was not touched.
const POISON: u32 = 0x7faa_0000;
const NUMBER: u32 = 0x0001_ffff;
const QUIET: u32 = 0x0040_0000;

/// The accumulator that a register's bits name, touched or not.
pub(crate) fn poison_of(bits: u32) -> Option<u32> {
    (bits & 0x7fff_ffff & !(NUMBER | QUIET) == POISON).then_some(bits & NUMBER)
}

/// The sums of a warp group: 64 x n, row-major.
pub(crate) struct Accumulator {
    sums: Vec<f32>,
    n: u32,
    pub(crate) group: usize,
    /// Threads that still name it.
    users: usize,
    /// Where the last product was issued.
    pub(crate) at: At,
}

/// One product in flight.
pub(crate) struct Product {
    group: usize,
    accumulator: u32,
    element: MmaType,
    a: Option<Operand>,
    a_registers: Vec<[u32; 4]>,
    b: Operand,
    n: u32,
    scale_d: u32,
    metadata: Option<(Vec<u32>, u32)>,
    ranges: Vec<(u32, u32)>,
    pub(crate) at: At,
    pub(crate) carried_out: bool,
    /// Warps of the group that have waited for it.
    waited: u32,
}

impl Product {
    pub(crate) fn group(&self) -> usize {
        self.group
    }

    fn operands(&self) -> product::Product<'_> {
        product::Product {
            element: self.element,
            a: self.a.map_or(Left::Registers(&self.a_registers), Left::Shared),
            b: self.b,
            n: self.n,
            scale_d: self.scale_d,
            sparse: self.metadata.as_ref().map(|(words, selector)| Metadata { words, selector: *selector }),
        }
    }
}

impl Cluster<'_> {
    pub(crate) fn wgmma(&self, at: At, wgmma: Wgmma<'_>) {
        let n = 2 * wgmma.d.len() as u32;
        let Wgmma { d, a, b, b_major, scale_d, element, sparse } = wgmma;
        let share = Share { d: d.as_mut_ptr(), a, b, scale_d, metadata: sparse.map_or(0, |(word, _)| word) };
        self.meet_group(at, "wgmma.mma_async", share, |state, group, shares| {
            let alike = |share: &Share| {
                let left = match (share.a, a) {
                    (MmaLeft::Registers(_), MmaLeft::Registers(_)) => true,
                    (left, other) => left == other,
                };
                left && share.b == b && (share.scale_d == 0) == (scale_d == 0)
            };
            if !shares.iter().all(alike) {
                let details = "the threads of the warp group name different descriptors or scales of D".to_owned();
                self.fault(state, FindingKind::Divergence, at, details);
                state.stopped = true;
                return;
            }
            let left = match a {
                MmaLeft::Shared(descriptor, major) => Some(Operand::new(descriptor, major)),
                MmaLeft::Registers(_) => None,
            };
            let a_registers = shares.iter().filter_map(|share| match share.a {
                MmaLeft::Registers(words) => Some(words),
                MmaLeft::Shared(..) => None,
            });
            let mut product = Product {
                group,
                accumulator: 0,
                element,
                a: left,
                a_registers: a_registers.collect(),
                b: Operand::new(b, b_major),
                n,
                scale_d,
                metadata: sparse.map(|(_, selector)| (shares.iter().map(|share| share.metadata).collect(), selector)),
                ranges: Vec::new(),
                at,
                carried_out: false,
                waited: 0,
            };
            match product.operands().operand_ranges() {
                Ok(ranges) => product.ranges = ranges,
                Err(details) => {
                    self.fault(state, FindingKind::BadOperand, at, details);
                    state.stopped = true;
                    return;
                }
            }
            if !self.begin_reads(state, &product) {
                return;
            }
            product.accumulator = self.accumulator_of(state, group, shares, n, at);
            let task = state.new_task();
            state.products.insert(task, product);
            for warp in 0..GROUP / WARP {
                state.warps[self.group_threads(group).start / WARP + warp].products.open.push(task);
            }
        });
    }

    /// Marks the operands as being read; false where they are not within the block's memory.
    fn begin_reads(&self, state: &mut State, product: &Product) -> bool {
        let rank = self.rank();
        for &(address, bytes) in &product.ranges {
            if !state.blocks[rank].shared.contains(address, bytes) {
                let details = format!("a descriptor reaches {}", self.beyond(address, bytes));
                self.fault(state, FindingKind::OutOfBounds, product.at, details);
                state.stopped = true;
                return false;
            }
        }
        let epochs: Vec<u32> = self.epochs(state, rank);
        for &(address, bytes) in &product.ranges {
            let check = state.blocks[rank].shared.check_async_read(address, bytes, |thread| epochs[thread as usize]);
            if let Err(fault) = check {
                self.shared_fault(state, product.at, rank, &fault);
            }
            state.blocks[rank].shared.begin_read(address, bytes);
        }
        true
    }

    /// The proxy fences of a block's threads.
    pub(crate) fn epochs(&self, state: &State, rank: usize) -> Vec<u32> {
        state.threads[self.threads_of(rank)].iter().map(|thread| thread.epoch).collect()
    }

    /// The accumulator that the registers name, or a new one that holds their values. The registers name it afterwards.
    fn accumulator_of(&self, state: &mut State, group: usize, shares: &[Share], n: u32, at: At) -> u32 {
        let registers = n as usize / 2;
        // SAFETY: each share's thread waits in this very instruction, with its registers borrowed.
        let bits = |thread: usize, register: usize| unsafe { *shares[thread].d.add(register) }.to_bits();
        let named: Vec<Option<u32>> = (0..GROUP).map(|thread| poison_of(bits(thread, 0))).collect();
        let known = named[0].filter(|number| {
            (0..GROUP).all(|thread| (0..registers).all(|register| bits(thread, register) == POISON | number))
                && state.accumulators.get(number).is_some_and(|accumulator| accumulator.n == n)
        });
        if let Some(number) = known {
            if let Some(accumulator) = state.accumulators.get_mut(&number) {
                accumulator.at = at;
            }
            return number;
        }
        if named.iter().any(Option::is_some) {
            let details =
                "the registers of an accumulator in flight, computed with before their wait, or in another shape \
                           or order"
                    .to_owned();
            self.fault(state, FindingKind::AccumulatorInFlight, at, details);
        }
        if !(0..4).all(|warp| state.warps[self.group_threads(group).start / WARP + warp].fenced) {
            let details = "the accumulator's registers were touched, with no wgmma.fence after it".to_owned();
            self.fault(state, FindingKind::MissingWgmmaFence, at, details);
        }
        let mut sums = vec![0.0; 64 * n as usize];
        state.last_accumulator = (state.last_accumulator + 1) & NUMBER;
        let number = state.last_accumulator;
        for (thread, share) in shares.iter().enumerate() {
            for register in 0..registers {
                let (row, col) = fragments::d_element(thread, register);
                sums[row * n as usize + col] = f32::from_bits(bits(thread, register));
                // SAFETY: as above.
                unsafe { *share.d.add(register) = f32::from_bits(POISON | number) };
            }
        }
        state.accumulators.insert(number, Accumulator { sums, n, group, users: GROUP, at });
        number
    }

    /// Carries out a product, after those of its warp group that were issued before it.
    pub(crate) fn carry_out(&self, state: &mut State, task: TaskId) {
        let Some(group) = state.products.get(&task).map(|product| product.group) else { return };
        let due: Vec<TaskId> = state
            .products
            .range(..=task)
            .filter(|(_, product)| product.group == group && !product.carried_out)
            .map(|(&task, _)| task)
            .collect();
        let rank = self.rank_of(self.group_threads(group).start);
        for task in due {
            let Some(mut product) = state.products.remove(&task) else { continue };
            product.carried_out = true;
            let shared = &state.blocks[rank].shared;
            let mut read = |address: u32| {
                let mut bytes = [0; 2];
                shared.peek(address, &mut bytes);
                u16::from_le_bytes(bytes)
            };
            if let Some(accumulator) = state.accumulators.get_mut(&product.accumulator)
                && let Err(details) = product.operands().multiply(&mut read, &mut accumulator.sums)
            {
                self.fault_of(
                    state,
                    self.group_threads(group).start,
                    FindingKind::BadOperand,
                    Some(product.at),
                    details,
                );
                state.stopped = true;
            }
            state.products.insert(task, product);
        }
    }

    pub(crate) fn wgmma_fence(&self, at: At) {
        let warp = self.current.get() / WARP;
        self.meet_for(at, "wgmma.fence", |state| state.warps[warp].fenced = true);
    }

    pub(crate) fn wgmma_commit(&self, at: At) {
        let warp = self.current.get() / WARP;
        self.meet_for(at, "wgmma.commit_group", |state| state.warps[warp].products.commit());
    }

    pub(crate) fn wgmma_wait(&self, at: At, count: u32) {
        let warp = self.current.get() / WARP;
        self.meet_for(at, "wgmma.wait_group", |state| {
            state.warps[warp].fenced = false;
            for task in state.warps[warp].products.all_but(count) {
                self.carry_out(state, task);
                let Some(product) = state.products.get_mut(&task) else { continue };
                product.waited |= 1 << (warp % (self.block_threads() / WARP) % 4);
                if product.waited == 0xf {
                    self.end_reads(state, task);
                }
            }
        });
    }

    /// All warps have waited for a product: its operands are free.
    fn end_reads(&self, state: &mut State, task: TaskId) {
        if let Some(product) = state.products.remove(&task) {
            let rank = self.rank_of(self.group_threads(product.group).start);
            for &(address, bytes) in &product.ranges {
                state.blocks[rank].shared.end_read(address, bytes);
            }
        }
    }

    /// Puts the sums into registers that name an accumulator, if this warp has waited for all of its products.
    pub(crate) fn tie(&self, at: At, registers: &mut [f32]) {
        let Some(number) = registers.first().and_then(|first| poison_of(first.to_bits())) else { return };
        let thread = self.current.get();
        let (warp, mut state) = (thread / WARP, self.state.borrow_mut());
        let groups = &state.warps[warp].products;
        let pending = groups.open.iter().chain(groups.committed.iter().flatten());
        let in_flight = |task: &TaskId| state.products.get(task).is_some_and(|product| product.accumulator == number);
        if pending.into_iter().any(in_flight) {
            return;
        }
        if let Some(touched) = registers.iter().find(|value| value.to_bits() != POISON | number) {
            let bits = POISON | QUIET | poison_of(touched.to_bits()).unwrap_or(number);
            self.check_bits(&mut state, at, bits);
        }
        let Some(accumulator) = state.accumulators.get_mut(&number) else { return };
        for (register, value) in registers.iter_mut().enumerate() {
            let (row, col) = fragments::d_element(thread % self.block_threads() % GROUP, register);
            *value = accumulator.sums[row * accumulator.n as usize + col];
        }
        accumulator.users -= 1;
        if accumulator.users == 0 {
            state.accumulators.remove(&number);
        }
    }
}

impl State {
    /// The product or the copy that reads a word of a block's shared memory, in words.
    pub(crate) fn reader_of(&self, rank: usize, address: u32) -> String {
        let blocks = self.blocks.len();
        let groups_per_block = self.groups.len() / blocks;
        let reads = |product: &&Product| {
            product.group / groups_per_block.max(1) == rank
                && product.ranges.iter().any(|&(start, bytes)| (start..start + bytes).contains(&address))
        };
        if let Some(product) = self.products.values().find(reads) {
            return format!("the product issued at {}", product.at);
        }
        match self.tasks.values().find(|task| task.reads(rank, address)) {
            Some(task) => format!("the copy issued at {}", task.at),
            None => "an operation that is in flight".to_owned(),
        }
    }
}
