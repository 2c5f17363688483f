//! Lists of work: parts of long rows, the order of the others, and what adds up parts.

use core::ops::Range;

use kernels_gpu::csr::{CombineDestination, CombineWork, FAN_IN, GROUP, Geometry, MAX_RUN_PART_LOG2, MAX_SIZE};
use rayon::prelude::*;

use super::sharing::{RowOrder, RowRun, RowSharing, RowSplit};
use crate::ops::Refusal;

/// Rows that a thread looks at in one go. A multiple of the teams of every block.
const TASK_ROWS: usize = 1 << 14;

/// Loads that wait for one another before the first entry is there: the row's offsets, and its column indices.
const ROW_COST: u64 = 2;

/// Blocks that are sure to be more than a device runs at once.
const MANY_BLOCKS: usize = 1024;

/// Of B, what stays in the L2 cache with what passes through it.
const CACHED_BYTES: u64 = 32 << 20;

/// The imbalance from which on rows are ordered where B stays in the L2 cache, and where it does not.
const IMBALANCE: [f64; 2] = [1.25, 2.0];

/// Rows of more entries in the mean are taken one by one: by teams of fewer than [`WIDE_TEAM`] threads, and by others. Longer rows have
/// enough loads at once alone, and neighbours find one another's rows of B in L1 better if they are begun together.
const MEAN_OF_RUNS: [u64; 2] = [5, 6];
const WIDE_TEAM: u32 = 16;

/// The logarithm of the number of rows of a run, where it is not asked for.
const RUN_LOG2: u32 = 3;

/// The number of classes of lengths: none, 1, 2, to 4, to 8 and so on.
const NUM_CLASSES: usize = 34;

/// What a launch is to do, beside what it multiplies.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Row and number of each part of a long row.
    pub(super) parts: Vec<[u32; 2]>,
    /// The other rows, where they are not taken as they come.
    pub(super) order: Option<Vec<u32>>,
    /// The logarithm of the number of neighbouring rows of a team; 0 with an order.
    pub(super) run_log2: u32,
    /// What adds up parts, a list for each launch.
    pub(super) passes: Vec<Vec<CombineWork>>,
    /// Rows of the workspace.
    pub(super) num_workspace_rows: u64,
    /// All rows of A.
    num_rows: usize,
    long_rows: Vec<LongRow>,
}

/// A row that is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LongRow {
    row: u32,
    num_parts: u64,
}

/// What one look at all rows finds.
#[derive(Debug, Default)]
struct Survey {
    long_rows: Vec<LongRow>,
    /// The time of all rows, and of all blocks times their rows.
    cost: u64,
    block_cost: u64,
}

impl Work {
    /// For the rows with these offsets into `num_entries` entries, where a launch has this geometry but for its number of
    /// blocks, and uses `b_bytes` of B at a time. Where the offsets are none of CSR no row is long: whoever launches must see
    /// that they are.
    pub(super) fn new(
        row_offsets: &[u64],
        num_entries: usize,
        sharing: RowSharing,
        geometry: Geometry,
        b_bytes: u64,
    ) -> Result<Self, Refusal> {
        let num_rows = row_offsets.len().saturating_sub(1);
        let teams = geometry.teams() as usize;
        let survey = match row_offsets.last() {
            Some(&end) if end == num_entries as u64 => Survey::of(row_offsets, sharing.split, teams),
            _ => None,
        };
        let Some(survey) = survey else { return Ok(Self { num_rows, ..Self::default() }) };
        let num_parts: u64 = survey.long_rows.iter().map(|row| row.num_parts).sum();
        check_size(num_parts.saturating_add(num_rows as u64))?;
        let run_log2 = run_log2(sharing, num_rows, num_entries, geometry);
        let is_ordered = match sharing.order {
            RowOrder::Direct => false,
            RowOrder::ByLength => true,
            RowOrder::Auto => {
                run_log2 == 0
                    && num_rows.div_ceil(teams) >= MANY_BLOCKS
                    && survey.imbalance() >= IMBALANCE[usize::from(b_bytes > CACHED_BYTES)]
            }
        };
        let parts = survey.long_rows.iter().flat_map(|long| (0..long.num_parts as u32).map(|part| [long.row, part]));
        let (passes, num_workspace_rows) = passes(&survey.long_rows, num_parts);
        check_size(num_workspace_rows)?;
        Ok(Self {
            parts: parts.collect(),
            order: is_ordered.then(|| by_length(row_offsets, sharing.split)),
            run_log2,
            passes,
            num_workspace_rows,
            num_rows,
            long_rows: survey.long_rows,
        })
    }

    /// Whether rows with these offsets, which are those of a CSR matrix, have the same parts.
    #[cfg_attr(
        not(any(feature = "gpu", feature = "sim")),
        allow(dead_code, reason = "only a launch has a matrix to check")
    )]
    pub(super) fn is_of(&self, row_offsets: &[u64], split: RowSplit) -> bool {
        Survey::of(row_offsets, split, 1).is_some_and(|survey| survey.long_rows == self.long_rows)
    }

    /// Rows that teams have, one or a run of them, but for long rows that they leave out.
    pub(super) fn num_team_rows(&self) -> usize {
        self.order.as_ref().map_or(self.num_rows, Vec::len)
    }

    /// All teams.
    pub(super) fn num_items(&self) -> u32 {
        // `new` has seen that they fit.
        (self.parts.len() + self.num_team_rows().div_ceil(1 << self.run_log2)) as u32
    }

    pub(super) fn num_long_rows(&self) -> usize {
        self.long_rows.len()
    }
}

/// The logarithm of the number of rows of a run.
fn run_log2(sharing: RowSharing, num_rows: usize, num_entries: usize, geometry: Geometry) -> u32 {
    if sharing.order == RowOrder::ByLength || sharing.split.log2() > MAX_RUN_PART_LOG2 {
        return 0;
    }
    match sharing.run {
        RowRun::Single => 0,
        RowRun::Rows(length) => length.log2(),
        RowRun::Auto if are_for_runs(num_rows, num_entries, geometry) => RUN_LOG2,
        RowRun::Auto => 0,
    }
}

/// Whether rows are short and many enough for runs: the rule of [`RowRun::Auto`].
pub(super) fn are_for_runs(num_rows: usize, num_entries: usize, geometry: Geometry) -> bool {
    let mean = MEAN_OF_RUNS[usize::from(geometry.team() >= WIDE_TEAM)];
    let are_short = num_entries as u64 <= mean.saturating_mul(num_rows as u64);
    are_short && num_rows.div_ceil((geometry.teams() as usize) << RUN_LOG2) >= MANY_BLOCKS
}

fn check_size(size: u64) -> Result<(), Refusal> {
    if size > MAX_SIZE { Err(Refusal::Size { size, most: MAX_SIZE }) } else { Ok(()) }
}

impl Survey {
    /// `None` where the offsets decrease.
    fn of(row_offsets: &[u64], split: RowSplit, teams: usize) -> Option<Self> {
        let surveys: Option<Vec<_>> =
            tasks(row_offsets).map(|rows| Self::of_task(row_offsets, rows, split, teams)).collect();
        let mut all = Self::default();
        for survey in surveys? {
            all.long_rows.extend(survey.long_rows);
            all.cost += survey.cost;
            all.block_cost += survey.block_cost;
        }
        Some(all)
    }

    fn of_task(row_offsets: &[u64], rows: Range<usize>, split: RowSplit, teams: usize) -> Option<Self> {
        let mut survey = Self::default();
        let (mut longest, mut in_block) = (0, 0);
        for row in rows {
            let len = row_offsets[row + 1].checked_sub(row_offsets[row])?;
            let num_parts = num_parts(len, split);
            let mut cost = ROW_COST;
            if num_parts > 1 {
                survey.long_rows.push(LongRow { row: row as u32, num_parts });
            } else {
                cost += len.div_ceil(u64::from(GROUP));
            }
            survey.cost += cost;
            longest = cost.max(longest);
            in_block += 1;
            if in_block == teams {
                survey.block_cost += longest * teams as u64;
                (longest, in_block) = (0, 0);
            }
        }
        survey.block_cost += longest * in_block as u64;
        Some(survey)
    }

    fn imbalance(&self) -> f64 {
        self.block_cost as f64 / self.cost.max(1) as f64
    }
}

/// The rows, in ranges for a thread each.
fn tasks(row_offsets: &[u64]) -> impl IndexedParallelIterator<Item = Range<usize>> {
    let num_rows = row_offsets.len().saturating_sub(1);
    (0..num_rows.div_ceil(TASK_ROWS))
        .into_par_iter()
        .map(move |task| task * TASK_ROWS..num_rows.min((task + 1) * TASK_ROWS))
}

/// The parts of a row: at least one.
fn num_parts(len: u64, split: RowSplit) -> u64 {
    (len.saturating_sub(1) >> split.log2()) + 1
}

/// Rows but the long ones by classes of lengths, the longest class first.
fn by_length(row_offsets: &[u64], split: RowSplit) -> Vec<u32> {
    let sorted: Vec<_> = tasks(row_offsets).map(|rows| sort_task(row_offsets, rows, split)).collect();
    let mut order = vec![0; sorted.iter().map(|(rows, _)| rows.len()).sum()];
    // The piece of each class and task, and where it comes from.
    let (mut rest, mut pieces) = (&mut *order, Vec::new());
    for class in (0..NUM_CLASSES).rev() {
        for (rows, begins) in &sorted {
            let from = &rows[begins[class] as usize..begins[class + 1] as usize];
            let (piece, behind) = rest.split_at_mut(from.len());
            rest = behind;
            pieces.push((piece, from));
        }
    }
    pieces.into_par_iter().for_each(|(piece, from)| piece.copy_from_slice(from));
    order
}

/// Rows but the long ones by classes, and where each class begins.
fn sort_task(row_offsets: &[u64], rows: Range<usize>, split: RowSplit) -> (Vec<u32>, [u32; NUM_CLASSES + 1]) {
    let offsets = &row_offsets[rows.start..=rows.end];
    let class_of = |pair: &[u64]| {
        let len = pair[1] - pair[0];
        (num_parts(len, split) == 1).then(|| class(len))
    };
    let mut begins = [0; NUM_CLASSES + 1];
    for class in offsets.windows(2).filter_map(class_of) {
        begins[class + 1] += 1;
    }
    for class in 0..NUM_CLASSES {
        begins[class + 1] += begins[class];
    }
    let (mut next, mut sorted) = (begins, vec![0; begins[NUM_CLASSES] as usize]);
    for (row, pair) in rows.zip(offsets.windows(2)) {
        if let Some(class) = class_of(pair) {
            sorted[next[class] as usize] = row as u32;
            next[class] += 1;
        }
    }
    (sorted, begins)
}

/// 0 for no entry, 1 for one, 2 for two, 3 for up to four and so on.
fn class(len: u64) -> usize {
    match len {
        0 => 0,
        // Lengths of rows that are not long are under 2^32.
        _ => (65 - (len - 1).leading_zeros() as usize).min(NUM_CLASSES - 1),
    }
}

/// What adds up the parts of these rows, which are the first `num_parts` of the workspace, and the rows of the workspace that
/// it takes. A pass adds up to [`FAN_IN`] of them.
fn passes(long_rows: &[LongRow], num_parts: u64) -> (Vec<Vec<CombineWork>>, u64) {
    let (mut passes, mut num_rows, mut next) = (Vec::new(), num_parts, 0);
    let mut rows: Vec<(u32, Range<u64>)> = Vec::new();
    for long in long_rows {
        rows.push((long.row, next..next + long.num_parts));
        next += long.num_parts;
    }
    while !rows.is_empty() {
        let (mut pass, mut left) = (Vec::new(), Vec::new());
        for (row, parts) in rows {
            let is_last = parts.end - parts.start <= u64::from(FAN_IN);
            let begin = num_rows;
            for first in parts.clone().step_by(FAN_IN as usize) {
                let destination = if is_last {
                    CombineDestination::Row(row)
                } else {
                    num_rows += 1;
                    CombineDestination::Workspace((num_rows - 1) as u32)
                };
                let count = (parts.end - first).min(u64::from(FAN_IN)) as u32;
                pass.push(CombineWork { first: first as u32, count, destination });
            }
            if !is_last {
                left.push((row, begin..num_rows));
            }
        }
        passes.push(pass);
        rows = left;
    }
    (passes, num_rows)
}

#[cfg(test)]
#[path = "work_tests.rs"]
mod tests;
