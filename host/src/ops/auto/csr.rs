//! The model of CSR: one row of B for each entry, a row's entries one after the other.

use super::constants::*;
use super::cost::{Bound, Cost, Part};
use super::format::Format;
use super::model::{Estimate, Problem};
use super::survey::{Fit, Rows};
use crate::element::Dtype;
use crate::ops::Refusal;
use crate::ops::csr::CsrSpmm;

/// The least that a cache gives, in bytes.
const SECTOR: f64 = 32.0;

/// The most entries that one team adds up: [`RowSplit`](crate::ops::csr::RowSplit)'s default.
const PART: u64 = 256;

/// Bytes that a warp reads of a row of B at one time.
const WARP_BYTES: f64 = 512.0;

/// Those that a thread does.
const LOAD_BYTES: f64 = 16.0;

/// Threads of a block.
const THREADS: usize = 128;

pub(super) fn check(problem: &Problem<'_>) -> Result<(), Refusal> {
    spmm(problem).check()
}

/// What a plan would be made for.
fn spmm(problem: &Problem<'_>) -> CsrSpmm {
    let question = problem.question;
    CsrSpmm {
        num_rows: problem.num_rows,
        num_inner: problem.num_inner,
        num_cols: question.num_cols,
        dtype: question.dtype,
        output: question.output,
        b_layout: question.b_layout,
        c_layout: question.c_layout,
    }
}

/// Rows of a block of threads, whose entries share rows of B in L1.
pub(super) fn block_rows(problem: &Problem<'_>) -> usize {
    let team = (problem.num_cols() * problem.element_bytes() / LOAD_BYTES).clamp(1.0, 32.0) as usize;
    THREADS / team.next_power_of_two()
}

/// Whether a team takes a run of rows: as the plan decides.
pub(super) fn takes_runs(problem: &Problem<'_>, num_entries: u64) -> bool {
    spmm(problem).has_runs(num_entries as usize)
}

/// What rows and entries take with B of so many columns: between the widths that were measured linear, above in proportion, and below too,
/// where no record supports it.
fn turns(table: &[EntryTurns], num_cols: f64) -> EntryTurns {
    let (least, most) = (table[0], table[table.len() - 1]);
    let scaled =
        |turns: EntryTurns, scale: f64| turns.map(|constant| Constant { value: constant.value * scale, ..constant });
    if num_cols < least.num_cols as f64 {
        let scaled = scaled(least, num_cols / least.num_cols as f64);
        return scaled.map(|constant| Constant { origin: Origin::Predicted, ..constant });
    }
    let between = table.windows(2).find(|pair| num_cols < pair[1].num_cols as f64);
    match between {
        None => scaled(most, num_cols / most.num_cols as f64),
        Some(pair) => {
            let place = (num_cols - pair[0].num_cols as f64) / (pair[1].num_cols - pair[0].num_cols) as f64;
            pair[0].zip(pair[1], |low, high| Constant { value: low.value + (high.value - low.value) * place, ..high })
        }
    }
}

/// `fit` says how many rows of B [blocks](block_rows) fetch, and how many of these are not near one another.
pub(super) fn estimate(problem: &Problem<'_>, rows: &Rows, fit: &Fit) -> Estimate {
    let (size, entries) = (problem.element_bytes(), rows.num_entries as f64);
    let row_bytes = (problem.num_cols() * size).max(SECTOR);
    let bytes = rows.num_entries * (4 + size as u64) + (problem.num_rows as u64 + 1) * 8;
    let turns = match problem.question.dtype {
        Dtype::F32 => turns(&ENTRY_TURNS_32, row_bytes / size),
        _ => turns(&ENTRY_TURNS_16, row_bytes / size),
    };
    let row = if takes_runs(problem, rows.num_entries) { turns.row_of_run } else { turns.row };
    let (chunk_bytes, passes) = (row_bytes.min(WARP_BYTES), (row_bytes / WARP_BYTES).max(1.0));
    let memory =
        problem.a_traffic(bytes as f64, passes) + problem.b_traffic(fit, chunk_bytes, passes) + problem.c_bytes();
    let is_split = rows.longest > PART;
    // They do not overlap: the longest is what the launch is bound by, the others add up beside it.
    let mut parts = [
        (Bound::Gather, Part::times(problem.per_share(entries), turns.entry)),
        (Bound::Memory, Part::at(memory, MEMORY).share(ENTRIES_WAIT)),
        (Bound::Chain, Part::times(rows.longest.min(PART) as f64, ENTRY_TURN)),
        (Bound::Arithmetic, Part::NONE),
    ];
    parts.sort_by(|one, other| other.1.seconds.total_cmp(&one.1.seconds));
    let [bound, others @ ..] = parts;
    let rows_alone = Part::times(problem.per_share(problem.num_rows as f64), row);
    let cost = Cost {
        launch: Part::times(1.0, LAUNCH),
        more_launches: if is_split { Part::times(1.0, CUT_ROWS) } else { Part::NONE },
        store: others.into_iter().fold(rows_alone, |sum, (_, part)| sum.and(part)),
        overlapping: parts.map(|(of, part)| (of, if of == bound.0 { part } else { Part::NONE })),
    };
    let planning = problem.num_rows as f64 * PLAN_ROW.value / problem.threads();
    Estimate {
        format: Format::Csr,
        cost,
        preparation: PREPARE.value + bytes as f64 / UPLOAD.value + planning,
        bytes,
        stored: rows.num_entries,
        fetched: rows.num_entries,
        operations: 2.0 * entries * problem.num_cols(),
        note: if is_split { "rows of over 256 entries are cut" } else { "" },
    }
}
