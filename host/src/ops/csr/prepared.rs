//! A plan on a device: the arrays of A, launched many times.

use core::fmt;

use super::CsrPlan;
use super::launch::{Arrays, arguments};
use crate::element::Element;
use crate::error::Error;
use crate::formats::CsrView;
#[cfg(doc)]
use crate::gpu::GpuError;
use crate::gpu::{Device, DeviceBuffer, DeviceDenseView, DeviceDenseViewMut, DevicePtr, Kernel, Stream};
#[cfg(doc)]
use crate::ops::PlanError;

/// A CSR matrix on a device. Send and Sync: threads and streams may launch its products at once.
pub struct CsrPrepared<T> {
    plan: CsrPlan,
    kernel: Kernel,
    row_offsets: DeviceBuffer<u64>,
    col_indices: DeviceBuffer<u32>,
    values: DeviceBuffer<T>,
}

impl CsrPlan {
    /// Puts `a` into device memory.
    ///
    /// # Errors
    /// [`PlanError::NotPlanned`] where `a` is not what was planned for; a [`FormatError`](crate::formats::FormatError)
    /// where it breaks an invariant of its format; [`GpuError::OutOfMemory`] with the bytes wanted and free; any other
    /// [`GpuError`] of the driver.
    pub fn prepare<T: Element>(&self, device: &Device, a: &CsrView<'_, T>) -> Result<CsrPrepared<T>, Error> {
        self.check_sparse(a)?;
        Ok(CsrPrepared {
            plan: self.clone(),
            kernel: device.kernel(self.configuration.spec)?,
            row_offsets: DeviceBuffer::from_slice(device, a.row_offsets)?,
            col_indices: DeviceBuffer::from_slice(device, a.col_indices)?,
            values: DeviceBuffer::from_slice(device, a.values)?,
        })
    }
}

impl<T: Element> CsrPrepared<T> {
    /// The plan.
    pub fn plan(&self) -> &CsrPlan {
        &self.plan
    }

    /// The loaded kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Device memory held, in bytes.
    pub fn num_bytes(&self) -> usize {
        self.row_offsets.num_bytes() + self.col_indices.num_bytes() + self.values.num_bytes()
    }

    /// Launches C = alpha A B + beta C on `stream` and returns without waiting. With `beta` 0, C is not read; with
    /// `alpha` 0, A and B are not.
    ///
    /// B and C may lie anywhere, with any leading dimension. A row-major B is read fastest where its base and its rows are
    /// aligned to 16 bytes.
    ///
    /// # Errors
    /// [`PlanError::ShapeMismatch`] and [`PlanError::NotPlanned`] where B or C is not what was planned for; a
    /// [`GpuError`] where the driver refuses.
    ///
    /// # Safety
    /// B and C stay allocated, B is not written and C is not used, until the launch is done; both are in the memory of
    /// the device that this was prepared on, and `stream` is one of its streams.
    pub unsafe fn launch<U: Element>(
        &self,
        stream: &Stream,
        alpha: f32,
        b: DeviceDenseView<'_, T>,
        beta: f32,
        c: &mut DeviceDenseViewMut<'_, U>,
    ) -> Result<(), Error> {
        let (b, c) = (b.placed(), c.placed());
        self.plan.problem.factors().check_planned(b, c)?;
        let Some(geometry) = self.plan.problem.geometry(b.line_alignment()) else { return Ok(()) };
        let a = Arrays {
            row_offsets: self.row_offsets.ptr(),
            col_indices: self.col_indices.ptr(),
            values: self.values.ptr(),
        };
        let arguments = arguments(a, geometry, alpha, b, beta, c);
        let params = (
            DevicePtr::of(arguments.row_offsets.as_ptr()),
            DevicePtr::of(arguments.col_indices.as_ptr()),
            DevicePtr::of(arguments.values.as_ptr()),
            DevicePtr::of(arguments.b.as_ptr()),
            arguments.b_row_stride,
            arguments.b_col_stride,
            DevicePtr::of(arguments.c),
            arguments.c_row_stride,
            arguments.c_col_stride,
            arguments.num_rows,
            arguments.num_cols,
            arguments.alpha,
            arguments.beta,
            arguments.output,
            arguments.columns,
            arguments.team_log2,
        );
        // SAFETY: the parameters are those that `Arguments` lists, in its order; the arrays of A keep the invariants of
        // the format and live as long as `self`, which the caller keeps until the launch is done; the rest is the
        // caller's promise.
        Ok(unsafe { self.kernel.launch((geometry.grid_x, geometry.grid_y), stream, params) }?)
    }
}

impl<T: Element> fmt::Debug for CsrPrepared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CsrPrepared").field("plan", &self.plan.to_string()).finish_non_exhaustive()
    }
}
