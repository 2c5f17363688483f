//! The producer of single columns: a warp group that gathers rows of B and keeps the ring full, across tiles.

use hopper_std::sm90::{BlockScope, EmptySlot, Gatherer, Swizzle128, Tile, TileShape};
use hopper_std::thread;

use super::config::{Arguments, CHUNK, EIGHT, EIGHTS_PER_PANEL, Operands, PANEL_COLS, Panels, Rows, Stage};
use super::producer::{Maps, load_v};

/// Elements of a unit: 16 bytes.
const UNIT: u32 = 8;

/// Units of a row of a chunk: the threads that copy it.
const UNITS: u32 = CHUNK as u32 / UNIT;

/// Fills the ring with the operands of this worker's tiles. Warp group: each thread has one unit of a chunk, of the row with its
/// number in every panel.
///
/// # Safety
/// The launch contract of [`Arguments`]; all threads of the producer warp group call it.
#[inline(always)]
pub unsafe fn gather<
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
    maps: &Maps<Panels<E, LINES>, Rows<E, CHUNKS>>,
    mut ring: Gatherer<Operands<E, LINES, CHUNKS, COPIES, EIGHTS>, STAGES, BlockScope, LAG>,
) {
    let thread = thread::thread_idx_x();
    let row = row_of_panel();
    let stage_panels = (EIGHTS / EIGHTS_PER_PANEL) as u32;
    if thread == 0 {
        maps.v.prefetch();
    }
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
            // SAFETY: the panels are the tile's; their columns are loaded before the wait.
            let columns = unsafe { stage_columns::<EIGHTS>(arguments, at, panels, row) };
            let slot = ring.acquire();
            if thread == 0 {
                // SAFETY: V makes up the bytes announced; one thread is here.
                unsafe {
                    slot.announce((COPIES * Panels::<E, LINES>::BYTES) as u32);
                    load_v::<_, _, WINDOW_ROWS, COPIES, EIGHTS>(&slot, maps.v, at, arguments);
                }
            }
            // SAFETY: each thread copies units of its own.
            unsafe {
                copy_rows::<E, TILE_N, LINES, CHUNKS, COPIES, EIGHTS>(arguments, &slot, tile.panel, columns, panels);
            }
            // SAFETY: thread 0 has announced.
            unsafe { ring.commit(slot) };
            at += panels;
        }
        index += 1;
    }
    ring.finish();
}

/// The row of each panel that this thread copies a part of.
#[inline(always)]
pub(super) fn row_of_panel() -> u32 {
    thread::thread_idx_x() / UNITS
}

/// Column `row` of each of up to `EIGHTS / 2` panels from `first` on, of which `panels` are there.
///
/// # Safety
/// The list has these panels.
#[inline(always)]
unsafe fn stage_columns<const EIGHTS: usize>(
    arguments: &Arguments,
    first: u32,
    panels: u32,
    row: u32,
) -> [u32; EIGHTS] {
    let mut columns = [0; EIGHTS];
    let mut panel = 0;
    while panel < EIGHTS / EIGHTS_PER_PANEL {
        if (panel as u32) < panels {
            // SAFETY: the caller's promise.
            columns[panel] = unsafe { arguments.groups.get((first + panel as u32) * PANEL_COLS as u32 + row) };
        }
        panel += 1;
    }
    columns
}

/// Starts the copies of this thread's units of a stage's rows of B, of the first `panels` panels, whose columns these are.
///
/// # Safety
/// As [`EmptySlot::copy_unit`].
#[inline(always)]
unsafe fn copy_rows<
    E: 'static,
    const TILE_N: usize,
    const LINES: usize,
    const CHUNKS: usize,
    const COPIES: usize,
    const EIGHTS: usize,
>(
    arguments: &Arguments,
    slot: &EmptySlot<Operands<E, LINES, CHUNKS, COPIES, EIGHTS>, BlockScope>,
    panel_of_b: u32,
    columns: [u32; EIGHTS],
    panels: u32,
) {
    let (row, unit) = (row_of_panel(), thread::thread_idx_x() % UNITS);
    let mut panel = 0;
    while panel < EIGHTS / EIGHTS_PER_PANEL {
        if (panel as u32) < panels {
            let place = (panel as u32 * PANEL_COLS as u32 + row, unit);
            // SAFETY: the caller's promise.
            unsafe {
                copy_row::<E, TILE_N, LINES, CHUNKS, COPIES, EIGHTS>(
                    arguments,
                    slot,
                    panel_of_b,
                    columns[panel],
                    place,
                );
            }
        }
        panel += 1;
    }
}

/// Starts the copies of this thread's units, one for each chunk of panel `panel` of B, of row `column` to row and unit of the stage. A
/// column that pads is zeros; so is what lies beyond N.
///
/// # Safety
/// As [`EmptySlot::copy_unit`].
#[inline(always)]
unsafe fn copy_row<
    E: 'static,
    const TILE_N: usize,
    const LINES: usize,
    const CHUNKS: usize,
    const COPIES: usize,
    const EIGHTS: usize,
>(
    arguments: &Arguments,
    slot: &EmptySlot<Operands<E, LINES, CHUNKS, COPIES, EIGHTS>, BlockScope>,
    panel: u32,
    column: u32,
    (row, unit): (u32, u32),
) {
    let line = arguments.b.wrapping_add((u64::from(column) * arguments.b_leading_dimension) as usize * 2);
    let offset = Tile::<E, EIGHT, CHUNK, Swizzle128>::unit_offset(row % EIGHT as u32, unit);
    let eight = Stage::b(slot.stage()).at(row / EIGHT as u32);
    let mut chunk = 0;
    while chunk < CHUNKS as u32 {
        let first = panel * TILE_N as u32 + chunk * CHUNK as u32 + unit * UNIT;
        let there = if column >= arguments.num_inner || first >= arguments.output.num_cols {
            0
        } else if arguments.output.num_cols - first < UNIT {
            arguments.output.num_cols - first
        } else {
            UNIT
        };
        // SAFETY: as many elements of the row are there; the rest is the caller's promise.
        unsafe { slot.copy_unit(eight.at(chunk), offset, line.wrapping_add(first as usize * 2), there * 2) };
        chunk += 1;
    }
}
