//! A plan on a device: the arrays of A, launched many times.

use core::fmt;

use kernels_gpu::csr::COMBINED;

use super::CsrPlan;
use super::launch::{Arrays, Factors};
use crate::element::Element;
use crate::error::Error;
use crate::formats::CsrView;
use crate::gpu::{
    Device, DeviceBuffer, DeviceDenseView, DeviceDenseViewMut, DevicePtr, GpuError, Kernel, Scratch, Stream,
};
#[cfg(doc)]
use crate::ops::PlanError;

/// A CSR matrix on a device. Send and Sync: threads and streams may launch its products at once.
pub struct CsrPrepared<T> {
    plan: CsrPlan,
    device: Device,
    kernel: Kernel,
    row_offsets: DeviceBuffer<u64>,
    col_indices: DeviceBuffer<u32>,
    values: DeviceBuffer<T>,
    /// Of no element where no row is long.
    parts: DeviceBuffer<[u32; 2]>,
    order: Option<DeviceBuffer<u32>>,
    combining: Option<Combining>,
}

/// What adds up the parts of long rows.
struct Combining {
    kernel: Kernel,
    /// The items of each pass.
    passes: Vec<DeviceBuffer<[u32; 4]>>,
}

impl Combining {
    fn new(device: &Device, plan: &CsrPlan) -> Result<Option<Self>, GpuError> {
        if plan.work.passes.is_empty() {
            return Ok(None);
        }
        let passes = plan.work.passes.iter().map(|items| {
            let words: Vec<_> = items.iter().map(|item| item.to_words()).collect();
            DeviceBuffer::from_slice(device, &words)
        });
        Ok(Some(Self { kernel: device.kernel(COMBINED.spec)?, passes: passes.collect::<Result<_, _>>()? }))
    }
}

impl CsrPlan {
    /// Puts `a` and the plan's lists into device memory.
    ///
    /// # Errors
    /// [`PlanError::NotPlanned`] where `a` is not what was planned for; a [`FormatError`](crate::formats::FormatError)
    /// where it breaks an invariant of its format; [`GpuError::OutOfMemory`] with the bytes wanted and free; any other
    /// [`GpuError`] of the driver.
    pub fn prepare<T: Element>(&self, device: &Device, a: &CsrView<'_, T>) -> Result<CsrPrepared<T>, Error> {
        self.check_sparse(a)?;
        let order = self.work.order.as_ref().map(|rows| DeviceBuffer::from_slice(device, rows));
        Ok(CsrPrepared {
            plan: self.clone(),
            device: device.clone(),
            kernel: device.kernel(self.configuration.spec)?,
            row_offsets: DeviceBuffer::from_slice(device, a.row_offsets)?,
            col_indices: DeviceBuffer::from_slice(device, a.col_indices)?,
            values: DeviceBuffer::from_slice(device, a.values)?,
            parts: DeviceBuffer::from_slice(device, &self.work.parts)?,
            order: order.transpose()?,
            combining: Combining::new(device, self)?,
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

    /// Device memory held, in bytes. A launch takes [`CsrPlan::num_workspace_bytes`] besides.
    pub fn num_bytes(&self) -> usize {
        let passes = self.combining.iter().flat_map(|combining| &combining.passes).map(DeviceBuffer::num_bytes);
        let lists = self.parts.num_bytes() + self.order.as_ref().map_or(0, DeviceBuffer::num_bytes);
        let arrays = self.row_offsets.num_bytes() + self.col_indices.num_bytes() + self.values.num_bytes();
        arrays + lists + passes.sum::<usize>()
    }

    /// Launches C = alpha A B + beta C on `stream` and returns without waiting. With `beta` 0, C is not read; with
    /// `alpha` 0, A and B are not.
    ///
    /// B and C may lie anywhere, with any leading dimension. A row-major B is read fastest where its base and its rows are
    /// aligned to 16 bytes.
    ///
    /// Where rows are long, each launch has a workspace of its own, allocated and freed in the order of the stream.
    ///
    /// It may be captured in a graph, with what the graph needs alive for as long as it is replayed: see [graphs](crate::gpu#graphs).
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
        let factors = Factors { alpha, b: b.placed(), beta, c: c.placed() };
        self.plan.problem.factors().check_planned(factors.b, factors.c)?;
        let Some(geometry) = self.plan.geometry_for(factors.b.line_alignment()) else { return Ok(()) };
        let workspace = match self.plan.num_workspace_bytes() {
            0 => None,
            bytes => Some(Scratch::new(&self.device, stream, bytes as usize)?),
        };
        let a = Arrays {
            row_offsets: self.row_offsets.ptr(),
            col_indices: self.col_indices.ptr(),
            values: self.values.ptr(),
            parts: self.parts.ptr(),
            order: self.order.as_ref().map_or(DevicePtr::NULL, DeviceBuffer::ptr),
            workspace: workspace.as_ref().map_or(DevicePtr::NULL, Scratch::ptr),
        };
        let arguments = self.plan.arguments(a, geometry, factors);
        let params = (
            DevicePtr::of(arguments.row_offsets.as_ptr()),
            DevicePtr::of(arguments.col_indices.as_ptr()),
            DevicePtr::of(arguments.values.as_ptr()),
            arguments.num_entries,
            DevicePtr::of(arguments.parts.as_ptr()),
            arguments.num_parts,
            DevicePtr::of(arguments.order.as_ptr()),
            arguments.num_rows,
            DevicePtr::of(arguments.workspace),
            DevicePtr::of(arguments.b.as_ptr()),
            arguments.b_row_stride,
            arguments.b_col_stride,
            DevicePtr::of(arguments.c),
            arguments.c_row_stride,
            arguments.c_col_stride,
            arguments.num_cols,
            arguments.alpha,
            arguments.beta,
            arguments.ways,
        );
        // SAFETY: the parameters are those that `Arguments` lists, in its order; the arrays of A keep the invariants of
        // the format, and with the lists, which are of A, they live as long as `self`, which the caller keeps until the
        // launch is done; the workspace is freed on the same stream, after all launches; the rest is the caller's promise.
        unsafe { self.kernel.launch((geometry.grid_x, geometry.grid_y), stream, params) }?;
        // SAFETY: as above.
        Ok(unsafe { self.combine(stream, a.workspace, factors) }?)
    }

    /// Adds up the parts of long rows, where there are any.
    ///
    /// # Safety
    /// As [`launch`](Self::launch), behind the kernel on the same stream; the workspace is there until all is done.
    unsafe fn combine(&self, stream: &Stream, workspace: DevicePtr, factors: Factors) -> Result<(), GpuError> {
        let Some(combining) = &self.combining else { return Ok(()) };
        for items in &combining.passes {
            let geometry = self.plan.combine_geometry(items.len());
            let arguments = self.plan.combine_arguments(items.ptr(), items.len(), workspace, factors);
            let params = (
                DevicePtr::of(arguments.items.as_ptr()),
                arguments.num_items,
                DevicePtr::of(arguments.workspace),
                DevicePtr::of(arguments.c),
                arguments.c_row_stride,
                arguments.c_col_stride,
                arguments.num_cols,
                arguments.alpha,
                arguments.beta,
                arguments.dtype,
                arguments.team_log2,
            );
            // SAFETY: the parameters are those that `CombineArguments` lists, in its order; the list lives as long as
            // `self`; the rest is the caller's promise.
            unsafe { combining.kernel.launch((geometry.grid_x, geometry.grid_y), stream, params) }?;
        }
        Ok(())
    }
}

impl<T: Element> fmt::Debug for CsrPrepared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CsrPrepared").field("plan", &self.plan.to_string()).finish_non_exhaustive()
    }
}
