//! The model of CSR: one row of B for each entry, a row's entries one after the other.

use super::constants::*;
use super::cost::{Bound, Cost, Part};
use super::format::Format;
use super::model::{Estimate, Problem, more_launches};
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

/// Rows of a block of threads, whose entries share rows of B in L1.
pub(super) fn block_rows(problem: &Problem<'_>) -> usize {
    let team = (problem.num_cols() * problem.element_bytes() / LOAD_BYTES).clamp(1.0, 32.0) as usize;
    THREADS / team.next_power_of_two()
}

/// An entry's row of B of 16-bit elements, on the device that was measured: between the widths that were, linear.
fn entry_16(num_cols: f64) -> Part {
    let [(least, narrow), .., (most, wide)] = ENTRY_16;
    let scaled = |constant: Constant, columns: usize| Part::times(num_cols / columns as f64, constant);
    let pairs = ENTRY_16.iter().zip(&ENTRY_16[1..]);
    let between = pairs.rev().find(|((from, _), _)| num_cols >= *from as f64);
    match between {
        None => scaled(narrow, least),
        Some(_) if num_cols >= most as f64 => scaled(wide, most),
        Some(((from, low), (to, high))) => {
            let place = (num_cols - *from as f64) / (to - from) as f64;
            Part { seconds: low.value + (high.value - low.value) * place, origin: high.origin }
        }
    }
}

/// `fit` says how many rows of B [blocks](block_rows) fetch, and how many of these are not near one another.
pub(super) fn estimate(problem: &Problem<'_>, rows: &Rows, fit: &Fit) -> Estimate {
    let (size, entries) = (problem.element_bytes(), rows.num_entries as f64);
    let row_bytes = (problem.num_cols() * size).max(SECTOR);
    let bytes = rows.num_entries * (4 + size as u64) + (problem.num_rows as u64 + 1) * 8;
    let entry = match problem.question.dtype {
        Dtype::F32 => Part::at(row_bytes, ENTRIES_32),
        _ => entry_16(row_bytes / size),
    };
    let gather = Part { seconds: problem.per_share(entries * entry.seconds), ..entry };
    // Rows narrower than a warp's loads share its instructions; wider ones take several turns, which other teams take.
    let warps = problem.num_rows as f64 * (row_bytes / WARP_BYTES).max(1.0 / 32.0);
    let (chunk_bytes, passes) = (row_bytes.min(WARP_BYTES), (row_bytes / WARP_BYTES).max(1.0));
    let memory =
        problem.a_traffic(bytes as f64, passes) + problem.b_traffic(fit, chunk_bytes, passes) + problem.c_bytes();
    let is_split = rows.longest > PART;
    let cost = Cost {
        launch: Part::times(1.0, LAUNCH),
        more_launches: more_launches(Part::NONE, is_split),
        store: Part::times(problem.per_share(warps), ROW),
        overlapping: [
            (Bound::Gather, gather),
            (Bound::Memory, Part::at(memory, MEMORY)),
            (Bound::Arithmetic, Part::NONE),
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
