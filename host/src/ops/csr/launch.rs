//! What a launch is given, the same on a device and in the simulator.

use kernels_gpu::csr::{Arguments, Columns, CombineArguments, Dtype as KernelDtype, Geometry, OutputKind, Ways};

use super::CsrPlan;
use crate::element::{Dtype, Element};
use crate::error::Error;
use crate::formats::{CsrView, Layout, Shape};
use crate::ops::{Operand, Placed, PlanError};
use crate::tensor_map::DevicePtr;

/// Where the arrays of A and the lists of a plan lie.
#[derive(Clone, Copy)]
pub(super) struct Arrays {
    pub(super) row_offsets: DevicePtr,
    pub(super) col_indices: DevicePtr,
    pub(super) values: DevicePtr,
    /// Nowhere where there is no part.
    pub(super) parts: DevicePtr,
    /// Nowhere where rows are taken as they come.
    pub(super) order: DevicePtr,
    /// Nowhere where there is no part.
    pub(super) workspace: DevicePtr,
}

/// What a product is made of, beside A.
#[derive(Clone, Copy)]
pub(super) struct Factors {
    pub(super) alpha: f32,
    pub(super) b: Placed,
    pub(super) beta: f32,
    pub(super) c: Placed,
}

impl CsrPlan {
    /// Whether `a` is what was planned for, and keeps the invariants of its format: the kernel follows offsets and indices
    /// wherever they lead.
    pub(super) fn check_sparse<T: Element>(&self, a: &CsrView<'_, T>) -> Result<(), Error> {
        self.problem.factors().check_sparse::<T>(a.num_rows, a.num_cols)?;
        if a.num_entries() != self.num_entries {
            return Err(PlanError::NotPlanned { operand: Operand::A }.into());
        }
        a.check()?;
        // The lists are of lengths of rows.
        if self.geometry().is_some() && !self.work.is_of(a.row_offsets, self.sharing.split) {
            return Err(PlanError::NotPlanned { operand: Operand::A }.into());
        }
        Ok(())
    }

    /// The arguments of the kernel.
    pub(super) fn arguments(&self, a: Arrays, geometry: Geometry, factors: Factors) -> Arguments<()> {
        let Factors { alpha, b, beta, c } = factors;
        let [b_row_stride, b_col_stride] = strides(b.shape);
        let [c_row_stride, c_col_stride] = strides(c.shape);
        let ways = Ways {
            output: if c.dtype == Dtype::F32 { OutputKind::Float } else { OutputKind::Input },
            columns: geometry.columns,
            team_log2: geometry.team_log2,
            run_log2: self.work.run_log2,
            part_log2: self.sharing.split.log2(),
        };
        // SAFETY: nothing is read here; that the arrays live and stay as they are is a promise of whoever launches.
        unsafe {
            Arguments {
                row_offsets: a.row_offsets.array(),
                col_indices: a.col_indices.array(),
                values: a.values.array(),
                num_entries: self.num_entries as u64,
                parts: a.parts.array(),
                num_parts: self.work.parts.len() as u32,
                order: a.order.array(),
                num_rows: self.work.num_team_rows() as u32,
                workspace: a.workspace.as_mut_ptr(),
                b: b.address.array(),
                b_row_stride,
                b_col_stride,
                c: c.address.as_mut_ptr(),
                c_row_stride,
                c_col_stride,
                num_cols: c.shape.num_cols as u32,
                alpha,
                beta,
                ways: ways.to_word(),
            }
        }
    }

    /// How a pass over so many items is shared out.
    pub(super) fn combine_geometry(&self, num_items: usize) -> Geometry {
        // `Work` has seen that there are no more than fit.
        Geometry::new(num_items as u32, self.problem.num_cols as u32, Columns::Packed4)
    }

    /// The arguments of the kernel that adds up parts, for a list that lies there.
    pub(super) fn combine_arguments(
        &self,
        items: DevicePtr,
        num_items: usize,
        workspace: DevicePtr,
        Factors { alpha, beta, c, .. }: Factors,
    ) -> CombineArguments {
        let [c_row_stride, c_col_stride] = strides(c.shape);
        let dtype = match c.dtype {
            Dtype::Bf16 => KernelDtype::Bf16,
            Dtype::F16 => KernelDtype::F16,
            // The plan has refused f64.
            Dtype::F32 | Dtype::F64 => KernelDtype::F32,
        };
        // SAFETY: as for `arguments`.
        let items = unsafe { items.array() };
        CombineArguments {
            items,
            num_items: num_items as u32,
            workspace: workspace.as_mut_ptr(),
            c: c.address.as_mut_ptr(),
            c_row_stride,
            c_col_stride,
            num_cols: c.shape.num_cols as u32,
            alpha,
            beta,
            dtype: dtype as u32,
            team_log2: self.combine_geometry(num_items).team_log2,
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
