//! The model of WCSR: what a multiprocessor takes for a tile and for a panel, wide windows split evenly.

use kernels_gpu::wcsr::{CONFIGURATIONS, Configuration};

use super::constants::*;
use super::cost::{Bound, Cost, Part};
use super::format::Format;
use super::model::{Estimate, Problem};
use super::survey::{Fit, STAGE_COLS};
use crate::element::{Dtype, Element};
use crate::formats::{WcsrView, WindowShape};
use crate::ops::wcsr::WcsrSpmm;
use crate::ops::{PlanError, Refusal};
use half::{bf16, f16};

/// The shortest part of a window, in stages.
const LEAST_PART: f64 = 4.0;

/// So many parts of a window count: with more, the others are read meanwhile.
const MOST_PARTS: f64 = 16.0;

/// Columns of a chunk of B, which copies of eight rows read whole.
const CHUNK: usize = 64;

pub(super) fn check(problem: &Problem<'_>, window: WindowShape) -> Result<(), Refusal> {
    spmm(problem, window).check()
}

fn spmm(problem: &Problem<'_>, window: WindowShape) -> WcsrSpmm {
    let question = problem.question;
    WcsrSpmm {
        num_rows: problem.num_rows,
        num_inner: problem.num_inner,
        num_cols: question.num_cols,
        window,
        dtype: question.dtype,
        output: question.output,
        b_layout: question.b_layout,
        c_layout: question.c_layout,
    }
}

/// The kernel that a plan takes, which depends on no window: that of one empty window.
fn configuration<T: Element>(problem: &Problem<'_>, window: WindowShape) -> Result<&'static Configuration, Refusal> {
    let one = WcsrSpmm { num_rows: 1, ..spmm(problem, window) };
    let (window_offsets, num_cols) = (&[0_u64, 0][..], problem.num_inner);
    let a = WcsrView::<T> { num_rows: 1, num_cols, window, window_offsets, groups: &[], values: &[], order: None };
    match one.plan(&a, problem.device().num_multiprocessors) {
        Ok(plan) => Ok(plan.configuration()),
        Err(PlanError::Refused(refusal)) => Err(refusal),
        // `a` is the problem's.
        Err(_) => Err(Refusal::Window { window }),
    }
}

pub(super) fn estimate(problem: &Problem<'_>, window: WindowShape, fit: &Fit) -> Result<Estimate, Refusal> {
    let kernel = match problem.question.dtype {
        Dtype::F16 => configuration::<f16>(problem, window)?,
        _ => configuration::<bf16>(problem, window)?,
    };
    let (rows, tile_n, stage_cols) = (window.rows as f64, kernel.tile_n as f64, STAGE_COLS as f64);
    let panels = problem.panels(kernel.tile_n);
    let groups_bytes = (crate::formats::PANEL_COLS / window.group * 4) as u64;
    let stored = fit.num_units * (window.rows * crate::formats::PANEL_COLS) as u64;
    let bytes = stored * 2 + fit.num_units * groups_bytes + (fit.num_windows + 1) * 8;
    // Windows of an entry share stages.
    let shared = (fit.num_units as f64 * crate::formats::PANEL_COLS as f64 / stage_cols).ceil();
    let num_stages = if kernel.most_windows > 1 { shared } else { fit.num_stages as f64 };
    let stages = num_stages * panels;
    let operations = stages * 2.0 * rows * stage_cols * tile_n;

    // A window wider than a worker's share of all windows is split.
    let workers = f64::from(problem.device().num_multiprocessors.max(1) * most_blocks(kernel));
    let part = (num_stages / workers).max(LEAST_PART).ceil();
    let is_split = fit.longest as f64 > part;
    let longest = (fit.longest as f64).min(part) * kernel.stage_panels as f64;
    let tiles = fit.num_windows as f64 * panels;
    let workers = problem.workers(if is_split { workers } else { tiles });
    let turns = window_turns(window.rows, kernel.tile_n);
    let panel = if window.group == 1 { turns.panel_of_single } else { turns.panel_of_eight };
    let uneven = if kernel.blocks == 1 { unevenness(tiles, workers) } else { 1.0 };
    let chain = Part::times(uneven * tiles / workers, turns.tile)
        .and(Part::times(uneven * (fit.num_units as f64 * panels / workers).max(longest), panel));

    let memory =
        problem.a_traffic(bytes as f64, panels) + problem.b_traffic(fit, tile_n * 2.0, panels) + problem.c_bytes();
    let memory = Part::at(memory, MEMORY);
    let copy = problem.aligned_copy(if window.group == 8 { CHUNK } else { 8 });
    let sums = || {
        let parts = (fit.longest as f64 / part).ceil().min(MOST_PARTS);
        Part::times(1.0, LAUNCH).and(Part::times(rows * tile_n * panels * parts.sqrt(), SUM_PARTS))
    };
    let cost = Cost {
        launch: Part::times(1.0, LAUNCH),
        more_launches: if is_split { sums().and(copy) } else { copy },
        // Each tile's is a part of its turn.
        store: Part::NONE,
        overlapping: [
            (Bound::Chain, chain.and(memory.share(WINDOWS_WAIT))),
            (Bound::Gather, Part::NONE),
            (Bound::Memory, memory),
            (Bound::Arithmetic, Part::NONE),
        ],
    };
    Ok(Estimate {
        format: Format::Wcsr(window),
        cost,
        preparation: problem.build(bytes),
        bytes,
        stored,
        fetched: fit.num_columns,
        operations,
        note: kernel.spec.name,
    })
}

/// How much longer workers with the most tiles take than all in the mean, where a multiprocessor has no other block to balance them: half of
/// what it is in tiles, since these differ.
fn unevenness(tiles: f64, workers: f64) -> f64 {
    let mean = tiles / workers;
    if mean <= 1.0 { 1.0 } else { 0.5 + 0.5 * mean.ceil() / mean }
}

/// The most blocks that a multiprocessor has of any kernel for such windows, by which they are split.
fn most_blocks(kernel: &Configuration) -> u32 {
    let same = |other: &&Configuration| (other.window_rows, other.group) == (kernel.window_rows, kernel.group);
    CONFIGURATIONS.iter().filter(same).map(|other| other.blocks).max().unwrap_or(kernel.blocks)
}
