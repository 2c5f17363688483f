//! The producer half of a ring whose stages are filled by many threads.

use core::marker::PhantomData;

use hopper_macros::instruction;

use super::{EmptySlot, Pipeline, PipelineState, Scope, Shared};
use crate::ptx::warp::bar_warp_sync;
use crate::ptx::{async_copy, fence, mbarrier};
use crate::warp;

/// The half that fills by copies of many threads (`cp.async`), beside the copy engine.
///
/// Such copies are ordinary writes of the thread, which the tensor cores see only behind the thread's own proxy fence, once
/// they are done. So a stage is published `LAG` stages after its copies were issued: by then they have arrived without a wait.
pub struct Gatherer<Stage, const STAGES: usize, S, const LAG: u32> {
    pipeline: Pipeline<Stage, STAGES, S>,
    state: PipelineState<STAGES>,
    /// The first stage that is not published.
    behind: PipelineState<STAGES>,
    /// Stages that are not published.
    open: u32,
}

impl<Stage, const STAGES: usize, S: Scope, const LAG: u32> Gatherer<Stage, STAGES, S, LAG> {
    #[inline(always)]
    pub(super) fn new(pipeline: Pipeline<Stage, STAGES, S>, state: PipelineState<STAGES>) -> Self {
        Self { pipeline, state, behind: state, open: 0 }
    }

    /// Waits for the next slot to be empty. Thread: each of the gatherers' threads does it.
    #[instruction]
    pub fn acquire(&mut self) -> EmptySlot<Stage, S> {
        let stage = self.state.stage();
        // SAFETY: the pipeline is published.
        unsafe { self.pipeline.barriers.empty(stage).wait(self.state.phase()) };
        self.state.advance();
        EmptySlot {
            stage: self.pipeline.stages.at(stage),
            full: self.pipeline.barriers.full(stage),
            scope: PhantomData,
        }
    }

    /// Closes the slot that was acquired last: this warp's copies to it are issued. Publishes the one `LAG` before it. Warp.
    ///
    /// # Safety
    /// One thread of all gatherers has [announced](EmptySlot::announce) what the copy engine brings to the slot.
    #[instruction]
    pub unsafe fn commit(&mut self, slot: EmptySlot<Stage, S>) {
        let _ = slot;
        // SAFETY: the copies of the slot are a group of their own.
        unsafe { async_copy::cp_async_commit_group() };
        self.open += 1;
        if self.open > LAG {
            // SAFETY: at most the groups of the last `LAG` slots stay pending.
            unsafe { async_copy::cp_async_wait_group::<LAG>() };
            self.publish();
        }
    }

    /// Waits for all copies and publishes what is left. Warp.
    #[instruction]
    pub fn finish(mut self) {
        // SAFETY: none is left pending.
        unsafe { async_copy::cp_async_wait_group::<0>() };
        while self.open > 0 {
            self.publish();
        }
    }

    /// Makes this warp's copies to the first slot that is not published visible to the tensor cores, and says so.
    #[inline(always)]
    fn publish(&mut self) {
        // SAFETY: this thread's copies are done, and its fence orders them before the arrival, which is behind the fences of
        // all lanes; the barrier counts each warp once a phase.
        unsafe {
            fence::fence_proxy_async_shared_cta();
            bar_warp_sync();
            if warp::lane_id() == 0 {
                mbarrier::mbarrier_arrive(self.pipeline.barriers.full(self.behind.stage()).address());
            }
        }
        self.behind.advance();
        self.open -= 1;
    }
}

impl<Stage, S: Scope> EmptySlot<Stage, S> {
    /// Announces the bytes that the copy engine brings to a [`Gatherer`]'s slot; they may be none. Thread: one of all gatherers'.
    ///
    /// # Safety
    /// Once for each slot.
    #[instruction]
    pub unsafe fn announce(&self, bytes: u32) {
        // SAFETY: the barrier counts this arrival.
        unsafe { self.full.expect(bytes) }
    }

    /// Starts a copy of 16 bytes to the unit at `offset` of `tile`, of which the first `bytes` come from `source` and the rest
    /// are zeros. Thread.
    ///
    /// # Safety
    /// The unit is in the tile, which is part of this slot's stage, and no other copy fills it; `source` has that many readable
    /// bytes, and is aligned to 16.
    #[instruction]
    pub unsafe fn copy_unit<T>(&self, tile: Shared<T>, offset: u32, source: *const u8, bytes: u32) {
        // SAFETY: the caller's promise.
        unsafe { async_copy::cp_async_cg_16(tile.address() + offset, source, bytes) }
    }
}
