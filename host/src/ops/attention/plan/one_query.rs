//! Sequences of one query: the query heads that share a head of keys are the rows of a tile, and many keys are split.
//!
//! ```text
//! K, V of a head     |-- part 0 --|-- part 1 --|-- part 2 -|      each a tile, for any worker
//! rows (heads)            O_0, L_0     O_1, L_1     O_2, L_2      -> workspace -> O, L   (`Combination`)
//! ```
//!
//! Where the parts begin depends on what the sequence's query sees and on nothing else, and they are combined in one order.

use core::ops::Range;

use kernels_gpu::attention::{COMBINED, Combined, Configuration, TileWork};

use super::pass::PassKind;
use super::tiles::{coordinates, key_tiles};
use crate::ops::attention::schedule::Unit;
use crate::ops::attention::{Attention, Sequences};

/// Keys of a part.
const KEYS_PER_PART: usize = 1024;

/// Where rows go whose keys are not split. By way of a workspace they need no pass of their own beside rows in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// To O, where the log-sum-exps of a tile lie one behind the other; else as [`Combined`](Self::Combined).
    Stored,
    /// To the workspace, as one part.
    Combined,
}

/// How sequences of one query are done: the default, but for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneQuery {
    /// Keys of a part, in whole tiles of the kernel's; at least one tile.
    pub keys_per_part: usize,
    /// Where rows go whose keys are not split.
    pub whole: Whole,
}

impl Default for OneQuery {
    fn default() -> Self {
        Self { keys_per_part: KEYS_PER_PART, whole: Whole::Stored }
    }
}

/// A row of O that is made of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ops::attention) struct CombinedRow {
    /// Part 0 among the partial rows.
    pub(in crate::ops::attention) first: u32,
    /// From a part to the next.
    pub(in crate::ops::attention) step: u32,
    /// Parts.
    pub(in crate::ops::attention) count: u32,
    /// Its place among the log-sum-exps.
    pub(in crate::ops::attention) lse_index: u32,
    /// Its place in O.
    pub(in crate::ops::attention) batch: u32,
    pub(in crate::ops::attention) token: u32,
    pub(in crate::ops::attention) head: u32,
}

/// The rows that are made of parts, and the workspace that these lie in.
#[derive(Clone, Debug)]
#[cfg_attr(not(any(test, feature = "gpu", feature = "sim")), allow(dead_code, reason = "only a launch reads it"))]
pub(in crate::ops::attention) struct Combination {
    pub(in crate::ops::attention) kernel: &'static Combined,
    pub(in crate::ops::attention) rows: Vec<CombinedRow>,
    /// Rows of the workspace.
    pub(in crate::ops::attention) num_partial_rows: usize,
    /// Columns of the workspace.
    pub(in crate::ops::attention) width: usize,
}

impl Combination {
    /// Blocks of the launch.
    #[cfg_attr(not(any(feature = "gpu", feature = "sim")), allow(dead_code, reason = "only a launch reads it"))]
    pub(in crate::ops::attention) fn grid(&self) -> u32 {
        (self.rows.len() as u32).div_ceil(self.kernel.rows)
    }
}

/// The tiles of sequences of one query, by one kernel.
pub(super) struct HeadTiles<'a> {
    problem: &'a Attention,
    configuration: &'static Configuration,
    combined: &'static Combined,
    options: OneQuery,
}

impl<'a> HeadTiles<'a> {
    /// `None` where no kernel combines parts.
    pub(super) fn new(
        problem: &'a Attention,
        configuration: &'static Configuration,
        options: OneQuery,
    ) -> Option<Self> {
        let combined = COMBINED.iter().find(|kernel| kernel.dtype == configuration.dtype)?;
        Some(Self { problem, configuration, combined, options })
    }

    /// Query heads that share a head of keys.
    fn group(&self) -> usize {
        self.problem.num_query_heads / self.problem.num_key_heads
    }

    /// The tiles of keys that a sequence's query sees, in parts; at least one.
    fn parts(&self, sequence: usize) -> impl ExactSizeIterator<Item = Range<usize>> + Clone {
        let num_keys = self.problem.keys.len_of(sequence);
        let tiles = key_tiles(self.problem.window.keys_of(0, 1, num_keys), num_keys, self.configuration.keys);
        let step = (self.options.keys_per_part / self.configuration.keys).max(1);
        tiles.clone().step_by(step).map(move |first| first..(first + step).min(tiles.end))
    }

    /// The pass that a sequence of one query takes. Nothing of other sequences plays a part.
    pub(super) fn kind(&self, sequence: usize) -> PassKind {
        // Log-sum-exps of packed sequences lie by heads: those of a tile's rows are one behind the other where there is one.
        let adjacent = matches!(self.problem.queries, Sequences::Equal { .. }) || self.group() == 1;
        let stored = adjacent && self.options.whole == Whole::Stored && self.parts(sequence).len() == 1;
        if stored { PassKind::Heads } else { PassKind::Parts }
    }

    /// Tiles of a sequence.
    pub(super) fn num_tiles(&self, sequence: usize) -> u64 {
        let tiles_of_rows = self.group().div_ceil(self.configuration.rows) as u64;
        (self.parts(sequence).len() as u64 * tiles_of_rows).saturating_mul(self.problem.num_key_heads as u64)
    }

    /// Rows of the workspace that a sequence takes.
    pub(super) fn num_partial_rows(&self, sequence: usize) -> u64 {
        match self.kind(sequence) {
            PassKind::Parts => (self.parts(sequence).len() as u64).saturating_mul(self.problem.num_query_heads as u64),
            PassKind::Heads | PassKind::Queries => 0,
        }
    }

    /// The rows that are combined, of none yet.
    pub(super) fn combination(&self) -> Combination {
        Combination { kernel: self.combined, rows: Vec::new(), num_partial_rows: 0, width: self.configuration.head_dim }
    }

    pub(super) fn configuration(&self) -> &'static Configuration {
        self.configuration
    }

    /// A sequence's tiles, by head of keys; where they are parts, the rows that these make are added to `combination`.
    pub(super) fn add(&self, sequence: usize, units: &mut Vec<Unit>, mut combination: Option<&mut Combination>) {
        let (problem, rows) = (self.problem, self.configuration.rows);
        let num_keys = problem.keys.len_of(sequence);
        let bytes = 2 * num_keys as u64 * (problem.head_dim * problem.dtype.size_bytes()) as u64;
        let (batch, token) = problem.queries.place(sequence, 0);
        let (key_token, key_outer) = coordinates(&problem.keys, sequence, 0);
        for key_head in 0..problem.num_key_heads {
            let mut tiles = Vec::new();
            for first_row in (0..self.group()).step_by(rows) {
                let num_rows = rows.min(self.group() - first_row);
                let head = key_head * self.group() + first_row;
                let parts = self.parts(sequence);
                let first_partial = combination.as_ref().map(|combination| combination.num_partial_rows);
                tiles.extend(parts.clone().enumerate().map(|(part, keys)| TileWork {
                    query_token: first_row as i32,
                    // Of one of the two axes, as the map's outer one.
                    query_outer: (batch + token) as i32,
                    query_head: key_head as u32,
                    key_head: key_head as u32,
                    key_token,
                    key_outer,
                    first_tile: keys.start as u32,
                    end_tile: keys.end as u32,
                    diagonal: num_keys as i32 - 1,
                    num_rows: num_rows as u32,
                    num_keys: num_keys as u32,
                    lse_index: match first_partial {
                        Some(first) => (first + part * num_rows) as u32,
                        None => problem.lse_index(sequence, head, 0) as u32,
                    },
                }));
                if let Some(combination) = &mut combination {
                    combination.rows.extend((0..num_rows).map(|row| CombinedRow {
                        first: (combination.num_partial_rows + row) as u32,
                        step: num_rows as u32,
                        count: parts.len() as u32,
                        lse_index: problem.lse_index(sequence, head + row, 0) as u32,
                        batch: batch as u32,
                        token: token as u32,
                        head: (head + row) as u32,
                    }));
                    combination.num_partial_rows += num_rows * parts.len();
                }
            }
            units.push(Unit { tiles, bytes });
        }
    }
}
