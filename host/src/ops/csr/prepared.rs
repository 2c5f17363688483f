//! A plan on a device: the arrays of A, launched many times.

use core::fmt;

use kernels_gpu::csr::{Geometry, OutputKind};

use super::CsrPlan;
use crate::element::{Dtype, Element};
use crate::error::Error;
use crate::formats::{CsrView, Layout};
use crate::gpu::{Device, DeviceBuffer, DeviceDenseView, DeviceDenseViewMut, GpuError, Kernel, Stream};
use crate::ops::{Operand, PlanError};

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
        self.problem.factors().check_sparse::<T>(a.num_rows, a.num_cols)?;
        if a.num_entries() != self.num_entries {
            return Err(PlanError::NotPlanned { operand: Operand::A }.into());
        }
        // The kernel follows offsets and indices wherever they lead.
        a.check()?;
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
        self.plan.problem.factors().check_planned(&b, c)?;
        match self.plan.problem.geometry(row_alignment(&b)) {
            // SAFETY: the caller's promise.
            Some(geometry) => Ok(unsafe { self.launch_with(stream, geometry, alpha, &b, beta, c) }?),
            None => Ok(()),
        }
    }

    /// # Safety
    /// As [`launch`](Self::launch); B is aligned as `geometry` demands.
    unsafe fn launch_with<U: Element>(
        &self,
        stream: &Stream,
        geometry: Geometry,
        alpha: f32,
        b: &DeviceDenseView<'_, T>,
        beta: f32,
        c: &mut DeviceDenseViewMut<'_, U>,
    ) -> Result<(), GpuError> {
        let [b_row_stride, b_col_stride] = strides(b.layout(), b.leading_dimension());
        let [c_row_stride, c_col_stride] = strides(c.layout(), c.leading_dimension());
        let output = if U::DTYPE == Dtype::F32 { OutputKind::Float } else { OutputKind::Input };
        let params = (
            self.row_offsets.ptr(),
            self.col_indices.ptr(),
            self.values.ptr(),
            b.ptr(),
            b_row_stride,
            b_col_stride,
            c.ptr(),
            c_row_stride,
            c_col_stride,
            c.num_rows() as u32,
            c.num_cols() as u32,
            alpha,
            beta,
            output as u32,
            geometry.columns as u32,
            geometry.team_log2,
        );
        // SAFETY: the parameters are those that `Arguments` lists, in its order; the arrays of A keep the invariants of
        // the format and live as long as `self`, which the caller keeps until the launch is done; the rest is the
        // caller's promise.
        unsafe { self.kernel.launch((geometry.grid_x, geometry.grid_y), stream, params) }
    }
}

impl<T: Element> fmt::Debug for CsrPrepared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CsrPrepared").field("plan", &self.plan.to_string()).finish_non_exhaustive()
    }
}

/// From row to row and from column to column, in elements.
fn strides(layout: Layout, leading_dimension: usize) -> [u64; 2] {
    match layout {
        Layout::RowMajor => [leading_dimension as u64, 1],
        Layout::ColumnMajor => [1, leading_dimension as u64],
    }
}

/// The largest power of two that divides the address of every row of a row-major matrix.
fn row_alignment<T: Element>(b: &DeviceDenseView<'_, T>) -> u64 {
    let bits = b.ptr().0 | (b.leading_dimension() * size_of::<T>()) as u64;
    // Where both are 0 there is no element.
    1 << bits.trailing_zeros().min(63)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::DevicePtr;

    #[test]
    fn alignment_is_that_of_base_and_distance() {
        let alignment = |address, leading_dimension| {
            // SAFETY: the view is not read.
            let view = unsafe {
                DeviceDenseView::<half::bf16>::from_raw_parts(
                    DevicePtr(address),
                    4,
                    4,
                    leading_dimension,
                    Layout::RowMajor,
                )
            };
            row_alignment(&view.expect("rows do not overlap"))
        };
        assert_eq!(alignment(512, 128), 256);
        assert_eq!(alignment(512, 131), 2);
        assert_eq!(alignment(512, 132), 8);
        assert_eq!(alignment(516, 128), 4);
    }
}
