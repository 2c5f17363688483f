//! Each instruction, and who carries it out.

use hopper_std::sim::{At, BulkWait, Fence, Machine, MatrixMove, Reduce, Shuffle, Special, StoreKind, Wgmma};

use super::barriers::Incomplete;
use super::registers::Resize;
use super::{Cluster, WARP};
use crate::finding::FindingKind;
use crate::fragments::{self, Rows};
use crate::shared::{BASE, RANK_SHIFT};

/// Rows of a matrix, and its bytes.
const ROW_BYTES: usize = 16;

fn row_of(bytes: [u8; ROW_BYTES]) -> [u16; 8] {
    core::array::from_fn(|col| u16::from_le_bytes([bytes[2 * col], bytes[2 * col + 1]]))
}

fn bytes_of(row: [u16; 8]) -> [u8; ROW_BYTES] {
    core::array::from_fn(|byte| row[byte / 2].to_le_bytes()[byte % 2])
}

impl Cluster<'_> {
    fn lane(&self) -> usize {
        self.current.get() % WARP
    }

    /// The shared addresses of the rows of `count` matrices that the lanes name, and whether each is a row at all.
    fn row_addresses(&self, at: At, address: u32, count: usize) -> Option<u32> {
        let counts = self.lane() < 8 * count;
        counts.then(|| self.resolve_own(at, address, ROW_BYTES as u32, ROW_BYTES as u32))
    }
}

impl Machine for Cluster<'_> {
    fn special(&self, register: Special) -> u64 {
        let thread = self.current.get();
        let within = thread % self.block_threads();
        let [x, y, z] = self.block_index(self.rank());
        let [nx, ny, nz] = self.grid;
        let value = match register {
            Special::TidX => within as u32,
            Special::NtidX => self.spec.threads,
            Special::CtaidX => x,
            Special::CtaidY => y,
            Special::CtaidZ => z,
            Special::NctaidX => nx,
            Special::NctaidY => ny,
            Special::NctaidZ => nz,
            Special::Laneid => (within % WARP) as u32,
            Special::Smid => x % 132,
            Special::ClusteridX => x / self.spec.cluster,
            Special::NclusteridX => nx / self.spec.cluster,
            Special::ClusterCtarank => self.rank() as u32,
            Special::ClusterNctarank => self.spec.cluster,
            Special::DynamicSmemSize => self.spec.shared_bytes,
            Special::Clock64 | Special::Globaltimer => {
                // Each look at the clock takes its time: who waits for a time does not wait forever.
                let mut state = self.state.borrow_mut();
                state.num_instructions += 1;
                return state.num_instructions;
            }
        };
        u64::from(value)
    }

    fn dynamic_shared_address(&self) -> u32 {
        BASE
    }

    fn load_global(&self, at: At, address: *const u8, bytes: &mut [u8]) {
        Cluster::load_global(self, at, address, bytes);
    }

    fn store_global(&self, at: At, address: *mut u8, bytes: &[u8]) {
        Cluster::store_global(self, at, address, bytes);
    }

    fn atomic_add(&self, at: At, address: *mut u32, value: u32) -> u32 {
        Cluster::atomic_add(self, at, address, value)
    }

    fn load_shared(&self, at: At, address: u32, bytes: &mut [u8]) {
        Cluster::load_shared(self, at, address, bytes);
    }

    fn store_shared(&self, at: At, address: u32, bytes: &[u8]) {
        Cluster::store_shared(self, at, address, bytes);
    }

    fn shuffle(&self, at: At, kind: Shuffle, value: u32, lane: u32) -> u32 {
        self.check_bits(&mut self.state.borrow_mut(), at, value);
        let name = match kind {
            Shuffle::Bfly => "shfl.sync.bfly",
            Shuffle::Idx => "shfl.sync.idx",
            Shuffle::Up => "shfl.sync.up",
            Shuffle::Down => "shfl.sync.down",
        };
        self.meet(at, name, [value, lane, 0, 0, 0], |_, values| {
            core::array::from_fn(|own| {
                let lane = values[own][1] as usize;
                let source = match kind {
                    Shuffle::Bfly => own ^ (lane % WARP),
                    Shuffle::Idx => lane % WARP,
                    Shuffle::Up => own.checked_sub(lane % WARP).unwrap_or(own),
                    Shuffle::Down => Some(own + lane % WARP).filter(|&source| source < WARP).unwrap_or(own),
                };
                [values[source][0], 0, 0, 0, 0]
            })
        })[0]
    }

    fn ballot(&self, at: At, predicate: bool) -> u32 {
        self.meet(at, "vote.sync.ballot", [u32::from(predicate), 0, 0, 0, 0], |_, values| {
            let mask = values.iter().enumerate().fold(0, |mask, (lane, value)| mask | value[0] << lane);
            [[mask, 0, 0, 0, 0]; WARP]
        })[0]
    }

    fn reduce(&self, at: At, kind: Reduce, value: u32) -> u32 {
        self.check_bits(&mut self.state.borrow_mut(), at, value);
        let (name, keep): (_, fn(u32, u32) -> u32) = match kind {
            Reduce::Min => ("redux.sync.min", u32::min),
            Reduce::Max => ("redux.sync.max", u32::max),
        };
        self.meet(at, name, [value, 0, 0, 0, 0], |_, values| {
            let kept = values.iter().map(|value| value[0]).fold(values[0][0], keep);
            [[kept, 0, 0, 0, 0]; WARP]
        })[0]
    }

    fn elect(&self, at: At) -> bool {
        self.meet(at, "elect.sync", [0; 5], |_, _| core::array::from_fn(|lane| [u32::from(lane == 0), 0, 0, 0, 0]))[0]
            != 0
    }

    fn warp_sync(&self, at: At) {
        self.meet_for(at, "bar.warp.sync", |_| ());
    }

    fn movmatrix_trans(&self, at: At, pair: u32) -> u32 {
        self.meet(at, "movmatrix", [pair, 0, 0, 0, 0], |_, values| {
            let turned = fragments::movmatrix_trans(&core::array::from_fn(|lane| values[lane][0]));
            core::array::from_fn(|lane| [turned[lane], 0, 0, 0, 0])
        })[0]
    }

    fn ldmatrix(&self, at: At, address: u32, how: MatrixMove, matrices: &mut [u32]) {
        let count = matrices.len();
        let address = self.row_addresses(at, address, count).unwrap_or(0);
        let rank = self.rank();
        let words = self.meet(at, "ldmatrix", [address, 0, 0, 0, 0], |state, values| {
            let mut words = [[0; 5]; WARP];
            for matrix in 0..count {
                let rows: Rows = core::array::from_fn(|row| {
                    let address = values[fragments::row_lane(matrix, row)][0];
                    if let Err(fault) = state.blocks[rank].shared.check_load(address, ROW_BYTES as u32) {
                        self.shared_fault(state, at, rank, &fault);
                    }
                    let mut bytes = [0; ROW_BYTES];
                    state.blocks[rank].shared.peek(address, &mut bytes);
                    row_of(bytes)
                });
                let addresses: [u32; 8] = core::array::from_fn(|row| values[fragments::row_lane(matrix, row)][0]);
                state.bank_conflicts += super::memory::ways_beyond_one(&addresses, ROW_BYTES as u32);
                for (lane, word) in fragments::ldmatrix(&rows, how).into_iter().enumerate() {
                    words[lane][matrix] = word;
                }
            }
            words
        });
        matrices.copy_from_slice(&words[..count]);
    }

    fn stmatrix(&self, at: At, address: u32, how: MatrixMove, matrices: &[u32]) {
        let count = matrices.len();
        let address = self.row_addresses(at, address, count).unwrap_or(0);
        let first = self.current.get() / WARP * WARP;
        let mut value = [address, 0, 0, 0, 0];
        value[1..=count].copy_from_slice(matrices);
        self.meet(at, "stmatrix", value, |state, values| {
            for matrix in 0..count {
                let rows = fragments::stmatrix(&core::array::from_fn(|lane| values[lane][1 + matrix]), how);
                let addresses: [u32; 8] = core::array::from_fn(|row| values[fragments::row_lane(matrix, row)][0]);
                state.bank_conflicts += super::memory::ways_beyond_one(&addresses, ROW_BYTES as u32);
                for (row, address) in addresses.into_iter().enumerate() {
                    // The elements of a row come from four lanes; the one that names it stands for them.
                    self.write_shared(state, at, first + matrix * 8 + row, address, &bytes_of(rows[row]));
                }
            }
            [[0; 5]; WARP]
        });
    }

    fn barrier_sync(&self, at: At, id: u32, threads: Option<u32>) {
        self.bar(at, id, threads, Incomplete::Wait);
    }

    fn barrier_arrive(&self, at: At, id: u32, threads: u32) {
        self.bar(at, id, Some(threads), Incomplete::GoOn);
    }

    fn fence(&self, at: At, fence: Fence) {
        Cluster::fence(self, at, fence);
    }

    fn setmaxnreg_dec(&self, at: At, count: u32) {
        self.setmaxnreg(at, Resize::Dec, count);
    }

    fn setmaxnreg_inc(&self, at: At, count: u32) {
        self.setmaxnreg(at, Resize::Inc, count);
    }

    fn mapa(&self, at: At, address: u32, rank: u32) -> u32 {
        if rank >= self.spec.cluster {
            self.fatal(FindingKind::BadOperand, at, format!("block {rank} of a cluster of {}", self.spec.cluster));
        }
        address & ((1 << RANK_SHIFT) - 1) | (rank + 1) << RANK_SHIFT
    }

    fn cluster_arrive(&self, at: At) {
        Cluster::cluster_arrive(self, at);
    }

    fn cluster_wait(&self, at: At) {
        Cluster::cluster_wait(self, at);
    }

    fn mbarrier_init(&self, at: At, barrier: u32, count: u32) {
        Cluster::mbarrier_init(self, at, barrier, count);
    }

    fn mbarrier_inval(&self, at: At, barrier: u32) {
        Cluster::mbarrier_inval(self, at, barrier);
    }

    fn mbarrier_arrive(&self, at: At, barrier: u32) {
        Cluster::mbarrier_arrive(self, at, barrier, 0);
    }

    fn mbarrier_arrive_cluster(&self, at: At, barrier: u32) {
        Cluster::mbarrier_arrive_cluster(self, at, barrier);
    }

    fn mbarrier_arrive_expect_tx(&self, at: At, barrier: u32, bytes: u32) {
        Cluster::mbarrier_arrive(self, at, barrier, bytes);
    }

    fn mbarrier_expect_tx(&self, at: At, barrier: u32, bytes: u32) {
        self.mbarrier_expect(at, barrier, bytes);
    }

    fn mbarrier_try_wait(&self, at: At, barrier: u32, parity: u32) -> bool {
        self.mbarrier_wait(at, barrier, parity, Incomplete::Wait)
    }

    fn mbarrier_test_wait(&self, at: At, barrier: u32, parity: u32) -> bool {
        self.mbarrier_wait(at, barrier, parity, Incomplete::GoOn)
    }

    fn bulk_load(&self, at: At, destination: u32, source: *const u8, bytes: u32, barrier: u32, mask: Option<u16>) {
        Cluster::bulk_load(self, at, destination, source, bytes, barrier, mask);
    }

    fn bulk_store(&self, at: At, destination: *mut u8, source: u32, bytes: u32) {
        Cluster::bulk_store(self, at, destination, source, bytes);
    }

    fn bulk_commit(&self, at: At) {
        Cluster::bulk_commit(self, at);
    }

    fn bulk_wait(&self, at: At, count: u32, what: BulkWait) {
        Cluster::bulk_wait(self, at, count, what);
    }

    fn tensor_load(&self, at: At, destination: u32, map: *const u8, box_at: &[i32], barrier: u32, mask: Option<u16>) {
        Cluster::tensor_load(self, at, destination, map, box_at, barrier, mask);
    }

    fn tensor_store(&self, at: At, map: *const u8, box_at: &[i32], source: u32, kind: StoreKind) {
        Cluster::tensor_store(self, at, map, box_at, source, kind);
    }

    fn prefetch_tensormap(&self, at: At, map: *const u8) {
        if self.memory.map(map).is_none() {
            self.fatal(FindingKind::BadOperand, at, format!("no tensor map lies at {:#x}", map as usize));
        }
    }

    fn cp_async(&self, at: At, destination: u32, source: *const u8, bytes: u32, source_bytes: u32) {
        Cluster::cp_async(self, at, destination, source, bytes, source_bytes);
    }

    fn cp_async_commit(&self, at: At) {
        Cluster::cp_async_commit(self, at);
    }

    fn cp_async_wait(&self, at: At, count: u32) {
        Cluster::cp_async_wait(self, at, count);
    }

    fn cp_async_mbarrier_arrive_noinc(&self, at: At, barrier: u32) {
        self.cp_async_arrive(at, barrier);
    }

    fn wgmma_fence(&self, at: At) {
        Cluster::wgmma_fence(self, at);
    }

    fn wgmma_commit(&self, at: At) {
        Cluster::wgmma_commit(self, at);
    }

    fn wgmma_wait(&self, at: At, count: u32) {
        Cluster::wgmma_wait(self, at, count);
    }

    fn wgmma(&self, at: At, product: Wgmma<'_>) {
        Cluster::wgmma(self, at, product);
    }

    fn tie(&self, at: At, registers: &mut [f32]) {
        Cluster::tie(self, at, registers);
    }

    fn use_f32(&self, at: At, value: f32) {
        self.check_bits(&mut self.state.borrow_mut(), at, value.to_bits());
    }
}
