//! The model of CSR: one row of B for each entry, a row's entries one after the other.

use super::constants::*;
use super::cost::{Bound, Cost, Part};
use super::format::Format;
use super::model::{Estimate, Problem};
use super::survey::Rows;
use crate::element::Dtype;
use crate::ops::Refusal;
use crate::ops::csr::CsrSpmm;

/// The least that a cache gives, in bytes.
const SECTOR: f64 = 32.0;

/// The most entries that one team adds up: [`RowSplit`](crate::ops::csr::RowSplit)'s default.
const PART: u64 = 256;

/// Bytes that a warp reads of a row of B at one time.
const WARP_BYTES: f64 = 512.0;

pub(super) fn check(problem: &Problem<'_>) -> Result<(), Refusal> {
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
    .check()
}

/// `fetched` is how many rows of B windows of 64 rows have in common with nobody: each entry's where that is not known.
pub(super) fn estimate(problem: &Problem<'_>, rows: &Rows, fetched: u64) -> Estimate {
    let (size, entries) = (problem.element_bytes(), rows.num_entries as f64);
    let row_bytes = (problem.num_cols() * size).max(SECTOR);
    let bytes = rows.num_entries * (4 + size as u64) + (problem.num_rows as u64 + 1) * 8;
    let is_16_bits = problem.question.dtype != Dtype::F32;
    let (rate, step) = if is_16_bits { (ENTRIES_16, STEP_INSTRUCTIONS_16) } else { (ENTRIES_32, STEP_INSTRUCTIONS_32) };
    // Rows narrower than a warp's loads share its instructions; wider ones take several turns, which other teams take.
    let chunks = (row_bytes / WARP_BYTES).max(1.0 / 32.0);
    let instructions = chunks * (problem.num_rows as f64 * ROW_INSTRUCTIONS.value + rows.steps as f64 * step.value);
    let arithmetic = instructions / (ISSUE * f64::from(problem.device().num_multiprocessors.max(1)));
    let (chunk_bytes, passes) = (row_bytes.min(WARP_BYTES), (row_bytes / WARP_BYTES).max(1.0));
    let gather = Part::at(problem.per_share(entries * row_bytes), rate)
        .max(Part::at(problem.per_share(fetched as f64 * row_bytes), SCATTERED_FROM_L2));
    let memory = problem.a_traffic(bytes as f64, passes) + problem.b_traffic(fetched, chunk_bytes, passes);
    let is_split = rows.longest > PART;
    let cost = Cost {
        launch: Part::times(1.0, LAUNCH),
        more_launches: Part::times(if is_split { 1.0 } else { 0.0 }, NEXT_LAUNCH),
        store: problem.store(),
        overlapping: [
            (Bound::Gather, gather),
            (Bound::Memory, Part::at(memory, MEMORY)),
            (Bound::Arithmetic, Part { seconds: arithmetic, origin: ROW_INSTRUCTIONS.origin }),
            (Bound::Chain, Part::times(rows.longest.min(PART) as f64, ENTRY_TURN)),
        ],
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
