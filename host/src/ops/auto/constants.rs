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

/// Memory to multiprocessors and back, reading and writing both counted, bytes a second: `copy_gbps`.
pub(super) const MEMORY: Constant = measured(4.197e12, BLOCKS);
/// A launch with nothing to wait for, and the events around it, seconds: the fastest products in CSR.
pub(super) const LAUNCH: Constant = measured(7.6e-6, REAL);
/// A launch behind another on the same stream, seconds.
pub(super) const NEXT_LAUNCH: Constant = predicted(3.0e-6);

/// Products of tiles of at least 128 rows or 512 columns, operations a second: what `BLOCKS` has once C's time is taken off.
pub(super) const TENSOR: Constant = measured(6.8e14, BLOCKS);
/// Boxes of blocks and of their rows of B from L2, bytes a second, where a tile has up to 128, 256 and 512 columns: ca-CondMat
/// (886 MB in 181 us), luxembourg and ca-GrQc; 8192^3 at 50 % (5.37 GB in 772 us), at least; 64x64 blocks at 10 % (1.93 GB in 205 us).
pub(super) const BLOCKS_FROM_L2: [(usize, Constant); 3] =
    [(128, measured(4.9e12, REAL)), (256, measured(7.0e12, BLOCKS)), (512, measured(9.4e12, BLOCKS))];
/// A block of up to 64 columns that one worker waits for, seconds: products bound by their longest block row.
pub(super) const BLOCK_TURN: Constant = measured(1.0e-7, REAL);

/// Rows of B for entries, 16-bit elements, from L1 and L2, bytes a second: bcsstk33, 152 MB in 18 us.
pub(super) const ENTRIES_16: Constant = superseded(8.2e12, REAL);
/// The same for f32: bcsstk33, 303 MB in 23 us.
pub(super) const ENTRIES_32: Constant = superseded(1.32e13, REAL);
/// Rows of B that L1 does not hold, from L2, bytes a second.
pub(super) const SCATTERED_FROM_L2: Constant = predicted(5.5e12);
/// An entry of a row that one team works on alone, seconds: cora, citeseer, EVA, ca-GrQc, 67 to 73 ns.
pub(super) const ENTRY_TURN: Constant = superseded(7.0e-8, REAL);
/// Warp instructions for a row around its entries, counted in the machine code of `csr_f32`.
pub(super) const ROW_INSTRUCTIONS: Constant = predicted(190.0);
/// Warp instructions for four entries, 16-bit elements, counted.
pub(super) const STEP_INSTRUCTIONS_16: Constant = predicted(92.0);
/// The same for f32.
pub(super) const STEP_INSTRUCTIONS_32: Constant = predicted(39.0);

/// Warp instructions that a multiprocessor begins, a second: four a cycle at 1.75 GHz.
pub(super) const ISSUE: f64 = 4.0 * 1.75e9;

/// A tensor copy on one multiprocessor's copy engine, however small, seconds: 65 cycles at 1.75 GHz.
pub(super) const COPY_TURN: Constant = predicted(3.7e-8);
/// Windows and their rows of B from L2, bytes a second, where a tile has up to 128 and 256 columns.
pub(super) const WINDOWS_FROM_L2: [(usize, Constant); 2] = [(128, predicted(5.3e12)), (256, predicted(7.7e12))];
/// A row of B gathered by the threads of one multiprocessor, seconds, where a tile has up to 64, 128 and 256 columns.
pub(super) const GATHERED_ROW: [(usize, Constant); 3] =
    [(64, predicted(1.46e-8)), (128, predicted(2.61e-8)), (256, predicted(2.81e-8))];
/// Products of windows, operations a second: those of blocks less a tenth, since windows have no clusters and eight times the boxes.
pub(super) const WINDOW_TENSOR: Constant = predicted(6.0e14);

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
