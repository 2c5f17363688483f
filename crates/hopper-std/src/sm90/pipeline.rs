//! A ring of stages in shared memory between a producer and its consumers.
//!
//! ```text
//!              full[i]: data has arrived          empty[i]: every consumer warp has released
//! producer:  acquire -> load, load, ... ->   |   consumers:  wait -> read -> release
//!            (waits for empty[i], expects     |               (wait for full[i], arrive at empty[i])
//!             the bytes of a stage at full[i])|
//! ```
//!
//! Stage index and phase exist in this file only. With a [`ClusterScope`] the blocks of a cluster fill one another's
//! stages by multicast, so a slot is empty when the consumers of *all* blocks have released it.

use core::marker::PhantomData;

use hopper_macros::instruction;

use super::gatherer::Gatherer;
use super::{EmptyBarrier, FullBarrier, Phase, Shared, TensorMapRef, TileShape};
use crate::ptx::tensor::CachePolicy;
use crate::ptx::{barrier, bulk, cluster, fence, mbarrier};
use crate::{thread, warp};

/// Who takes part in a pipeline.
pub trait Scope: Copy {
    /// Blocks.
    const BLOCKS: u32;
}

/// One block, for itself.
#[derive(Clone, Copy, Debug)]
pub struct BlockScope;

/// `BLOCKS` blocks of a cluster, which multicast to one another.
#[derive(Clone, Copy, Debug)]
pub struct ClusterScope<const BLOCKS: u32>;

impl Scope for BlockScope {
    const BLOCKS: u32 = 1;
}

impl<const BLOCKS: u32> Scope for ClusterScope<BLOCKS> {
    const BLOCKS: u32 = BLOCKS;
}

/// The barriers of a ring, in shared memory.
#[repr(C)]
pub struct PipelineBarriers<const STAGES: usize> {
    full: [FullBarrier; STAGES],
    empty: [EmptyBarrier; STAGES],
}

impl<const STAGES: usize> Shared<PipelineBarriers<STAGES>> {
    #[inline(always)]
    pub(super) fn full(self, stage: u32) -> Shared<FullBarrier> {
        // SAFETY: the field is there.
        unsafe { self.project::<[FullBarrier; STAGES]>(core::mem::offset_of!(PipelineBarriers<STAGES>, full)) }
            .at(stage)
    }

    #[inline(always)]
    pub(super) fn empty(self, stage: u32) -> Shared<EmptyBarrier> {
        // SAFETY: the field is there.
        unsafe { self.project::<[EmptyBarrier; STAGES]>(core::mem::offset_of!(PipelineBarriers<STAGES>, empty)) }
            .at(stage)
    }
}

/// Where one end of a ring stands: stage and phase, moved only by [`advance`](Self::advance).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipelineState<const STAGES: usize> {
    stage: u32,
    phase: Phase,
}

impl<const STAGES: usize> PipelineState<STAGES> {
    /// A producer starts one phase back: the ring is empty as if it had been released.
    pub const PRODUCER_START: Self = Self { stage: 0, phase: Phase::BEFORE_FIRST };
    /// A consumer waits for the first fill.
    pub const CONSUMER_START: Self = Self { stage: 0, phase: Phase::FIRST };

    /// The stage.
    #[inline(always)]
    pub const fn stage(self) -> u32 {
        self.stage
    }

    /// The phase to wait for.
    #[inline(always)]
    pub const fn phase(self) -> Phase {
        self.phase
    }

    /// On to the next stage; into the next phase after the last.
    #[inline(always)]
    pub const fn advance(&mut self) {
        self.stage += 1;
        if self.stage == STAGES as u32 {
            self.stage = 0;
            self.phase = self.phase.flipped();
        }
    }
}

/// A ring that every thread may use: its barriers are initialised and visible.
pub struct Pipeline<Stage, const STAGES: usize, S> {
    pub(super) stages: Shared<[Stage; STAGES]>,
    pub(super) barriers: Shared<PipelineBarriers<STAGES>>,
    scope: PhantomData<S>,
}

/// A ring whose barriers are not yet visible to other threads.
#[must_use = "a pipeline must be published before it is used"]
pub struct Uninit<Stage, const STAGES: usize, S>(Pipeline<Stage, STAGES, S>);

impl<Stage, const STAGES: usize, S: Scope> Pipeline<Stage, STAGES, S> {
    /// Initialises the barriers, for `consumer_warps` warps of consumers in each block. Block: thread 0 does it.
    ///
    /// # Safety
    /// Every thread of every block of the scope calls it once, with the same places, which nothing uses yet.
    #[instruction]
    pub unsafe fn init(
        stages: Shared<[Stage; STAGES]>,
        barriers: Shared<PipelineBarriers<STAGES>>,
        consumer_warps: u32,
    ) -> Uninit<Stage, STAGES, S> {
        // SAFETY: the caller's promise.
        unsafe { Self::init_gathered(stages, barriers, consumer_warps, 0) }
    }

    /// As [`init`](Self::init), where `gatherer_warps` warps fill the stages by copies of their own, beside the copy engine.
    /// Block.
    ///
    /// # Safety
    /// As [`init`](Self::init).
    #[instruction]
    pub unsafe fn init_gathered(
        stages: Shared<[Stage; STAGES]>,
        barriers: Shared<PipelineBarriers<STAGES>>,
        consumer_warps: u32,
        gatherer_warps: u32,
    ) -> Uninit<Stage, STAGES, S> {
        if thread::thread_idx_x() == 0 {
            let mut stage = 0;
            while stage < STAGES as u32 {
                // SAFETY: the barriers are this pipeline's and unused; counts are small and positive.
                unsafe {
                    mbarrier::mbarrier_init(barriers.full(stage).address(), 1 + gatherer_warps);
                    mbarrier::mbarrier_init(barriers.empty(stage).address(), consumer_warps * S::BLOCKS);
                }
                stage += 1;
            }
        }
        Uninit(Self { stages, barriers, scope: PhantomData })
    }

    /// The producer's half.
    ///
    /// # Safety
    /// One thread of the block uses it, and no other producer of this pipeline exists in the block.
    #[inline(always)]
    pub unsafe fn producer(self) -> Producer<Stage, STAGES, S> {
        Producer { pipeline: self, state: PipelineState::PRODUCER_START }
    }

    /// Both halves, for threads that fill and read in turn.
    ///
    /// # Safety
    /// As [`consumer`](Self::consumer); one thread of the block uses the producer's half.
    #[inline(always)]
    pub unsafe fn halves(self) -> (Producer<Stage, STAGES, S>, Consumer<Stage, STAGES, S>) {
        let other = Self { stages: self.stages, barriers: self.barriers, scope: PhantomData };
        // SAFETY: the caller's promise.
        unsafe { (other.producer(), self.consumer()) }
    }

    /// The half of threads that gather; `LAG` stages of their copies stay in flight.
    ///
    /// # Safety
    /// Exactly the warps counted by [`init_gathered`](Self::init_gathered) have one, each whole warp the same, and there is no
    /// other producer.
    #[inline(always)]
    pub unsafe fn gatherer<const LAG: u32>(self) -> Gatherer<Stage, STAGES, S, LAG> {
        const { assert!((LAG as usize) < STAGES, "a slot that is not published is never released") };
        let state = PipelineState::PRODUCER_START;
        Gatherer::new(self, state)
    }

    /// The consumer's half.
    ///
    /// # Safety
    /// Exactly the warps counted by [`init`](Self::init) have one, each whole warp the same.
    #[inline(always)]
    pub unsafe fn consumer(self) -> Consumer<Stage, STAGES, S> {
        Consumer { pipeline: self, state: PipelineState::CONSUMER_START }
    }
}

impl<Stage, const STAGES: usize, S: Scope> Uninit<Stage, STAGES, S> {
    /// Makes the barriers visible: to the block, or to the cluster. Block.
    ///
    /// # Safety
    /// Every thread of every block of the scope calls it together.
    #[instruction]
    pub unsafe fn publish(self) -> Pipeline<Stage, STAGES, S> {
        // SAFETY: the caller's promise; only thread 0 has written barriers, and the fences cover its writes.
        unsafe {
            fence::fence_mbarrier_init_release_cluster();
            fence::fence_proxy_async_shared_cta();
            if S::BLOCKS == 1 {
                barrier::barrier_sync_all();
            } else {
                cluster::barrier_cluster_arrive();
                cluster::barrier_cluster_wait();
            }
        }
        self.0
    }
}

/// The half that fills.
pub struct Producer<Stage, const STAGES: usize, S> {
    pipeline: Pipeline<Stage, STAGES, S>,
    state: PipelineState<STAGES>,
}

impl<Stage, const STAGES: usize, S: Scope> Producer<Stage, STAGES, S> {
    /// Waits for the next slot to be empty and announces the bytes of a whole stage. Thread.
    #[instruction]
    pub fn acquire(&mut self) -> EmptySlot<Stage, S> {
        self.acquire_part(size_of::<Stage>() as u32)
    }

    /// As [`acquire`](Self::acquire), where copies will fill only `bytes` of the stage, and nobody reads the rest. Thread.
    #[instruction]
    pub fn acquire_part(&mut self, bytes: u32) -> EmptySlot<Stage, S> {
        let stage = self.state.stage();
        let full = self.pipeline.barriers.full(stage);
        // SAFETY: the pipeline is published; the slot's loads bring exactly these bytes.
        unsafe {
            self.pipeline.barriers.empty(stage).wait(self.state.phase());
            full.expect(bytes);
        }
        self.state.advance();
        EmptySlot { stage: self.pipeline.stages.at(stage), full, scope: PhantomData }
    }

    /// Waits until the consumers have released every slot that was filled: after it, none of them (in the cluster) will
    /// arrive here again. Thread.
    #[instruction]
    pub fn drain(mut self) {
        let mut stage = 0;
        while stage < STAGES {
            // SAFETY: the pipeline is published.
            unsafe { self.pipeline.barriers.empty(self.state.stage()).wait(self.state.phase()) };
            self.state.advance();
            stage += 1;
        }
    }
}

/// A slot that may be filled.
#[must_use = "consumers wait for the bytes that this slot announced"]
pub struct EmptySlot<Stage, S> {
    pub(super) stage: Shared<Stage>,
    pub(super) full: Shared<FullBarrier>,
    pub(super) scope: PhantomData<S>,
}

impl<Stage, S: Scope> EmptySlot<Stage, S> {
    /// The stage to fill.
    #[inline(always)]
    pub fn stage(&self) -> Shared<Stage> {
        self.stage
    }

    /// Starts the copy of the box at `at` (columns, rows) of a map of rank 2. Thread.
    ///
    /// # Safety
    /// `tile` is part of this slot's stage and no other copy fills it.
    #[instruction]
    pub unsafe fn load_2d<T: TileShape>(&self, tile: Shared<T>, map: TensorMapRef<T>, at: [i32; 2]) {
        // SAFETY: the slot is empty and its barrier expects the stage, of which the tile is a part.
        unsafe { map.load_2d(tile, at, self.full) }
    }

    /// Starts the copy of `bytes` bytes from `source` to the beginning of `part`, with a preference for what L2 keeps. Thread.
    ///
    /// # Safety
    /// `part` is part of this slot's stage, no other copy fills it, and it has room for the bytes, which are readable; addresses and
    /// `bytes` are multiples of 16.
    #[instruction]
    pub unsafe fn load_bytes_hinted<T>(&self, part: Shared<T>, source: *const u8, bytes: u32, policy: CachePolicy) {
        let (to, full) = (part.address(), self.full.address());
        // SAFETY: the slot is empty and its barrier expects the bytes; the rest is the caller's promise.
        unsafe { bulk::cp_async_bulk_global_to_shared_hinted(to, source, bytes, full, policy) }
    }

    /// Starts the copy of the box at `at` of a map of rank 3. Thread.
    ///
    /// # Safety
    /// As [`load_2d`](Self::load_2d).
    #[instruction]
    pub unsafe fn load_3d<T: TileShape>(&self, tile: Shared<T>, map: TensorMapRef<T>, at: [i32; 3]) {
        // SAFETY: as above.
        unsafe { map.load_3d(tile, at, self.full) }
    }

    /// Starts the copy of the box at `at` of a map of rank 5. Thread.
    ///
    /// # Safety
    /// As [`load_2d`](Self::load_2d).
    #[instruction]
    pub unsafe fn load_5d<T: TileShape>(&self, tile: Shared<T>, map: TensorMapRef<T>, at: [i32; 5]) {
        // SAFETY: as above.
        unsafe { map.load_5d(tile, at, self.full) }
    }

    /// As [`load_2d`](Self::load_2d), with a preference for what L2 keeps.
    ///
    /// # Safety
    /// As [`load_2d`](Self::load_2d).
    #[instruction]
    pub unsafe fn load_2d_hinted<T: TileShape>(
        &self,
        tile: Shared<T>,
        map: TensorMapRef<T>,
        at: [i32; 2],
        policy: CachePolicy,
    ) {
        // SAFETY: as above.
        unsafe { map.load_2d_hinted(tile, at, self.full, policy) }
    }

    /// As [`load_3d`](Self::load_3d), with a preference for what L2 keeps.
    ///
    /// # Safety
    /// As [`load_2d`](Self::load_2d).
    #[instruction]
    pub unsafe fn load_3d_hinted<T: TileShape>(
        &self,
        tile: Shared<T>,
        map: TensorMapRef<T>,
        at: [i32; 3],
        policy: CachePolicy,
    ) {
        // SAFETY: as above.
        unsafe { map.load_3d_hinted(tile, at, self.full, policy) }
    }

    /// As [`load_3d_multicast`](Self::load_3d_multicast), with a preference for what L2 keeps.
    ///
    /// # Safety
    /// As [`load_3d_multicast`](Self::load_3d_multicast).
    #[instruction]
    pub unsafe fn load_3d_multicast_hinted<T: TileShape>(
        &self,
        tile: Shared<T>,
        map: TensorMapRef<T>,
        at: [i32; 3],
        policy: CachePolicy,
    ) {
        let everybody = ((1u32 << S::BLOCKS) - 1) as u16;
        // SAFETY: as above.
        unsafe { map.load_3d_multicast_hinted(tile, at, self.full, everybody, policy) }
    }

    /// Starts the copy of the box at `at` to the same tile in every block of the scope. Thread.
    ///
    /// # Safety
    /// As [`load_2d`](Self::load_2d), in every block.
    #[instruction]
    pub unsafe fn load_3d_multicast<T: TileShape>(&self, tile: Shared<T>, map: TensorMapRef<T>, at: [i32; 3]) {
        let everybody = ((1u32 << S::BLOCKS) - 1) as u16;
        // SAFETY: the slot is empty in every block, since consumers release it everywhere at once.
        unsafe { map.load_3d_multicast(tile, at, self.full, everybody) }
    }
}

/// The half that reads.
pub struct Consumer<Stage, const STAGES: usize, S> {
    pipeline: Pipeline<Stage, STAGES, S>,
    state: PipelineState<STAGES>,
}

impl<Stage, const STAGES: usize, S: Scope> Consumer<Stage, STAGES, S> {
    /// Waits for the next slot's data. Warp.
    #[instruction]
    pub fn wait(&mut self) -> FullSlot<Stage, S> {
        let stage = self.state.stage();
        // SAFETY: the pipeline is published.
        unsafe { self.pipeline.barriers.full(stage).wait(self.state.phase()) };
        self.state.advance();
        FullSlot {
            stage: self.pipeline.stages.at(stage),
            empty: self.pipeline.barriers.empty(stage),
            scope: PhantomData,
        }
    }
}

/// A slot whose data has arrived. It stays so until it is released, whatever becomes of the [`Consumer`]: two can be
/// held at once.
#[must_use = "a slot that is never released stops the producer"]
pub struct FullSlot<Stage, S> {
    stage: Shared<Stage>,
    empty: Shared<EmptyBarrier>,
    scope: PhantomData<S>,
}

impl<Stage, S: Scope> FullSlot<Stage, S> {
    /// The stage to read.
    #[inline(always)]
    pub fn stage(&self) -> Shared<Stage> {
        self.stage
    }

    /// Gives the slot back: this warp reads it no more. Warp: one lane arrives at each block of the scope.
    #[instruction]
    pub fn release(self) {
        let lane = warp::lane_id();
        if lane < S::BLOCKS {
            // SAFETY: the barrier is initialised and counts each consumer warp of each block once a phase. Arriving at another
            // block's barrier publishes no write: it says that this warp's reads are done, before the other block overwrites.
            unsafe {
                if S::BLOCKS == 1 {
                    mbarrier::mbarrier_arrive(self.empty.address());
                } else {
                    mbarrier::mbarrier_arrive_cluster(cluster::mapa(self.empty.address(), lane));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A producer and a consumer that move in any legal order never see one stage in two ways.
    fn never_deadlocks<const STAGES: usize>() {
        let mut producer = PipelineState::<STAGES>::PRODUCER_START;
        let mut consumer = PipelineState::<STAGES>::CONSUMER_START;
        // The number of completed phases of each barrier.
        let (mut full, mut empty) = ([0u32; STAGES], [0u32; STAGES]);
        let complete = |count: u32, phase: Phase| count % 2 != phase.parity();
        let (mut filled, mut released) = (0, 0);
        let mut choice = 1u32;
        while released < 100 * STAGES {
            choice = choice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let may_fill = complete(empty[producer.stage() as usize], producer.phase());
            let may_read = complete(full[consumer.stage() as usize], consumer.phase());
            assert!(may_fill || may_read, "deadlock after {filled} fills and {released} releases");
            if may_fill && (choice >> 16 & 1 == 0 || !may_read) {
                full[producer.stage() as usize] += 1;
                producer.advance();
                filled += 1;
            } else {
                empty[consumer.stage() as usize] += 1;
                consumer.advance();
                released += 1;
            }
            assert!(filled >= released && filled - released <= STAGES, "{filled} fills, {released} releases");
        }
    }

    #[test]
    fn rings_of_one_to_eight_stages() {
        never_deadlocks::<1>();
        never_deadlocks::<2>();
        never_deadlocks::<3>();
        never_deadlocks::<4>();
        never_deadlocks::<5>();
        never_deadlocks::<6>();
        never_deadlocks::<7>();
        never_deadlocks::<8>();
    }
}
