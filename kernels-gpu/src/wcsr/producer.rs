//! The producer of groups of eight columns: one thread that keeps the ring full, across tiles.

use hopper_std::sm90::{BlockScope, EmptySlot, Producer, TensorMapRef, TileShape};
use hopper_std::thread;

use super::config::{Arguments, EIGHTS_PER_PANEL, PANEL_COLS, Stage};

/// The tensor maps.
pub struct Maps<V, B> {
    /// Values of A.
    pub v: TensorMapRef<V>,
    /// B.
    pub b: TensorMapRef<B>,
}

/// Fills the ring with the operands of this worker's tiles. Thread.
///
/// # Safety
/// The launch contract of [`Arguments`]; one thread of the block calls it.
#[inline(always)]
pub unsafe fn produce<
    V: TileShape,
    B: TileShape,
    const WINDOW_ROWS: usize,
    const TILE_N: usize,
    const COPIES: usize,
    const EIGHTS: usize,
    const STAGES: usize,
>(
    arguments: &Arguments,
    maps: &Maps<V, B>,
    mut ring: Producer<Stage<V, B, COPIES, EIGHTS>, STAGES, BlockScope>,
) {
    maps.v.prefetch();
    maps.b.prefetch();
    let stage_panels = (EIGHTS / EIGHTS_PER_PANEL) as u32;
    let first_chunk = |panel: u32| (panel as usize * TILE_N / B::COLS) as i32;

    let worker = thread::block_idx_x();
    // SAFETY: the offsets have one more element than there are workers.
    let (first, last) = unsafe { (arguments.tile_offsets.get(worker), arguments.tile_offsets.get(worker + 1)) };
    let mut index = first;
    while index < last {
        // SAFETY: a worker's tiles are in the list.
        let tile = unsafe { arguments.tile(index) };
        let mut at = tile.begin;
        while at < tile.end {
            let panels = tile.panels_of_stage(at, stage_panels);
            // SAFETY: the panels are the tile's.
            let groups = unsafe { stage_groups::<EIGHTS>(arguments, at, panels) };
            let b_bytes = panels * (EIGHTS_PER_PANEL * B::BYTES) as u32;
            let slot = ring.acquire_part((COPIES * V::BYTES) as u32 + b_bytes);
            // SAFETY: V and the first `panels` panels' groups of B make up the bytes announced, each filled once.
            unsafe {
                load_v::<V, B, WINDOW_ROWS, COPIES, EIGHTS>(&slot, maps.v, at, arguments);
                let mut group = 0;
                while group < EIGHTS {
                    if (group as u32) < panels * EIGHTS_PER_PANEL as u32 {
                        let row = (groups[group] as usize * B::ROWS) as i32;
                        let to = Stage::b(slot.stage()).at(group as u32);
                        slot.load_3d(to, maps.b, [0, row, first_chunk(tile.panel)]);
                    }
                    group += 1;
                }
            }
            at += panels;
        }
        index += 1;
    }
}

/// The groups of up to `EIGHTS / 2` panels from `first` on, of which `panels` are there.
///
/// # Safety
/// The list has these panels.
#[inline(always)]
unsafe fn stage_groups<const EIGHTS: usize>(arguments: &Arguments, first: u32, panels: u32) -> [u32; EIGHTS] {
    let mut groups = [0; EIGHTS];
    let mut panel = 0;
    while panel < EIGHTS / EIGHTS_PER_PANEL {
        // Past the end, the last one again.
        let index = if (panel as u32) < panels { panel as u32 } else { panels - 1 };
        // SAFETY: the caller's promise.
        let [left, right] = unsafe { arguments.groups.cast::<[u32; 2]>().get(first + index) };
        groups[panel * EIGHTS_PER_PANEL] = left;
        groups[panel * EIGHTS_PER_PANEL + 1] = right;
        panel += 1;
    }
    groups
}

/// Starts the copies of a stage's panels of V, from panel `first` on.
///
/// # Safety
/// As [`EmptySlot::load_2d`], of all of the stage's V.
#[inline(always)]
pub(super) unsafe fn load_v<V: TileShape, B, const WINDOW_ROWS: usize, const COPIES: usize, const EIGHTS: usize>(
    slot: &EmptySlot<Stage<V, B, COPIES, EIGHTS>, BlockScope>,
    map: TensorMapRef<V>,
    first: u32,
    arguments: &Arguments,
) {
    const { assert!(V::COLS == PANEL_COLS && V::ROWS.is_multiple_of(WINDOW_ROWS), "whole panels") };
    let mut copy = 0;
    while copy < COPIES as u32 {
        let line = (first as usize * WINDOW_ROWS) as i32 + (copy as usize * V::ROWS) as i32;
        // SAFETY: the caller's promise.
        unsafe { slot.load_2d_hinted(Stage::v(slot.stage()).at(copy), map, [0, line], arguments.policy_v) };
        copy += 1;
    }
}
