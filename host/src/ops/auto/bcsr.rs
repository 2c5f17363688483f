//! The model of BCSR: whole blocks, and for each its rows of B, a block row on one worker.

use kernels_gpu::bcsr::Configuration;

use super::constants::*;
use super::cost::{Bound, Cost, Part};
use super::format::Format;
use super::model::{Estimate, Problem};
use super::survey::{Fit, STAGE_COLS};
use crate::element::{Dtype, Element};
use crate::formats::{BcsrView, BlockShape, Layout};
use crate::ops::bcsr::BcsrSpmm;
use crate::ops::{PlanError, Refusal};
use half::{bf16, f16};

/// The widest tile whose rate was measured with blocks narrower than a stage.
const NARROW_TILE: usize = 128;

/// What the plan keeps of a group of panels in L2, in bytes.
const GROUP_BYTES: f64 = 16.0 * 1048576.0;

pub(super) fn check(problem: &Problem<'_>, block: BlockShape) -> Result<(), Refusal> {
    spmm(problem, block).check()
}

fn spmm(problem: &Problem<'_>, block: BlockShape) -> BcsrSpmm {
    let question = problem.question;
    BcsrSpmm {
        num_rows: problem.num_rows,
        num_inner: problem.num_inner,
        num_cols: question.num_cols,
        block,
        dtype: question.dtype,
        output: question.output,
        b_layout: question.b_layout,
        c_layout: question.c_layout,
    }
}

/// The kernel that a plan takes, which depends on no block: that of one empty block row.
fn configuration<T: Element>(problem: &Problem<'_>, block: BlockShape) -> Result<&'static Configuration, Refusal> {
    let one = BcsrSpmm { num_rows: 1, ..spmm(problem, block) };
    let (row_offsets, num_cols) = (&[0_u64, 0][..], problem.num_inner);
    let a = BcsrView::<T> { num_rows: 1, num_cols, block, row_offsets, col_indices: &[], values: &[] };
    match one.plan(&a, problem.device().num_multiprocessors) {
        Ok(plan) => Ok(plan.configuration()),
        Err(PlanError::Refused(refusal)) => Err(refusal),
        // `a` is the problem's.
        Err(_) => Err(Refusal::Block { block }),
    }
}

pub(super) fn estimate(problem: &Problem<'_>, block: BlockShape, fit: &Fit) -> Result<Estimate, Refusal> {
    let kernel = match problem.question.dtype {
        Dtype::F16 => configuration::<f16>(problem, block)?,
        _ => configuration::<bf16>(problem, block)?,
    };
    let (rows, tile_n) = (block.rows as f64, kernel.tile_n as f64);
    let panels = problem.panels(kernel.tile_n);
    let bytes = fit.num_units * (block.num_elements() as u64 * 2 + 4) + (fit.num_windows + 1) * 8;
    let (stage_cols, stages) = (STAGE_COLS as f64, fit.num_stages as f64 * panels);
    // The blocks of a cluster read A once for all.
    let a_bytes = rows * stage_cols * 2.0 / f64::from(kernel.spec.cluster);
    let l2_bytes = stages * (a_bytes + stage_cols * tile_n * 2.0);
    let operations = stages * 2.0 * rows * stage_cols * tile_n;
    let tiles = fit.num_windows as f64 * panels;
    let busy = problem.busy_share(tiles);
    // What one worker needs for a stage, and how many stages come one after the other on the worker that has the most.
    let turns = (stage_cols / kernel.block_cols as f64).max(1.0);
    let (per_worker, longest) = (stages / problem.workers(tiles), fit.longest as f64);
    let alone = problem.per_worker(Part::at(2.0 * rows * stage_cols * tile_n, TENSOR));
    // Wider tiles than that were measured with whole stages alone.
    let rate_n = if kernel.block_cols < STAGE_COLS as usize { kernel.tile_n.min(NARROW_TILE) } else { kernel.tile_n };
    let rate = by_width(BLOCKS_FROM_L2, rate_n);
    let fetching = Part::at(longest * l2_bytes / stages.max(1.0), BLOCKS_ALONE);
    let chain = Part::times(per_worker.max(longest) * turns, BLOCK_TURN)
        .max(Part { seconds: longest * alone.seconds, ..alone })
        .max(Part { seconds: problem.per_worker(fetching).seconds / rate.value, ..fetching });
    let panel_bytes = problem.num_inner as f64 * tile_n * 2.0 * f64::from(kernel.spec.cluster);
    let passes = (panels / (GROUP_BYTES / panel_bytes.max(1.0)).max(1.0)).max(1.0);
    let memory =
        Part::at(problem.a_traffic(bytes as f64, passes) + problem.b_traffic(fit, tile_n * 2.0, panels), MEMORY);
    let gather = Part::at(l2_bytes / busy, rate);
    let is_lone = (rate_n, kernel.spec.cluster) == (LONE_TILE, 1);
    let gather = if is_lone { gather.and(memory.share(BLOCKS_WAIT)) } else { gather };
    let lines = if problem.question.b_layout == Layout::RowMajor { 8 } else { 1 };
    let cost = Cost {
        launch: Part::times(1.0, LAUNCH),
        more_launches: problem.aligned_copy(lines),
        store: problem.store(),
        overlapping: [
            (Bound::Arithmetic, Part::at(operations / busy, TENSOR)),
            (Bound::Gather, gather),
            (Bound::Memory, memory),
            (Bound::Chain, chain),
        ],
    };
    Ok(Estimate {
        format: Format::Bcsr(block),
        cost,
        preparation: problem.build(bytes),
        bytes,
        stored: fit.num_units * block.num_elements() as u64,
        fetched: fit.num_columns,
        operations,
        note: kernel.spec.name,
    })
}
