//! C = alpha A B + beta C with A in [CSR](crate::formats::CsrView): which kernel, and how its threads share the work.
//!
//! [`CsrSpmm`] is the problem, [`CsrPlan`] the choice; both print, and planning needs no GPU. On a device a plan is
//! prepared (`CsrPlan::prepare`, feature `gpu`) and then launched many times.
//!
//! A row of more than 256 entries is cut in parts ([`RowSplit`]), whose sums a second launch adds in their order; short rows
//! of unlike lengths are begun in an order of their own ([`RowOrder`]), or a team takes several of them ([`RowRun`]). The bits of a result depend on its row of A and its
//! column of B alone.

#[cfg(any(feature = "gpu", feature = "sim"))]
mod launch;
#[cfg(feature = "gpu")]
mod prepared;
mod sharing;
#[cfg(feature = "sim")]
mod simulated;
mod work;

use core::fmt;
use std::sync::Arc;

use kernels_gpu::csr::{
    CONFIGURATIONS, Columns, Configuration, Dtype as KernelDtype, Geometry, MAX_SIZE, RowKind, workspace_stride,
};
use work::Work;

use super::{DenseFactors, PlanError, Refusal};
use crate::element::{Dtype, Element};
use crate::formats::{CsrView, Layout};

#[cfg(feature = "gpu")]
pub use prepared::CsrPrepared;
pub use sharing::{RowOrder, RowRun, RowSharing, RowSplit, RunLength};

/// The largest load of a thread, in bytes, and so the alignment of B that is worth having.
const WIDEST_LOAD_BYTES: u64 = 16;

/// A problem: C (M x N) = alpha A (M x K) B (K x N) + beta C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsrSpmm {
    /// M.
    pub num_rows: usize,
    /// K.
    pub num_inner: usize,
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
}

impl fmt::Display for CsrSpmm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "csr {}", self.factors())
    }
}

/// What was chosen for a problem and a pattern.
#[derive(Clone, Debug)]
pub struct CsrPlan {
    problem: CsrSpmm,
    configuration: &'static Configuration,
    num_entries: usize,
    sharing: RowSharing,
    work: Arc<Work>,
}

impl CsrSpmm {
    /// The problem of multiplying `a` with `num_cols` columns.
    pub fn new<T: Element>(a: &CsrView<'_, T>, num_cols: usize, output: Dtype, b: Layout, c: Layout) -> Self {
        Self {
            num_rows: a.num_rows,
            num_inner: a.num_cols,
            num_cols,
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
        self.configuration(RowKind::Single)?;
        self.factors().check_output("CSR")?;
        self.factors().check_sizes(MAX_SIZE)
    }

    /// Chooses the kernel, and how rows are shared out. The choice does not depend on the device.
    ///
    /// # Errors
    /// [`PlanError::Refused`] with the reason; [`PlanError::NotPlanned`] where `a` is not the problem's A.
    pub fn plan<T: Element>(&self, a: &CsrView<'_, T>) -> Result<CsrPlan, PlanError> {
        self.plan_with(a, RowSharing::default())
    }

    /// As [`plan`](Self::plan), with rows shared out as `sharing` says. It takes one look at the offsets of A, and a second
    /// where rows are ordered; threads share it.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn plan_with<T: Element>(&self, a: &CsrView<'_, T>, sharing: RowSharing) -> Result<CsrPlan, PlanError> {
        self.check().map_err(PlanError::Refused)?;
        self.factors().check_sparse::<T>(a.num_rows, a.num_cols)?;
        let num_entries = a.num_entries();
        let work = match self.geometry(WIDEST_LOAD_BYTES, 1) {
            Some(geometry) => {
                let chunk = u64::from(geometry.chunk()).min(self.num_cols as u64);
                let b_bytes = self.num_inner as u64 * chunk * self.dtype.size_bytes() as u64;
                Work::new(a.row_offsets, num_entries, sharing, geometry, b_bytes).map_err(PlanError::Refused)?
            }
            None => Work::default(),
        };
        let kind = if work.run_log2 == 0 { RowKind::Single } else { RowKind::Run };
        let configuration = self.configuration(kind).map_err(PlanError::Refused)?;
        Ok(CsrPlan { problem: *self, configuration, num_entries, sharing, work: Arc::new(work) })
    }

    /// Whether a plan for so many entries has [runs](RowRun) of rows, where nothing else is asked for.
    pub(in crate::ops) fn has_runs(&self, num_entries: usize) -> bool {
        let geometry = self.geometry(WIDEST_LOAD_BYTES, 1);
        geometry.is_some_and(|geometry| work::are_for_runs(self.num_rows, num_entries, geometry))
    }

    fn configuration(&self, rows: RowKind) -> Result<&'static Configuration, Refusal> {
        let dtype = match self.dtype {
            Dtype::Bf16 => Some(KernelDtype::Bf16),
            Dtype::F16 => Some(KernelDtype::F16),
            Dtype::F32 => Some(KernelDtype::F32),
            Dtype::F64 => None,
        };
        let is_it = |it: &&Configuration| Some(it.dtype) == dtype && it.rows == rows;
        CONFIGURATIONS.iter().find(is_it).ok_or(Refusal::Dtype {
            kernel: "CSR",
            dtype: self.dtype,
            offered: "bf16, f16 and f32",
        })
    }

    fn factors(&self) -> DenseFactors {
        let Self { num_rows, num_inner, num_cols, dtype, output, b_layout, c_layout } = *self;
        DenseFactors { num_rows, num_inner, num_cols, dtype, output, b_layout, c_layout }
    }

    /// How the work of so many teams is shared out where the rows of B start at multiples of `alignment_bytes`; `None` where C
    /// is empty.
    fn geometry(&self, alignment_bytes: u64, num_items: u32) -> Option<Geometry> {
        if self.num_rows == 0 || self.num_cols == 0 {
            return None;
        }
        // `check` has seen that the sizes fit 32 bits.
        let num_cols = self.num_cols as u32;
        let element_bytes = self.dtype.size_bytes() as u32;
        let alignment_bytes = match self.b_layout {
            Layout::RowMajor => alignment_bytes.min(WIDEST_LOAD_BYTES) as u32,
            Layout::ColumnMajor => element_bytes,
        };
        Some(Geometry::new(num_items, num_cols, Columns::best(num_cols, element_bytes, alignment_bytes)))
    }
}

impl CsrPlan {
    /// The problem.
    pub fn problem(&self) -> &CsrSpmm {
        &self.problem
    }

    /// The kernel.
    pub fn configuration(&self) -> &'static Configuration {
        self.configuration
    }

    /// The number of entries planned for.
    pub fn num_entries(&self) -> usize {
        self.num_entries
    }

    /// How a launch shares out the work where B is aligned to 16 bytes; `None` where there is nothing to compute. With a
    /// B less aligned a launch takes narrower loads.
    pub fn geometry(&self) -> Option<Geometry> {
        self.geometry_for(WIDEST_LOAD_BYTES)
    }

    /// How rows are shared out.
    pub fn sharing(&self) -> RowSharing {
        self.sharing
    }

    /// Rows that are cut in parts.
    pub fn num_long_rows(&self) -> usize {
        self.work.num_long_rows()
    }

    /// The parts of all long rows.
    pub fn num_parts(&self) -> usize {
        self.work.parts.len()
    }

    /// Whether rows are begun in an order of their own.
    pub fn is_ordered(&self) -> bool {
        self.work.order.is_some()
    }

    /// How many neighbouring rows a team computes.
    pub fn rows_per_team(&self) -> u32 {
        1 << self.work.run_log2
    }

    /// Device memory that each launch takes for the sums of parts, in bytes: none where no row is long.
    pub fn num_workspace_bytes(&self) -> u64 {
        let row_bytes = workspace_stride(self.problem.num_cols as u32) * size_of::<f32>() as u64;
        self.work.num_workspace_rows.saturating_mul(row_bytes)
    }

    fn geometry_for(&self, alignment_bytes: u64) -> Option<Geometry> {
        self.problem.geometry(alignment_bytes, self.work.num_items())
    }
}

impl fmt::Display for CsrPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.configuration.spec.name;
        let Some(geometry) = self.geometry() else { return write!(f, "{name}: nothing to compute") };
        let how = match geometry.columns {
            Columns::Spread1 => "1 column",
            Columns::Spread4 => "4 columns by single loads",
            Columns::Packed2 => "2 columns by one load",
            Columns::Packed4 => "4 columns by one load",
            Columns::Packed8 => "8 columns by one load",
        };
        let Geometry { grid_x, grid_y, .. } = geometry;
        write!(f, "{name}: {grid_x}x{grid_y} blocks, {} thread(s) to ", geometry.team())?;
        match self.rows_per_team() {
            1 => write!(f, "a row, each {how}")?,
            rows => write!(f, "{rows} rows, each {how}")?,
        }
        if self.num_long_rows() > 0 {
            let (rows, parts, split) = (self.num_long_rows(), self.num_parts(), self.sharing.split);
            write!(f, "; {rows} long row(s) in {parts} parts of up to {split} entries, ")?;
            write!(f, "added up in {} pass(es)", self.work.passes.len())?;
        }
        if self.is_ordered() { f.write_str("; rows by length") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
