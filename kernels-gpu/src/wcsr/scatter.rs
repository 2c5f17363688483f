//! The producer of single columns of windows that are mostly zeros: it gathers rows of B, and puts V's values to their places.
//!
//! ```text
//!   entries      |v p|v p|v p|..   4 bytes for each value: its bits, and its place in a stage's panels
//!   stage, V     |0 0 0 0 0 0 ..|  cleared by all threads, who then meet
//!                |0 v 0 0 v 0 ..|  each thread puts every 128th value
//!   stage, B     rows by copies of 16 bytes, as in `gather.rs`, on their way meanwhile
//! ```
//!
//! A window of a mesh is filled to a fifth, one of a graph to a fiftieth: as panels, V is most of what comes from memory and a third
//! of what comes from L2, which bounds these kernels.
//!
//! What the next stage needs is loaded under this one: its columns and values, and where the values of the stage behind it begin.

use hopper_std::sm90::{BlockScope, EmptySlot, Gatherer, NamedBarrier, WarpGroup};
use hopper_std::thread;

use super::config::{Arguments, EIGHTS_PER_PANEL, Operands, PANEL_COLS, Panels, Stage};
use super::gather::{copy_rows, row_of_panel, stage_columns};
use crate::store::Meeting;

/// Values of a stage that a thread loads ahead; further ones it loads when it puts them.
const AHEAD: usize = 8;

/// Bytes that a thread clears at once.
const UNIT_BYTES: u32 = 16;

/// A stage's panels; none behind the last.
#[derive(Clone, Copy)]
struct Part {
    /// The first.
    at: u32,
    /// How many.
    panels: u32,
    /// The panel of B.
    panel: u32,
}

/// The stages of a worker's tiles, one after the other.
struct Walk {
    index: u32,
    last: u32,
    at: u32,
    end: u32,
    panel: u32,
}

impl Walk {
    /// # Safety
    /// The launch contract of [`Arguments`].
    #[inline(always)]
    unsafe fn new(arguments: &Arguments) -> Self {
        let worker = thread::block_idx_x();
        // SAFETY: the offsets have one more element than there are workers.
        let (index, last) = unsafe { (arguments.tile_offsets.get(worker), arguments.tile_offsets.get(worker + 1)) };
        Self { index, last, at: 0, end: 0, panel: 0 }
    }

    /// # Safety
    /// As [`new`](Self::new).
    #[inline(always)]
    unsafe fn next(&mut self, arguments: &Arguments, stage_panels: u32) -> Part {
        while self.at == self.end && self.index < self.last {
            // SAFETY: a worker's tiles are in the list.
            let tile = unsafe { arguments.tile(self.index) };
            (self.at, self.end, self.panel) = (tile.begin, tile.end, tile.panel);
            self.index += 1;
        }
        let (at, left) = (self.at, self.end - self.at);
        let panels = if left < stage_panels { left } else { stage_panels };
        self.at += panels;
        Part { at, panels, panel: self.panel }
    }
}

/// Where a stage's values are.
#[derive(Clone, Copy)]
struct Bounds {
    part: Part,
    begin: u32,
    end: u32,
}

impl Bounds {
    /// # Safety
    /// The panels are in the lists.
    #[inline(always)]
    unsafe fn of(arguments: &Arguments, part: Part) -> Self {
        if part.panels == 0 {
            return Self { part, begin: 0, end: 0 };
        }
        let offsets = arguments.entry_offsets;
        // SAFETY: there is one more offset than there are panels.
        unsafe { Self { part, begin: offsets.get(part.at), end: offsets.get(part.at + part.panels) } }
    }
}

/// What a thread has loaded of a stage.
struct Loaded<const EIGHTS: usize> {
    bounds: Bounds,
    columns: [u32; EIGHTS],
    entries: [u32; AHEAD],
}

impl<const EIGHTS: usize> Loaded<EIGHTS> {
    /// # Safety
    /// The values and panels are in the lists.
    #[inline(always)]
    unsafe fn of(arguments: &Arguments, bounds: Bounds, row: u32) -> Self {
        let Part { at, panels, .. } = bounds.part;
        // SAFETY: the caller's promise.
        let columns = unsafe { stage_columns::<EIGHTS>(arguments, at, panels, row) };
        let mut entries = [0; AHEAD];
        let mut turn = 0;
        while turn < AHEAD {
            let index = bounds.begin + thread::thread_idx_x() + turn as u32 * WarpGroup::THREADS;
            if index < bounds.end {
                // SAFETY: the caller's promise.
                entries[turn] = unsafe { arguments.entries.get(index) };
            }
            turn += 1;
        }
        Self { bounds, columns, entries }
    }
}

/// Fills the ring with the operands of this worker's tiles. Warp group.
///
/// # Safety
/// The launch contract of [`Arguments`], with values by entries; all threads of the producer warp group call it.
#[inline(always)]
pub unsafe fn scatter<
    E: 'static,
    const WINDOW_ROWS: usize,
    const TILE_N: usize,
    const LINES: usize,
    const CHUNKS: usize,
    const COPIES: usize,
    const EIGHTS: usize,
    const STAGES: usize,
    const LAG: u32,
>(
    arguments: &Arguments,
    mut ring: Gatherer<Operands<E, LINES, CHUNKS, COPIES, EIGHTS>, STAGES, BlockScope, LAG>,
) {
    let row = row_of_panel();
    let stage_panels = (EIGHTS / EIGHTS_PER_PANEL) as u32;
    // SAFETY: the launch contract.
    let mut walk = unsafe { Walk::new(arguments) };
    // SAFETY: the panels are the tiles', whose values are in the lists.
    let (mut now, mut next) = unsafe {
        let first = Bounds::of(arguments, walk.next(arguments, stage_panels));
        (Loaded::<EIGHTS>::of(arguments, first, row), Bounds::of(arguments, walk.next(arguments, stage_panels)))
    };
    while now.bounds.part.panels > 0 {
        let Part { panels, panel: panel_of_b, .. } = now.bounds.part;
        let slot = ring.acquire();
        if thread::thread_idx_x() == 0 {
            // SAFETY: one thread is here; the copy engine brings nothing.
            unsafe { slot.announce(0) };
        }
        // SAFETY: each thread copies units of its own.
        unsafe {
            copy_rows::<E, TILE_N, LINES, CHUNKS, COPIES, EIGHTS>(arguments, &slot, panel_of_b, now.columns, panels);
        }
        // SAFETY: all threads of the warp group are here; the values are the stage's.
        unsafe { put_values::<E, WINDOW_ROWS, LINES, CHUNKS, COPIES, EIGHTS>(arguments, &slot, &now) };
        // SAFETY: the panels are the tiles', whose values are in the lists; thread 0 has announced.
        unsafe {
            now = Loaded::of(arguments, next, row);
            next = Bounds::of(arguments, walk.next(arguments, stage_panels));
            ring.commit(slot);
        }
    }
    ring.finish();
}

/// Clears the stage's panels of V and puts the values to their places. Warp group.
///
/// # Safety
/// All threads of the producer warp group call it together, with the values of this stage.
#[inline(always)]
unsafe fn put_values<
    E: 'static,
    const WINDOW_ROWS: usize,
    const LINES: usize,
    const CHUNKS: usize,
    const COPIES: usize,
    const EIGHTS: usize,
>(
    arguments: &Arguments,
    slot: &EmptySlot<Operands<E, LINES, CHUNKS, COPIES, EIGHTS>, BlockScope>,
    loaded: &Loaded<EIGHTS>,
) {
    const {
        let panels = EIGHTS / EIGHTS_PER_PANEL;
        assert!(COPIES * LINES == panels * WINDOW_ROWS, "the copies are the stage's panels");
        assert!(panels * WINDOW_ROWS * PANEL_COLS < 1 << 16, "the lower half of a place tells it");
    }
    let (thread, v) = (thread::thread_idx_x(), Stage::<Panels<E, LINES>, _, COPIES, EIGHTS>::v(slot.stage()));
    let mut offset = thread * UNIT_BYTES;
    while offset < (COPIES * LINES * PANEL_COLS * 2) as u32 {
        // SAFETY: each thread clears units of its own, and all of them end with the panels.
        unsafe { slot.clear_unit(v, offset) };
        offset += WarpGroup::THREADS * UNIT_BYTES;
    }
    // SAFETY: the producer's four warps are here.
    unsafe { Meeting::Producer.sync() };
    let first = loaded.bounds.part.at.wrapping_mul((WINDOW_ROWS * PANEL_COLS) as u32);
    // SAFETY: a value's place is in the stage's panels, and it is its own.
    let put = |entry: u32| unsafe {
        let place = (entry >> 16).wrapping_sub(first) & 0xffff;
        slot.store_half(v, 2 * place, entry as u16);
    };
    let mut index = loaded.bounds.begin + thread;
    let mut turn = 0;
    while turn < AHEAD {
        if index < loaded.bounds.end {
            put(loaded.entries[turn]);
        }
        index += WarpGroup::THREADS;
        turn += 1;
    }
    while index < loaded.bounds.end {
        // SAFETY: the values are in the list.
        put(unsafe { arguments.entries.get(index) });
        index += WarpGroup::THREADS;
    }
}
