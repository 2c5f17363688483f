//! What a launch is given, the same on a device and in the simulator.

use kernels_gpu::csr::{Arguments, Geometry, OutputKind};

use super::CsrPlan;
use crate::element::{Dtype, Element};
use crate::error::Error;
use crate::formats::{CsrView, Layout, Shape};
use crate::ops::{Operand, Placed, PlanError};
use crate::tensor_map::DevicePtr;

/// Where the arrays of A lie.
#[derive(Clone, Copy)]
pub(super) struct Arrays {
    pub(super) row_offsets: DevicePtr,
    pub(super) col_indices: DevicePtr,
    pub(super) values: DevicePtr,
}

impl CsrPlan {
    /// Whether `a` is what was planned for, and keeps the invariants of its format: the kernel follows offsets and indices
    /// wherever they lead.
    pub(super) fn check_sparse<T: Element>(&self, a: &CsrView<'_, T>) -> Result<(), Error> {
        self.problem.factors().check_sparse::<T>(a.num_rows, a.num_cols)?;
        if a.num_entries() != self.num_entries {
            return Err(PlanError::NotPlanned { operand: Operand::A }.into());
        }
        Ok(a.check()?)
    }
}

/// The arguments of the kernel.
pub(super) fn arguments(a: Arrays, geometry: Geometry, alpha: f32, b: Placed, beta: f32, c: Placed) -> Arguments<()> {
    let [b_row_stride, b_col_stride] = strides(b.shape);
    let [c_row_stride, c_col_stride] = strides(c.shape);
    let output = if c.dtype == Dtype::F32 { OutputKind::Float } else { OutputKind::Input };
    // SAFETY: nothing is read here; that the arrays live and stay as they are is a promise of whoever launches.
    unsafe {
        Arguments {
            row_offsets: a.row_offsets.array(),
            col_indices: a.col_indices.array(),
            values: a.values.array(),
            b: b.address.array(),
            b_row_stride,
            b_col_stride,
            c: c.address.as_mut_ptr(),
            c_row_stride,
            c_col_stride,
            num_rows: c.shape.num_rows as u32,
            num_cols: c.shape.num_cols as u32,
            alpha,
            beta,
            output: output as u32,
            columns: geometry.columns as u32,
            team_log2: geometry.team_log2,
        }
    }
}

/// From row to row and from column to column, in elements.
fn strides(shape: Shape) -> [u64; 2] {
    match shape.layout {
        Layout::RowMajor => [shape.leading_dimension as u64, 1],
        Layout::ColumnMajor => [1, shape.leading_dimension as u64],
    }
}
