//! Copies in flight: boxes of tensors, bulk copies, `cp.async`.

use hopper_std::sim::{At, BulkWait, StoreKind};

use super::{Cluster, State};
use crate::finding::FindingKind;
use crate::memory;
use crate::shared::TaskId;
use crate::tensor_map::{Piece, TensorElement, Way, add};

/// What a task does when it is carried out.
pub(super) enum Work {
    /// Global to the shared memory of a block; completes bytes at a barrier of that block.
    Load { rank: usize, pieces: Vec<Piece>, barrier: u32, bytes: u32 },
    /// Shared memory of a block to global.
    Store { rank: usize, pieces: Vec<Piece>, add: Option<TensorElement> },
    /// What a store has read, on its way to global memory.
    Write { writes: Vec<(*mut u8, Vec<u8>)>, add: Option<TensorElement> },
    /// `cp.async`: zeros behind what is copied.
    Copy { rank: usize, pieces: Vec<Piece> },
    /// An arrival that waits for a thread's earlier `cp.async`.
    Arrive { rank: usize, barrier: u32, after: Vec<TaskId> },
}

/// Something that happens later.
pub(crate) struct Task {
    pub(super) work: Work,
    pub(super) thread: usize,
    pub(super) at: At,
}

impl Task {
    /// Whether it reads the word at `address` of a block's shared memory.
    pub(crate) fn reads(&self, of: usize, address: u32) -> bool {
        match &self.work {
            Work::Store { rank, pieces, .. } => {
                let holds = |piece: &Piece| (piece.shared..piece.shared + piece.bytes).contains(&address);
                *rank == of && pieces.iter().any(holds)
            }
            _ => false,
        }
    }
}

impl Cluster<'_> {
    /// Starts a load of `pieces` into this block, or into all blocks of `mask`.
    fn load(&self, at: At, rank: usize, pieces: Vec<Piece>, barrier: u32, mask: Option<u16>) {
        let bytes = pieces.iter().map(|piece| piece.bytes).sum();
        let ranks: Vec<usize> = match mask {
            None => vec![rank],
            Some(mask) => (0..16).filter(|rank| mask & (1 << rank) != 0).collect(),
        };
        for rank in ranks {
            if rank >= self.spec.cluster as usize {
                self.fatal(FindingKind::BadOperand, at, format!("a multicast to block {rank} of the cluster"));
            }
            let window = (rank as u32 + 1) << crate::shared::RANK_SHIFT;
            let key = self.mbarrier(at, window | barrier);
            let mut state = self.state.borrow_mut();
            self.check_visible(&mut state, at, key);
            let task = state.new_task();
            for piece in &pieces {
                if !state.blocks[rank].shared.contains(piece.shared, piece.bytes) {
                    let details = format!("a box reaches {}", self.beyond(piece.shared, piece.bytes));
                    drop(state);
                    self.fatal(FindingKind::OutOfBounds, at, details);
                }
                if let Err(fault) = state.blocks[rank].shared.check_write(piece.shared, piece.bytes) {
                    self.shared_fault(&mut state, at, rank, &fault);
                }
                self.check_no_barrier(&mut state, at, rank, piece.shared, piece.bytes);
            }
            // After all checks: where the tensor ends within a word, two pieces share it.
            for piece in &pieces {
                state.blocks[rank].shared.begin_write(piece.shared, piece.bytes, task);
            }
            state.mbarrier(key).in_flight += i64::from(bytes);
            let work = Work::Load { rank, pieces: pieces.clone(), barrier: key.1, bytes };
            state.tasks.insert(task, Task { work, thread: self.current.get(), at });
        }
    }

    /// Starts a store of `pieces` of this block.
    fn store(&self, at: At, mut pieces: Vec<Piece>, add: Option<TensorElement>) {
        let (thread, rank) = (self.current.get(), self.rank());
        let mut state = self.state.borrow_mut();
        let epochs = self.epochs(&state, rank);
        if let Some(piece) = pieces.iter().find(|piece| !state.blocks[rank].shared.contains(piece.shared, piece.bytes))
        {
            let details = format!("a box reaches {}", self.beyond(piece.shared, piece.bytes));
            drop(state);
            self.fatal(FindingKind::OutOfBounds, at, details);
        }
        // What lies outside of the tensor goes nowhere, whatever it is.
        pieces.retain(|piece| piece.global.is_some());
        for piece in &pieces {
            let shared = &mut state.blocks[rank].shared;
            let check = shared.check_async_read(piece.shared, piece.bytes, |thread| epochs[thread as usize]);
            if let Err(fault) = check {
                self.shared_fault(&mut state, at, rank, &fault);
            }
            state.blocks[rank].shared.begin_read(piece.shared, piece.bytes);
        }
        let task = state.new_task();
        state.threads[thread].bulk.open.push(task);
        state.tasks.insert(task, Task { work: Work::Store { rank, pieces, add }, thread, at });
    }

    pub(crate) fn tensor_load(
        &self,
        at: At,
        destination: u32,
        map: *const u8,
        box_at: &[i32],
        barrier: u32,
        mask: Option<u16>,
    ) {
        self.step(at);
        let (rank, shared) = self.resolve(at, destination, 16, 128);
        let pieces = self.box_pieces(at, map, box_at, shared, Way::Load);
        let barrier = self.barrier_of_load(at, rank, barrier);
        self.load(at, rank, pieces, barrier, mask);
    }

    pub(crate) fn tensor_store(&self, at: At, map: *const u8, box_at: &[i32], source: u32, kind: StoreKind) {
        self.step(at);
        let shared = self.resolve_own(at, source, 16, 128);
        let pieces = self.box_pieces(at, map, box_at, shared, Way::Store);
        let element = self.memory.map(map).map(|map| map.element);
        self.store(at, pieces, element.filter(|_| kind == StoreKind::Add));
    }

    /// The pieces of a box, all of them allocated.
    fn box_pieces(&self, at: At, map: *const u8, box_at: &[i32], shared: u32, way: Way) -> Vec<Piece> {
        let Some(map) = self.memory.map(map) else {
            self.fatal(FindingKind::BadOperand, at, format!("no tensor map lies at {:#x}", map as usize));
        };
        if map.rank() != box_at.len() {
            let details = format!("{} coordinates for a tensor map of rank {}", box_at.len(), map.rank());
            self.fatal(FindingKind::BadOperand, at, details);
        }
        if let Some(details) = map.refuses(box_at, way) {
            self.fatal(FindingKind::BadOperand, at, details);
        }
        let pieces = map.pieces(box_at, shared, way);
        let inside = || pieces.iter().filter_map(|piece| Some((piece.global? as usize, piece.bytes as usize)));
        if let (Some(first), Some(last)) = (inside().min(), inside().max()) {
            let span = last.0 + last.1 - first.0;
            if let Err(details) = self.memory.find(first.0, span) {
                self.fatal(FindingKind::OutOfBounds, at, format!("a tensor map names {details}"));
            }
        }
        pieces
    }

    pub(crate) fn bulk_load(
        &self,
        at: At,
        destination: u32,
        source: *const u8,
        bytes: u32,
        barrier: u32,
        mask: Option<u16>,
    ) {
        self.step(at);
        let (rank, shared) = self.resolve(at, destination, bytes, 16);
        self.check_bulk(at, source as usize, bytes);
        let barrier = self.barrier_of_load(at, rank, barrier);
        self.load(at, rank, vec![Piece { global: Some(source.cast_mut()), shared, bytes }], barrier, mask);
    }

    pub(crate) fn bulk_store(&self, at: At, destination: *mut u8, source: u32, bytes: u32) {
        self.step(at);
        let shared = self.resolve_own(at, source, bytes, 16);
        self.check_bulk(at, destination as usize, bytes);
        self.store(at, vec![Piece { global: Some(destination), shared, bytes }], None);
    }

    /// The offset of a load's barrier, which must lie in the block that the load goes to. PTX ISA 9.7.9.25.4.1.
    fn barrier_of_load(&self, at: At, destination_rank: usize, barrier: u32) -> u32 {
        let (rank, offset) = self.resolve(at, barrier, 8, 8);
        if rank != destination_rank {
            let details = format!("a load into block {destination_rank} completes at a barrier of block {rank}");
            self.fatal(FindingKind::BadOperand, at, details);
        }
        offset
    }

    fn check_bulk(&self, at: At, address: usize, bytes: u32) {
        if !address.is_multiple_of(16) || !bytes.is_multiple_of(16) {
            let details = format!("a bulk copy of {bytes} bytes at {address:#x}: both must be multiples of 16");
            self.fatal(FindingKind::Misaligned, at, details);
        }
        if let Err(details) = self.memory.find(address, bytes as usize) {
            self.fatal(FindingKind::OutOfBounds, at, details);
        }
    }

    pub(crate) fn bulk_commit(&self, at: At) {
        self.step(at);
        let thread = self.current.get();
        self.state.borrow_mut().threads[thread].bulk.commit();
    }

    /// Waits until all bulk groups but the last `count` are done, or have read their shared memory.
    pub(crate) fn bulk_wait(&self, at: At, count: u32, what: BulkWait) {
        self.step(at);
        let thread = self.current.get();
        let mut state = self.state.borrow_mut();
        match what {
            BulkWait::Done => {
                for task in state.threads[thread].bulk.all_but(count) {
                    self.carry_out_copy(&mut state, task);
                }
            }
            BulkWait::Read => {
                let read: Vec<TaskId> = state.threads[thread].bulk.but_last(count).flatten().copied().collect();
                for task in read {
                    self.read_source(&mut state, task);
                }
            }
        }
    }

    /// Reads what a store is to write, if that has not happened yet.
    fn read_source(&self, state: &mut State, task: TaskId) {
        let Some(Task { work: Work::Store { rank, pieces, add }, .. }) = state.tasks.get_mut(&task) else { return };
        let (rank, add, pieces) = (*rank, *add, core::mem::take(pieces));
        let mut writes = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let mut bytes = vec![0; piece.bytes as usize];
            state.blocks[rank].shared.peek(piece.shared, &mut bytes);
            state.blocks[rank].shared.end_read(piece.shared, piece.bytes);
            writes.extend(piece.global.map(|address| (address, bytes)));
        }
        if let Some(task) = state.tasks.get_mut(&task) {
            task.work = Work::Write { writes, add };
        }
    }

    pub(crate) fn cp_async(&self, at: At, destination: u32, source: *const u8, bytes: u32, source_bytes: u32) {
        self.step(at);
        let (thread, rank) = (self.current.get(), self.rank());
        let shared = self.resolve_own(at, destination, bytes, bytes);
        if source_bytes > bytes {
            self.fatal(FindingKind::BadOperand, at, format!("{source_bytes} bytes of a copy of {bytes}"));
        }
        let mut pieces = Vec::new();
        if source_bytes > 0 {
            if !(source as usize).is_multiple_of(bytes as usize) {
                let details = format!("a copy of {bytes} bytes from {:#x}", source as usize);
                self.fatal(FindingKind::Misaligned, at, details);
            }
            if let Err(details) = self.memory.find(source as usize, source_bytes as usize) {
                self.fatal(FindingKind::OutOfBounds, at, details);
            }
            pieces.push(Piece { global: Some(source.cast_mut()), shared, bytes: source_bytes });
        }
        if source_bytes < bytes {
            pieces.push(Piece { global: None, shared: shared + source_bytes, bytes: bytes - source_bytes });
        }
        let mut state = self.state.borrow_mut();
        if let Err(fault) = state.blocks[rank].shared.check_write(shared, bytes) {
            self.shared_fault(&mut state, at, rank, &fault);
        }
        self.check_no_barrier(&mut state, at, rank, shared, bytes);
        let task = state.new_task();
        state.blocks[rank].shared.begin_write(shared, bytes, task);
        state.threads[thread].copies.open.push(task);
        state.tasks.insert(task, Task { work: Work::Copy { rank, pieces }, thread, at });
    }

    pub(crate) fn cp_async_commit(&self, at: At) {
        self.step(at);
        let thread = self.current.get();
        self.state.borrow_mut().threads[thread].copies.commit();
    }

    pub(crate) fn cp_async_wait(&self, at: At, count: u32) {
        self.step(at);
        let thread = self.current.get();
        let mut state = self.state.borrow_mut();
        for task in state.threads[thread].copies.all_but(count) {
            self.carry_out_copy(&mut state, task);
        }
    }

    pub(crate) fn cp_async_arrive(&self, at: At, barrier: u32) {
        self.step(at);
        let (rank, barrier) = self.own_mbarrier(at, barrier);
        let thread = self.current.get();
        let mut state = self.state.borrow_mut();
        let copies = &state.threads[thread].copies;
        let after = copies.open.iter().chain(copies.committed.iter().flatten()).copied().collect();
        let task = state.new_task();
        state.tasks.insert(task, Task { work: Work::Arrive { rank, barrier, after }, thread, at });
    }

    /// Carries out a copy, if that has not happened yet.
    pub(crate) fn carry_out_copy(&self, state: &mut State, task: TaskId) {
        self.read_source(state, task);
        let Some(Task { work, thread, at }) = state.tasks.remove(&task) else { return };
        state.progress += 1;
        match work {
            Work::Load { rank, pieces, barrier, bytes } => {
                if self.has_ended(state, rank) {
                    let details = format!("block {rank} of the cluster ends before this copy has arrived");
                    self.fault_of(state, thread, FindingKind::Unfinished, Some(at), details);
                }
                self.land(state, rank, &pieces);
                if let Some(mbarrier) = state.mbarriers.get_mut(&(rank, barrier)) {
                    let outcome = mbarrier.complete(bytes);
                    self.settle(state, (rank, barrier), outcome, thread, at);
                }
            }
            Work::Copy { rank, pieces } => {
                self.land(state, rank, &pieces);
                // Written by the generic proxy: the asynchronous one needs a fence, like for any store of the thread.
                let epoch = state.threads[thread].epoch;
                for piece in &pieces {
                    let writer = (thread % self.block_threads()) as u16;
                    state.blocks[rank].shared.set_writer(piece.shared, piece.bytes, writer, epoch);
                }
            }
            // It has just become a write.
            Work::Store { .. } => {}
            Work::Write { writes, add: element } => {
                let _alone = element.map(|_| self.memory.reduce());
                for (address, mut bytes) in writes {
                    if let Some(element) = element {
                        let mut sum = vec![0; bytes.len()];
                        // SAFETY: the piece was found allocated when the store was issued.
                        unsafe { memory::read(address, &mut sum) };
                        if let Err(details) = add(element, &mut sum, &bytes) {
                            self.fault_of(state, thread, FindingKind::BadOperand, Some(at), details);
                        }
                        bytes = sum;
                    }
                    // SAFETY: as above.
                    unsafe { memory::write(address, &bytes) };
                }
            }
            Work::Arrive { rank, barrier, after } => {
                for task in after {
                    self.carry_out_copy(state, task);
                }
                if let Some(mbarrier) = state.mbarriers.get_mut(&(rank, barrier)) {
                    let outcome = mbarrier.arrive_for_copies();
                    self.settle(state, (rank, barrier), outcome, thread, at);
                }
            }
        }
    }

    /// The pieces arrive in a block's shared memory.
    fn land(&self, state: &mut State, rank: usize, pieces: &[Piece]) {
        for piece in pieces {
            let mut bytes = vec![0; piece.bytes as usize];
            if let Some(address) = piece.global {
                // SAFETY: the piece was found allocated when the copy was issued.
                unsafe { memory::read(address, &mut bytes) };
            }
            state.blocks[rank].shared.end_write(piece.shared, &bytes);
        }
    }
}
