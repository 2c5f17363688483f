//! C = alpha A B + beta C with A in [BCSR](crate::formats::BcsrView): which kernel, which tiles, in which order.
//!
//! [`BcsrSpmm`] is the problem, [`BcsrPlan`] the choice; both print, and planning needs no GPU. On a device a plan is
//! prepared (`BcsrPlan::prepare`, feature `gpu`) and then launched many times.

#[cfg(feature = "ablation")]
mod ablation;
#[cfg(any(feature = "gpu", feature = "sim"))]
mod launch;
#[cfg(feature = "gpu")]
mod prepared;
mod schedule;
#[cfg(feature = "sim")]
mod simulated;

use core::fmt;

use kernels_gpu::bcsr::{BLayout, CONFIGURATIONS, Configuration, Dtype as KernelDtype};

use super::{DenseFactors, Operand, PlanError, Refusal};
use crate::element::{Dtype, Element};
use crate::formats::{BcsrView, BlockShape, Layout};

#[cfg(feature = "ablation")]
pub use ablation::AblationPlan;
#[cfg(all(feature = "ablation", feature = "gpu"))]
pub use ablation::AblationPrepared;
#[cfg(feature = "gpu")]
pub use prepared::BcsrPrepared;
use schedule::Schedule;

/// A problem: C (M x N) = alpha A (M x K) B (K x N) + beta C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BcsrSpmm {
    /// M.
    pub num_rows: usize,
    /// K.
    pub num_inner: usize,
    /// N.
    pub num_cols: usize,
    /// The shape of A's blocks.
    pub block: BlockShape,
    /// The type of A and B.
    pub dtype: Dtype,
    /// The type of C: that of A and B, or f32.
    pub output: Dtype,
    /// The layout of B.
    pub b_layout: Layout,
    /// The layout of C.
    pub c_layout: Layout,
}

impl fmt::Display for BcsrSpmm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bcsr {} {}", self.block, self.factors())
    }
}

/// How the columns of C are cut, where the caller wants to say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cluster {
    /// By what has measured best.
    #[default]
    Auto,
    /// No cluster: every block loads its own A.
    One,
    /// Two blocks share A by multicast.
    Two,
}

/// What was chosen for a problem and a pattern.
#[derive(Clone, Debug)]
#[cfg_attr(not(any(feature = "gpu", feature = "sim")), allow(dead_code, reason = "only a launch reads the lists"))]
pub struct BcsrPlan {
    problem: BcsrSpmm,
    configuration: &'static Configuration,
    schedule: Schedule,
    /// Whether B is marked as first to leave L2.
    streams_b: bool,
    /// `[block, block column]` for each block, padded to whole stages.
    blocks: Vec<[u32; 2]>,
    num_blocks: usize,
}

impl BcsrSpmm {
    /// The problem of multiplying `a` with `num_cols` columns.
    pub fn new<T: Element>(a: &BcsrView<'_, T>, num_cols: usize, output: Dtype, b: Layout, c: Layout) -> Self {
        Self {
            num_rows: a.num_rows,
            num_inner: a.num_cols,
            num_cols,
            block: a.block,
            dtype: T::DTYPE,
            output,
            b_layout: b,
            c_layout: c,
        }
    }

    /// Whether a kernel serves the problem at all.
    ///
    /// # Errors
    /// The reason, where none does.
    pub fn check(&self) -> Result<(), Refusal> {
        if kernel_dtype(self.dtype).is_none() {
            return Err(Refusal::Dtype { kernel: "BCSR", dtype: self.dtype, offered: "bf16 and f16" });
        }
        self.factors().check_output("BCSR")?;
        if !self.block.is_offered() {
            return Err(Refusal::Block { block: self.block });
        }
        // Coordinates of tensor copies are signed 32-bit numbers, and the last tile may reach over the edge.
        self.factors().check_sizes(i32::MAX as u64 - 1024)
    }

    /// Whether `a` is the problem's A.
    fn check_sparse<T: Element>(&self, a: &BcsrView<'_, T>) -> Result<(), PlanError> {
        self.factors().check_sparse::<T>(a.num_rows, a.num_cols)?;
        if a.block == self.block { Ok(()) } else { Err(PlanError::NotPlanned { operand: Operand::A }) }
    }

    fn factors(&self) -> DenseFactors {
        let Self { num_rows, num_inner, num_cols, dtype, output, b_layout, c_layout, .. } = *self;
        DenseFactors { num_rows, num_inner, num_cols, dtype, output, b_layout, c_layout }
    }

    /// Whether `configuration` can serve the problem.
    fn serves(&self, configuration: &Configuration) -> bool {
        let layout = if self.b_layout == Layout::RowMajor { BLayout::Row } else { BLayout::Col };
        kernel_dtype(self.dtype) == Some(configuration.dtype)
            && configuration.block_rows == self.block.rows
            // A block of 128 columns is two of 64.
            && configuration.block_cols == self.block.cols.min(64)
            && configuration.b_layout == layout
    }

    /// Chooses kernel and tiles for a device with `multiprocessors` multiprocessors.
    ///
    /// # Errors
    /// [`PlanError::Refused`] with the reason; [`PlanError::NotPlanned`] where `a` is not the problem's A.
    pub fn plan<T: Element>(&self, a: &BcsrView<'_, T>, multiprocessors: u32) -> Result<BcsrPlan, PlanError> {
        self.plan_with(a, multiprocessors, Cluster::Auto)
    }

    /// As [`plan`](Self::plan), with a cluster of the caller's choice where the kernels offer it.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn plan_with<T: Element>(
        &self,
        a: &BcsrView<'_, T>,
        multiprocessors: u32,
        cluster: Cluster,
    ) -> Result<BcsrPlan, PlanError> {
        self.check().map_err(PlanError::Refused)?;
        self.check_sparse(a)?;
        let configuration = CONFIGURATIONS
            .iter()
            .filter(|configuration| self.serves(configuration))
            .min_by_key(|configuration| self.preference(configuration, cluster))
            .ok_or(PlanError::Refused(Refusal::Block { block: self.block }))?;
        Ok(self.plan_for(a, multiprocessors, configuration))
    }

    /// The plan of a kernel that serves the problem, whose A is `a`.
    fn plan_for<T: Element>(
        &self,
        a: &BcsrView<'_, T>,
        multiprocessors: u32,
        configuration: &'static Configuration,
    ) -> BcsrPlan {
        let (blocks, stages) = pad_blocks(a, configuration);
        let panel = configuration.tile_n * configuration.spec.cluster as usize;
        let num_panels = self.num_cols.div_ceil(panel) as u32;
        let workers = (multiprocessors / configuration.spec.cluster).max(1);
        let traffic = Traffic::new(size_of_val(a.values), panel * self.num_inner * 2, stages.len() - 1, workers);
        BcsrPlan {
            problem: *self,
            configuration,
            schedule: Schedule::new(&stages, num_panels, traffic.group, workers),
            streams_b: traffic.streams_b,
            blocks,
            num_blocks: a.num_blocks() * (self.block.cols / configuration.block_cols),
        }
    }

    /// Smaller is better.
    fn preference(&self, configuration: &Configuration, cluster: Cluster) -> (usize, bool) {
        let wanted = match cluster {
            Cluster::One => 1,
            Cluster::Two => 2,
            Cluster::Auto => self.preferred_cluster(configuration.tile_n),
        };
        // The narrow tile where it saves half of the wide one or more: the wide one reads A once for four times the
        // columns.
        let narrow = if self.block.rows == 128 { self.num_cols <= 128 } else { self.num_cols <= 256 };
        let tile = if narrow { configuration.tile_n } else { usize::MAX - configuration.tile_n };
        (tile, configuration.spec.cluster != wanted)
    }

    /// Blocks of a cluster, for tiles of `tile_n` columns: two where pairs of tiles leave no more columns unused than
    /// single ones do, and there are pairs enough to choose from.
    ///
    /// PERF: with two, 18944 x 16384 x 3584 at 10 % takes 479 us for 492; elsewhere within 1 % (H200).
    fn preferred_cluster(&self, tile_n: usize) -> u32 {
        let num_tiles = self.num_cols.div_ceil(tile_n);
        if num_tiles >= 4 && num_tiles.is_multiple_of(2) { 2 } else { 1 }
    }
}

/// How the operands pass through L2.
struct Traffic {
    /// Panels that each row block meets in turn, before the next row block does.
    group: u32,
    /// Whether A is to stay in L2 and B to leave it.
    streams_b: bool,
}

impl Traffic {
    /// What may stay in L2 of A, or of a group of panels, in bytes: about a quarter of an H200's 60 MB, of which each half
    /// serves half of the multiprocessors.
    const RESIDENT_BYTES: usize = 16 << 20;

    /// The panels that all workers read at one time exceed L2 from here on, in bytes.
    const STREAM_BYTES: usize = 32 << 20;

    fn new(a_bytes: usize, panel_bytes: usize, num_row_blocks: usize, workers: u32) -> Self {
        // PERF: where A does not stay in L2 by itself, four panels a group read it a quarter as often: 8192^3, blocks at
        // 50 %, 763 -> 716 us; at 10 %, where it does, nothing is gained (H200).
        let group = if a_bytes > Self::RESIDENT_BYTES { Self::RESIDENT_BYTES / panel_bytes.max(1) } else { 1 };
        // PERF: 3584 x 16384 x 18944 at 10 %, 396 -> 342 us; where the panels fit, the same hint costs up to 31 % (H200).
        let active_bytes = panel_bytes * (workers as usize).div_ceil(num_row_blocks.max(1));
        Self { group: group.clamp(1, 1024) as u32, streams_b: active_bytes > Self::STREAM_BYTES }
    }
}

/// The list of blocks, each row block padded to whole stages, and where each row block's stages begin.
///
/// A padding entry lies outside of A's values and of B's rows, where the copy engine reads zeros.
fn pad_blocks<T: Element>(a: &BcsrView<'_, T>, configuration: &Configuration) -> (Vec<[u32; 2]>, Vec<u32>) {
    let (group, halves) = (configuration.group, a.block.cols / configuration.block_cols);
    let num_blocks = (a.num_blocks() * halves) as u32;
    let outside = [num_blocks, (a.num_cols.div_ceil(a.block.cols) * halves) as u32];
    let mut blocks = Vec::with_capacity(num_blocks as usize + (a.row_offsets.len() - 1) * (group - 1));
    let mut stages = Vec::with_capacity(a.row_offsets.len());
    stages.push(0);
    for row in a.row_offsets.windows(2) {
        for block in row[0] as usize..row[1] as usize {
            for half in 0..halves {
                blocks.push([(block * halves + half) as u32, a.col_indices[block] * halves as u32 + half as u32]);
            }
        }
        while !blocks.len().is_multiple_of(group) {
            blocks.push(outside);
        }
        stages.push((blocks.len() / group) as u32);
    }
    (blocks, stages)
}

const fn kernel_dtype(dtype: Dtype) -> Option<KernelDtype> {
    match dtype {
        Dtype::Bf16 => Some(KernelDtype::Bf16),
        Dtype::F16 => Some(KernelDtype::F16),
        Dtype::F32 | Dtype::F64 => None,
    }
}

impl BcsrPlan {
    /// The problem.
    pub fn problem(&self) -> &BcsrSpmm {
        &self.problem
    }

    /// The kernel.
    pub fn configuration(&self) -> &'static Configuration {
        self.configuration
    }

    /// Blocks of the launch.
    pub fn grid(&self) -> u32 {
        self.schedule.num_workers() * self.configuration.spec.cluster
    }

    /// Tiles of C.
    pub fn num_tiles(&self) -> usize {
        self.schedule.tiles.len()
    }

    /// The largest share of work over the mean share: 1 is perfect balance.
    pub fn imbalance(&self) -> f64 {
        self.schedule.imbalance()
    }
}

impl fmt::Display for BcsrPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} tiles of {}x{} on {} workers, {} stages of {} block(s), imbalance {:.2}",
            self.configuration.spec.name,
            self.num_tiles(),
            self.configuration.block_rows,
            self.configuration.tile_n * self.configuration.spec.cluster as usize,
            self.schedule.num_workers(),
            self.configuration.stages,
            self.configuration.group,
            self.imbalance()
        )
    }
}

#[cfg(test)]
mod tests;
