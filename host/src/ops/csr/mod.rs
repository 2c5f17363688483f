//! C = alpha A B + beta C with A in [CSR](crate::formats::CsrView): which kernel, and how its threads share the work.
//!
//! [`CsrSpmm`] is the problem, [`CsrPlan`] the choice; both print, and planning needs no GPU. On a device a plan is
//! prepared (`CsrPlan::prepare`, feature `gpu`) and then launched many times.

#[cfg(any(feature = "gpu", feature = "sim"))]
mod launch;
#[cfg(feature = "gpu")]
mod prepared;
#[cfg(feature = "sim")]
mod simulated;

use core::fmt;

use kernels_gpu::csr::{CONFIGURATIONS, Columns, Configuration, Dtype as KernelDtype, Geometry, MAX_SIZE};

use super::{DenseFactors, PlanError, Refusal};
use crate::element::{Dtype, Element};
use crate::formats::{CsrView, Layout};

#[cfg(feature = "gpu")]
pub use prepared::CsrPrepared;

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
        self.configuration()?;
        self.factors().check_output("CSR")?;
        self.factors().check_sizes(MAX_SIZE)
    }

    /// Chooses the kernel. The choice does not depend on the device.
    ///
    /// # Errors
    /// [`PlanError::Refused`] with the reason; [`PlanError::NotPlanned`] where `a` is not the problem's A.
    pub fn plan<T: Element>(&self, a: &CsrView<'_, T>) -> Result<CsrPlan, PlanError> {
        self.check().map_err(PlanError::Refused)?;
        self.factors().check_sparse::<T>(a.num_rows, a.num_cols)?;
        let configuration = self.configuration().map_err(PlanError::Refused)?;
        Ok(CsrPlan { problem: *self, configuration, num_entries: a.num_entries() })
    }

    fn configuration(&self) -> Result<&'static Configuration, Refusal> {
        let dtype = match self.dtype {
            Dtype::Bf16 => Some(KernelDtype::Bf16),
            Dtype::F16 => Some(KernelDtype::F16),
            Dtype::F32 => Some(KernelDtype::F32),
            Dtype::F64 => None,
        };
        CONFIGURATIONS.iter().find(|configuration| Some(configuration.dtype) == dtype).ok_or(Refusal::Dtype {
            kernel: "CSR",
            dtype: self.dtype,
            offered: "bf16, f16 and f32",
        })
    }

    fn factors(&self) -> DenseFactors {
        let Self { num_rows, num_inner, num_cols, dtype, output, b_layout, c_layout } = *self;
        DenseFactors { num_rows, num_inner, num_cols, dtype, output, b_layout, c_layout }
    }

    /// How the work is shared out where the rows of B start at multiples of `alignment_bytes`; `None` where C is empty.
    fn geometry(&self, alignment_bytes: u64) -> Option<Geometry> {
        if self.num_rows == 0 || self.num_cols == 0 {
            return None;
        }
        // `check` has seen that the sizes fit 32 bits.
        let (num_rows, num_cols) = (self.num_rows as u32, self.num_cols as u32);
        let element_bytes = self.dtype.size_bytes() as u32;
        let alignment_bytes = match self.b_layout {
            Layout::RowMajor => alignment_bytes.min(WIDEST_LOAD_BYTES) as u32,
            Layout::ColumnMajor => element_bytes,
        };
        Some(Geometry::new(num_rows, num_cols, Columns::best(num_cols, element_bytes, alignment_bytes)))
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
        self.problem.geometry(WIDEST_LOAD_BYTES)
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
        write!(f, "{name}: {grid_x}x{grid_y} blocks, {} thread(s) to a row, each {how}", geometry.team())
    }
}

#[cfg(test)]
mod tests;
