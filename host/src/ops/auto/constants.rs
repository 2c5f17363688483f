//! What the models know of a device, each number with its unit and where it comes from.
//!
//! `docs/performance/chooser.md` derives them. A new record changes a line here and nothing else.

use core::fmt;

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Derived from this record, of the kernel as it is.
    Measured(&'static str),
    /// Derived from this record, of an earlier version of the kernel.
    Superseded(&'static str),
    /// From counted instructions, latencies or a plan; no record supports it.
    Predicted,
}

impl Origin {
    /// Whether a record of the kernel as it is supports the number.
    pub const fn is_measured(self) -> bool {
        matches!(self, Self::Measured(_))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measured(record) => write!(f, "measured, {record}"),
            Self::Superseded(record) => write!(f, "measured with an earlier kernel, {record}"),
            Self::Predicted => f.write_str("predicted, not measured"),
        }
    }
}

/// A number and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Constant {
    pub value: f64,
    pub origin: Origin,
}

const fn measured(value: f64, record: &'static str) -> Constant {
    Constant { value, origin: Origin::Measured(record) }
}

const fn superseded(value: f64, record: &'static str) -> Constant {
    Constant { value, origin: Origin::Superseded(record) }
}

const fn predicted(value: f64) -> Constant {
    Constant { value, origin: Origin::Predicted }
}

const BLOCKS: &str = "bench/records/h200/2026-11-30-spmm-blocks.csv";
const REAL: &str = "bench/records/h200/2026-11-30-real-matrices.csv";
/// With `2026-11-30-lookalikes-n128.csv`; what is derived from both is of every other matrix in them.
const LOOKALIKES: &str = "bench/records/h200/2026-11-30-lookalikes.csv";

/// Memory to multiprocessors and back, reading and writing both counted, bytes a second: `copy_gbps`.
pub(super) const MEMORY: Constant = measured(4.197e12, BLOCKS);
/// A launch with nothing to wait for, and the events around it, seconds: the fastest products in CSR.
pub(super) const LAUNCH: Constant = measured(7.6e-6, REAL);
/// Memory that a launch takes from its stream and gives back, and the launch that reads it, seconds: sums of parts, copies of B. It is the
/// allocation that costs: the stream's pool keeps nothing from one launch to the next.
pub(super) const OWN_MEMORY: Constant = measured(9.1e-5, LOOKALIKES);
/// A copy of B with aligned lines, bytes a second, reading and writing both counted; larger allocations included.
pub(super) const COPY: Constant = measured(5.3e11, LOOKALIKES);

/// Products of tiles of at least 128 rows or 512 columns, operations a second: what `BLOCKS` has once C's time is taken off.
pub(super) const TENSOR: Constant = measured(6.8e14, BLOCKS);
/// Boxes of blocks and of their rows of B from L2, bytes a second, where a tile has up to 128, 256 and 512 columns: ca-CondMat
/// (886 MB in 181 us), luxembourg and ca-GrQc; 8192^3 at 50 % (5.37 GB in 772 us), at least; 64x64 blocks at 10 % (1.93 GB in 205 us).
pub(super) const BLOCKS_FROM_L2: [(usize, Constant); 3] =
    [(128, measured(4.9e12, REAL)), (256, measured(7.0e12, BLOCKS)), (512, measured(9.4e12, BLOCKS))];
/// A block of up to 64 columns that one worker waits for, seconds: products bound by their longest block row.
pub(super) const BLOCK_TURN: Constant = measured(1.0e-7, REAL);

/// An entry's row of B, 16-bit elements, seconds of all multiprocessors together, at 32, 128 and 256 columns.
pub(super) const ENTRY_16: [(usize, Constant); 3] =
    [(32, measured(5.8e-12, LOOKALIKES)), (128, measured(2.25e-11, LOOKALIKES)), (256, measured(2.56e-11, LOOKALIKES))];
/// Rows of B for entries, f32, from L1 and L2, bytes a second: bcsstk33, 303 MB in 23 us.
pub(super) const ENTRIES_32: Constant = superseded(1.32e13, REAL);
/// A row that takes a whole warp, its part of C included, beside its entries: seconds of all multiprocessors together.
pub(super) const ROW: Constant = measured(4.8e-10, LOOKALIKES);
/// An entry of a row that one team works on alone, seconds: cora, citeseer, EVA, ca-GrQc, 67 to 73 ns.
pub(super) const ENTRY_TURN: Constant = superseded(7.0e-8, REAL);
/// What one multiprocessor takes for windows, all its blocks together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WindowTurns {
    /// Windows of up to so many rows.
    pub rows: usize,
    /// Tiles of so many columns.
    pub tile_n: usize,
    /// A tile of C beside its panels, seconds: its entry of the list, its store.
    pub tile: Constant,
    /// A panel of 16 columns, seconds, with single columns: its rows of B and their products.
    pub panel_of_single: Constant,
    /// The same with groups of eight.
    pub panel_of_eight: Constant,
}

const fn turns(rows: usize, tile_n: usize, tile: f64, [single, eight]: [f64; 2]) -> WindowTurns {
    let [tile, panel_of_single, panel_of_eight] =
        [measured(tile, LOOKALIKES), measured(single, LOOKALIKES), measured(eight, LOOKALIKES)];
    WindowTurns { rows, tile_n, tile, panel_of_single, panel_of_eight }
}

/// By height, then by width.
pub(super) const WINDOW_TURNS: [WindowTurns; 7] = [
    turns(16, 64, 1.21e-7, [7.56e-8, 2.98e-8]),
    turns(16, 128, 2.07e-7, [1.18e-7, 8.19e-8]),
    turns(64, 64, 8.15e-7, [1.22e-7, 7.63e-8]),
    turns(64, 128, 1.20e-6, [1.40e-7, 1.41e-7]),
    turns(128, 64, 1.03e-6, [3.20e-7, 1.62e-7]),
    turns(128, 128, 2.13e-6, [2.60e-7, 2.29e-7]),
    turns(128, 256, 3.12e-6, [3.48e-7, 3.39e-7]),
];

/// The turns of windows of `rows` rows and tiles of `tile_n` columns, or of the largest.
pub(super) fn window_turns(rows: usize, tile_n: usize) -> WindowTurns {
    let found = WINDOW_TURNS.into_iter().find(|turns| rows <= turns.rows && tile_n <= turns.tile_n);
    found.unwrap_or(WINDOW_TURNS[WINDOW_TURNS.len() - 1])
}

/// Host memory to device memory, bytes a second: `prepare_ms` over stored bytes.
pub(super) const UPLOAD: Constant = measured(6.5e9, BLOCKS);
/// Preparation that does not depend on the size, seconds: the same, at few bytes.
pub(super) const PREPARE: Constant = measured(9.0e-4, BLOCKS);
/// One thread's time to plan a row of CSR, seconds.
pub(super) const PLAN_ROW: Constant = predicted(3.0e-9);
/// One thread's time to find an entry's place in blocks or windows and to put it there, seconds.
pub(super) const PLACE_ENTRY: Constant = predicted(4.0e-8);
/// Zeros written for stored elements, bytes a second, all threads together.
pub(super) const CLEAR: Constant = predicted(8.0e9);

/// The constant of the narrowest width that holds a tile of `tile_n` columns, or of the widest.
pub(super) fn by_width<const WIDTHS: usize>(table: [(usize, Constant); WIDTHS], tile_n: usize) -> Constant {
    const { assert!(WIDTHS > 0, "a table has a width") };
    let place = table.iter().position(|&(cols, _)| tile_n <= cols);
    table[place.unwrap_or(WIDTHS - 1)].1
}
