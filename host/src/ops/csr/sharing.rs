//! How rows are shared out among teams of threads, as far as a caller may choose.

use core::fmt;

use kernels_gpu::csr::{MAX_RUN_LOG2, UNSPLIT_LOG2};

/// How the rows of A are shared out among teams of threads.
///
/// The default is a prediction (`docs/performance/csr.md`). A measurement may choose otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowSharing {
    /// Which rows are cut in parts. The sums of a row, bit for bit, depend on this and on its own length alone.
    pub split: RowSplit,
    /// In which order rows are begun. No result depends on it.
    pub order: RowOrder,
    /// How many neighbours a team takes, where rows are taken as they come. No result depends on it.
    pub run: RowRun,
}

/// The most entries that one team adds up, a power of two. A longer row is cut in parts of so many entries, the last one
/// shorter, whose sums another launch adds in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSplit {
    log2: u32,
}

impl RowSplit {
    /// Every row stays whole, however long it is.
    pub const NEVER: Self = Self { log2: UNSPLIT_LOG2 };

    /// Parts of 2^`log2` entries; `None` unless that is 4 to 2^31.
    pub const fn after_log2(log2: u32) -> Option<Self> {
        if log2 >= 2 && log2 < UNSPLIT_LOG2 { Some(Self { log2 }) } else { None }
    }

    /// The logarithm to base 2 of the most entries of a part.
    pub(super) const fn log2(self) -> u32 {
        self.log2
    }
}

/// Parts of 256 entries.
///
/// A team takes some 75 cycles for an entry where nothing else keeps it waiting, so that a part is over in some 10 us,
/// which is what the end of a launch may have to wait for. The sums of parts are under a fiftieth of what rows of B are.
impl Default for RowSplit {
    fn default() -> Self {
        Self { log2: 8 }
    }
}

impl fmt::Display for RowSplit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NEVER => f.write_str("whole"),
            Self { log2 } => (1_u64 << log2).fmt(f),
        }
    }
}

/// In which order rows are begun; parts of long rows come first in any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowOrder {
    /// By length where three things hold, else direct:
    ///
    /// - There are at least 1024 blocks of threads. Fewer all run at once, as long as the longest row takes.
    /// - Blocks wait for their longest row: with 2 + ⌈entries / 4⌉ for the time of a row, the loads that wait for each other,
    ///   the sum over blocks of rows times the longest is at least 1.25 times the sum over rows.
    /// - What is lost by it is little: the chunk of columns of B that is used at a time has at most 32 MB, so that it stays
    ///   in the L2 cache, or else the ratio is at least 2. Neighbours often share rows of B, which they then no longer find
    ///   in the cache.
    #[default]
    Auto,
    /// Row 0, row 1 and so on.
    Direct,
    /// By classes of lengths, long rows first: over 128, over 64, over 32 and so on; within a class in their order.
    ByLength,
}

/// How many neighbouring rows one team computes, reading their entries as one sequence; only rows that are begun in their own order
/// come in runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowRun {
    /// Eight where rows have at most 6 entries in the mean, or 5 where a team has under 16 threads, and that leaves 1024 blocks of
    /// threads. Such rows are then begun in their own order unless another is asked for.
    #[default]
    Auto,
    /// Each row has a team.
    Single,
    /// So many.
    Rows(RunLength),
}

/// The number of rows of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLength {
    log2: u32,
}

impl RunLength {
    /// Runs of 2^`log2` rows; `None` unless that is 2 to 16.
    pub const fn of_log2(log2: u32) -> Option<Self> {
        if log2 >= 1 && log2 <= MAX_RUN_LOG2 { Some(Self { log2 }) } else { None }
    }

    /// The logarithm to base 2 of the number of rows.
    pub(super) const fn log2(self) -> u32 {
        self.log2
    }
}
