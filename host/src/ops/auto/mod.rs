//! The chooser: which format multiplies a matrix soonest, and why.
//!
//! [`recommend`] predicts the time of every format and configuration from the pattern of A, N, the types and layouts, how
//! often the product is launched, and a device. It needs no GPU, and builds nothing. [`AutoPlan`] builds the best format and plans it.
//!
//! A predicted time is that of the launches, of what nothing hides, and of the longest of four things that overlap: A and B
//! from memory, rows of B from the caches, arithmetic, and the longest chain on one multiprocessor. The preparation is shared by as many
//! launches as the question says. Every number behind it is in one table (`constants.rs`) with where it comes from, and a
//! candidate says whether records support it. `docs/performance/chooser.md` derives the numbers, and compares with what was measured.
//!
//! ```
//! use hopper_sparse::Dtype;
//! use hopper_sparse::generate::GeneratorSpec;
//! use hopper_sparse::ops::auto::{Format, Question, recommend};
//!
//! let a = GeneratorSpec::parse("rmat:10,8")?.generate()?;
//! let found = recommend(a.pattern(), &Question::new(128, Dtype::F32));
//! assert_eq!(found.best().map(|best| best.format), Some(Format::Csr));
//! println!("{found}");
//! # Ok::<(), hopper_sparse::Error>(())
//! ```

mod bcsr;
mod constants;
mod cost;
mod csr;
mod device;
mod format;
mod model;
mod plan;
mod recommendation;
mod survey;
mod wcsr;

pub use constants::Origin;
pub use cost::{Bound, Cost, Part};
pub use device::DeviceDescription;
pub use format::Format;
#[cfg(feature = "gpu")]
pub use plan::AutoPrepared;
pub use plan::{AutoPlan, Chosen};
pub use recommendation::{Candidate, PassedOver, Recommendation, Refused};

use super::Refusal;
use crate::element::Dtype;
use crate::formats::{CsrPattern, Layout};
use model::{Estimate, Problem};
use survey::{Fit, Fits, Rows};

/// What is to be multiplied, and how often: C (M x N) = alpha A (M x K) B (K x N) + beta C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// N.
    pub num_cols: usize,
    /// The type of A and B.
    pub dtype: Dtype,
    /// The type of C: that of A and B, or f32.
    pub output: Dtype,
    /// The layout of B.
    pub b_layout: Layout,
    /// The layout of C.
    pub c_layout: Layout,
    /// Launches that share one preparation; 0 counts as 1.
    pub times: u64,
    /// The device.
    pub device: DeviceDescription,
}

impl Question {
    /// Launches that a question is about unless it says otherwise.
    pub const DEFAULT_TIMES: u64 = 100_000;

    /// All of one type, B and C row-major, launched [`DEFAULT_TIMES`](Self::DEFAULT_TIMES) times on an H200.
    pub fn new(num_cols: usize, dtype: Dtype) -> Self {
        Self {
            num_cols,
            dtype,
            output: dtype,
            b_layout: Layout::RowMajor,
            c_layout: Layout::RowMajor,
            times: Self::DEFAULT_TIMES,
            device: DeviceDescription::h200(),
        }
    }

    /// The same, launched so often.
    pub fn with_times(self, times: u64) -> Self {
        Self { times, ..self }
    }

    /// The same, on a device.
    pub fn with_device(self, device: DeviceDescription) -> Self {
        Self { device, ..self }
    }
}

/// Ranks the formats for a matrix.
///
/// It takes one look at the offsets and, where a format of blocks or windows could still be the best, one pass over the column
/// indices for all shapes together, in parallel. A shape could not be the best where even its longest rows, which are bounds on what its
/// windows store, or its preparation alone take longer than CSR whose every entry misses L1.
pub fn recommend(matrix: &CsrPattern, question: &Question) -> Recommendation {
    let problem = Problem::new(matrix, question);
    let rows = Rows::of(matrix.row_offsets());
    let mut found = Recommendation {
        device: question.device.clone(),
        candidates: Vec::new(),
        passed_over: Vec::new(),
        refused: Vec::new(),
    };
    let candidate = |estimate: Estimate| Candidate::new(estimate, rows.num_entries, question.times);
    let mut limit = f64::INFINITY;
    let mut open = Vec::new();
    for format in Format::all() {
        if let Err(refusal) = check(&problem, format) {
            found.refused.push(Refused { format, refusal });
            continue;
        }
        if format == Format::Csr {
            limit = candidate(csr::estimate(&problem, &rows, &least(format, &problem, &rows))).seconds();
        }
        // No entry in two windows: the least that it may store.
        match estimate(&problem, format, &rows, &least(format, &problem, &rows)).map(candidate) {
            Ok(least) if format != Format::Csr && least.seconds() > limit => {
                found.passed_over.push(PassedOver { format, least_seconds: least.seconds() });
            }
            Ok(_) => open.push(format),
            Err(refusal) => found.refused.push(Refused { format, refusal }),
        }
    }
    // Where bounds have settled the rank, what windows share is not worth a pass: CSR's time is then one from above.
    let is_settled = open == [Format::Csr] && !found.passed_over.is_empty();
    let fits = (!open.is_empty() && !is_settled).then(|| Fits::of(matrix));
    for format in open {
        let fit = match &fits {
            None => least(format, &problem, &rows),
            Some(fits) if format == Format::Csr => fits.fetched(rows.num_entries, csr::block_rows(&problem)),
            Some(fits) => fits.get(format),
        };
        match estimate(&problem, format, &rows, &fit) {
            Ok(estimate) => found.candidates.push(candidate(estimate)),
            Err(refusal) => found.refused.push(Refused { format, refusal }),
        }
    }
    found.candidates.sort_by(|one, other| one.seconds().total_cmp(&other.seconds()));
    found
}

/// Whether the family's kernels serve the question.
fn check(problem: &Problem<'_>, format: Format) -> Result<(), Refusal> {
    match format {
        Format::Csr => csr::check(problem),
        Format::Bcsr(block) => bcsr::check(problem, block),
        Format::Wcsr(window) => wcsr::check(problem, window),
    }
}

/// What the family's model says where the matrix fits so; of CSR, where blocks of threads fetch `fit.num_columns` rows of B.
fn estimate(problem: &Problem<'_>, format: Format, rows: &Rows, fit: &Fit) -> Result<Estimate, Refusal> {
    match format {
        Format::Csr => Ok(csr::estimate(problem, rows, fit)),
        Format::Bcsr(block) => bcsr::estimate(problem, block, fit),
        Format::Wcsr(window) => wcsr::estimate(problem, window, fit),
    }
}

/// The least that a format may store, by the lengths of rows; of CSR the most that it may fetch.
fn least(format: Format, problem: &Problem<'_>, rows: &Rows) -> Fit {
    let (height, unit) = match format {
        Format::Csr => {
            let (num_columns, num_strays) = (rows.num_entries, rows.num_entries);
            return Fit { num_columns, num_strays, ..Fit::default() };
        }
        Format::Bcsr(block) => (block.rows, block.cols),
        Format::Wcsr(window) => (window.rows, crate::formats::PANEL_COLS),
    };
    let num_columns = rows.num_entries.div_ceil(height as u64);
    Fit {
        num_windows: problem.num_rows.div_ceil(height) as u64,
        num_units: num_columns.div_ceil(unit as u64),
        num_columns,
        num_strays: 0,
        num_stages: rows.least_stages[usize::from(height == 128)],
        // Whether windows are split depends on all of them, so that none may be: that takes another launch.
        longest: if matches!(format, Format::Wcsr(_)) { 0 } else { rows.longest.div_ceil(survey::STAGE_COLS) },
    }
}

#[cfg(test)]
mod tests;
