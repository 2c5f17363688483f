//! What the models know of a device, each number with its unit and where it comes from.
//!
//! `docs/performance/chooser.md` derives them. A new record changes a line here and nothing else.

use core::fmt;

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Derived from this record, of the kernel as it is.
    Measured(&'static str),
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

const fn predicted(value: f64) -> Constant {
    Constant { value, origin: Origin::Predicted }
}

const BLOCKS: &str = "bench/records/h200/2026-11-30-spmm-blocks.csv";
const REAL: &str = "bench/records/h200/2026-11-30-real-matrices.csv";
const SMALL: &str = "bench/records/h200/2026-11-30-small-matrices.csv";
/// What is derived from look-alikes is of every other matrix in the record, with `SMALL`; windows and CSR of 16 bits of the record as it was
/// before sums of split windows were faster, which this one supports (`docs/performance/chooser.md` has both).
const LOOKALIKES: &str = "bench/records/h200/2026-11-30-lookalikes.csv";
const LOOKALIKES_F32: &str = "bench/records/h200/2026-11-30-lookalikes-f32.csv";
const LOOKALIKE_BLOCKS: &str = "bench/records/h200/2026-11-30-lookalikes-blocks.csv";
const LOOKALIKE_BLOCKS_256: &str = "bench/records/h200/2026-12-01-lookalikes-blocks.csv";

/// Memory to multiprocessors and back, reading and writing both counted, bytes a second: `copy_gbps`.
pub(super) const MEMORY: Constant = measured(4.197e12, BLOCKS);
/// A launch behind others, seconds: what the fastest products, of 4.6 us cold and warm, leave beside their tiles.
pub(super) const LAUNCH: Constant = measured(4.0e-6, SMALL);
/// A copy of B with aligned lines, bytes a second, reading and writing both counted: of up to so many lines, and of more.
pub(super) const COPY: [(usize, Constant); 2] =
    [(65_535, measured(3.41e11, LOOKALIKES)), (usize::MAX, measured(1.21e12, LOOKALIKES))];

/// Products of tiles of at least 128 rows or 512 columns, operations a second: what `BLOCKS` has once C's time is taken off.
pub(super) const TENSOR: Constant = measured(6.8e14, BLOCKS);
/// Boxes of blocks and of their rows of B from L2, bytes a second, where a tile has up to 128, 256 and 512 columns: ca-CondMat
/// (886 MB in 181 us), luxembourg and ca-GrQc; 8192^3 at 50 % (5.37 GB in 772 us), at least; 64x64 blocks at 10 % (1.93 GB in 205 us).
pub(super) const BLOCKS_FROM_L2: [(usize, Constant); 3] =
    [(128, measured(4.9e12, REAL)), (256, measured(7.0e12, BLOCKS)), (512, measured(9.4e12, BLOCKS))];
/// The part of memory's time that fetching from L2 does not hide with tiles of [`LONE_TILE`] columns that are no cluster's: finite
/// elements at N = 256. The rate for such tiles is a cluster's, and the other rates have it in them.
pub(super) const BLOCKS_WAIT: Constant = measured(0.5, LOOKALIKE_BLOCKS_256);
/// See [`BLOCKS_WAIT`].
pub(super) const LONE_TILE: usize = 256;
/// A block of up to 64 columns that one worker waits for, seconds: mip1, 4156 blocks of 16 columns in one block row.
pub(super) const BLOCK_TURN: Constant = measured(1.27e-7, LOOKALIKE_BLOCKS);
/// How many times its share of that rate a worker has alone, at the end of a launch: mip1, 1039 stages of 24 KB in 529 us.
pub(super) const BLOCKS_ALONE: Constant = measured(1.3, LOOKALIKE_BLOCKS);

/// What all multiprocessors together take for rows and entries in CSR.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EntryTurns {
    /// Columns of B.
    pub num_cols: usize,
    /// A row that a team takes alone, its part of C included, beside its entries, seconds.
    pub row: Constant,
    /// A row of a run.
    pub row_of_run: Constant,
    /// An entry and its row of B, seconds.
    pub entry: Constant,
}

impl EntryTurns {
    /// Each constant changed alike.
    pub(super) fn map(self, change: impl Fn(Constant) -> Constant) -> Self {
        self.zip(self, |constant, _| change(constant))
    }

    /// The constants of two widths taken together; the number of columns is this one's.
    pub(super) fn zip(self, other: Self, of_both: impl Fn(Constant, Constant) -> Constant) -> Self {
        Self {
            num_cols: self.num_cols,
            row: of_both(self.row, other.row),
            row_of_run: of_both(self.row_of_run, other.row_of_run),
            entry: of_both(self.entry, other.entry),
        }
    }
}

const fn entries(num_cols: usize, record: &'static str, [row, row_of_run, entry]: [f64; 3]) -> EntryTurns {
    let [row, row_of_run, entry] = [measured(row, record), measured(row_of_run, record), measured(entry, record)];
    EntryTurns { num_cols, row, row_of_run, entry }
}

/// Of 16-bit elements, by the number of columns.
pub(super) const ENTRY_TURNS_16: [EntryTurns; 3] = [
    entries(32, LOOKALIKES, [7.03e-11, 5.58e-11, 3.95e-12]),
    entries(128, LOOKALIKES, [1.26e-10, 1.42e-10, 1.63e-11]),
    entries(256, LOOKALIKES, [3.80e-10, 2.29e-10, 2.44e-11]),
];
/// Of f32.
pub(super) const ENTRY_TURNS_32: [EntryTurns; 2] = [
    entries(32, LOOKALIKES_F32, [6.88e-11, 5.37e-11, 1.01e-11]),
    entries(128, LOOKALIKES_F32, [3.53e-10, 2.03e-10, 1.69e-11]),
];
/// The part of memory's time that nothing hides in CSR.
pub(super) const ENTRIES_WAIT: Constant = measured(0.652, LOOKALIKES);
/// An entry of the longest row, up to where rows are cut, seconds: at the end its team works alone.
pub(super) const ENTRY_TURN: Constant = measured(8.33e-8, LOOKALIKES);
/// Rows that are cut, with the launch that adds up their parts, seconds.
pub(super) const CUT_ROWS: Constant = measured(1.25e-5, LOOKALIKES);

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
    turns(16, 64, 5.97e-8, [7.08e-8, 4.98e-8]),
    turns(16, 128, 1.59e-7, [1.13e-7, 8.01e-8]),
    turns(64, 64, 3.80e-7, [1.02e-7, 1.09e-7]),
    turns(64, 128, 1.01e-6, [1.14e-7, 1.16e-7]),
    turns(128, 64, 1.38e-6, [2.24e-7, 1.76e-7]),
    turns(128, 128, 2.12e-6, [2.03e-7, 1.81e-7]),
    turns(128, 256, 3.49e-6, [2.41e-7, 2.43e-7]),
];

/// The turns of windows of `rows` rows and tiles of `tile_n` columns, or of the largest.
pub(super) fn window_turns(rows: usize, tile_n: usize) -> WindowTurns {
    let found = WINDOW_TURNS.into_iter().find(|turns| rows <= turns.rows && tile_n <= turns.tile_n);
    found.unwrap_or(WINDOW_TURNS[WINDOW_TURNS.len() - 1])
}

/// The part of memory's time that no turn of a window hides.
pub(super) const WINDOWS_WAIT: Constant = measured(0.148, LOOKALIKES);
/// An element of a split window's tiles, seconds for each root of the parts of the widest window: `SMALL`, gupta3 and mip1.
pub(super) const SUM_PARTS: Constant = measured(1.0e-10, LOOKALIKES);

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
