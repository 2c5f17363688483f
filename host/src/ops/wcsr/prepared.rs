//! A plan on a device: values, lists and tensor maps, launched many times.

use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;

use super::WcsrPlan;
use super::launch::Lists;
use crate::element::Element;
use crate::error::Error;
use crate::formats::WcsrView;
use crate::gpu::{
    AlignedCopy, Device, DeviceBuffer, DeviceDenseView, DeviceDenseViewMut, DevicePtr, GpuError, Kept, Kernel, Scratch,
    Stream, TensorMap, TensorMaps,
};
#[cfg(doc)]
use crate::ops::PlanError;

/// A WCSR matrix on a device, with all that its products need. Send and Sync: threads and streams may launch it at once.
pub struct WcsrPrepared<T> {
    plan: WcsrPlan,
    kernel: Kernel,
    /// Adds up the parts of split windows, where there are any.
    combine: Option<Kernel>,
    values: DeviceBuffer<T>,
    groups: DeviceBuffer<u32>,
    tiles: DeviceBuffer<[u32; 8]>,
    tile_offsets: DeviceBuffer<u32>,
    splits: DeviceBuffer<[u32; 4]>,
    /// The row of each place, where they are in an order.
    rows: Option<DeviceBuffer<u32>>,
    /// The maps of A and B, by address and leading dimension of B.
    maps: Kept<(DevicePtr, usize), TensorMaps<2>>,
    element: PhantomData<T>,
}

impl WcsrPlan {
    /// Puts `a` and the plan's lists into device memory, the order of its rows among them.
    ///
    /// # Errors
    /// [`PlanError::NotPlanned`] where `a` is not what was planned for; [`GpuError::OutOfMemory`] with the bytes wanted
    /// and free; any other [`GpuError`] of the driver.
    pub fn prepare<T: Element>(&self, device: &Device, a: &WcsrView<'_, T>) -> Result<WcsrPrepared<T>, Error> {
        self.check_sparse(a)?;
        let kernel = device.kernel(self.configuration.spec)?;
        let combine = if self.num_splits() > 0 { Some(device.kernel(self.combined()?.spec)?) } else { None };
        Ok(WcsrPrepared {
            plan: self.clone(),
            kernel,
            combine,
            values: DeviceBuffer::from_slice(device, &self.values(a))?,
            groups: DeviceBuffer::from_slice(device, a.groups)?,
            tiles: DeviceBuffer::from_slice(device, &self.tiles())?,
            tile_offsets: DeviceBuffer::from_slice(device, &self.schedule.dealt.offsets)?,
            splits: DeviceBuffer::from_slice(device, &self.splits())?,
            rows: a.rows().map(|rows| DeviceBuffer::from_slice(device, rows)).transpose()?,
            maps: Kept::default(),
            element: PhantomData,
        })
    }
}

impl<T: Element> WcsrPrepared<T> {
    /// The plan.
    pub fn plan(&self) -> &WcsrPlan {
        &self.plan
    }

    /// The loaded kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Device memory held, in bytes; a launch takes [`WcsrPlan::workspace_bytes`] beside it.
    pub fn num_bytes(&self) -> usize {
        let lists = self.tiles.num_bytes() + self.tile_offsets.num_bytes() + self.splits.num_bytes();
        let rows = self.rows.as_ref().map_or(0, DeviceBuffer::num_bytes);
        self.values.num_bytes() + self.groups.num_bytes() + lists + rows
    }

    /// Launches C = alpha A B + beta C on `stream` and returns without waiting. With `beta` 0, C is not read; with
    /// `alpha` 0, A and B are not.
    ///
    /// B and C may lie anywhere, with any leading dimension. Where B is not aligned as tensor copies demand (16 bytes for
    /// its base and its lines, with groups of eight also N a multiple of 64), an aligned copy of it is made first, on the same stream.
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
        self.plan.problem.factors().check_planned(b.placed(), c.placed())?;
        if self.plan.num_tiles() == 0 {
            return Ok(());
        }
        if self.plan.reads_in_place(b.placed()) {
            // SAFETY: the caller's promise.
            return Ok(unsafe { self.launch_aligned(stream, alpha, &b, beta, c) }?);
        }
        let copy = AlignedCopy::new(self.kernel.device(), stream, &b, self.plan.line_bytes())?;
        // SAFETY: the copy is freed on the same stream, after the launch.
        Ok(unsafe { self.launch_aligned(stream, alpha, &copy.view(), beta, c) }?)
    }

    /// # Safety
    /// As [`launch`](Self::launch).
    unsafe fn launch_aligned<U: Element>(
        &self,
        stream: &Stream,
        alpha: f32,
        b: &DeviceDenseView<'_, T>,
        beta: f32,
        c: &mut DeviceDenseViewMut<'_, U>,
    ) -> Result<(), GpuError> {
        let maps = self.maps_for(b)?;
        let [map_v, map_b] = maps.addresses();
        let lists = Lists {
            groups: self.groups.ptr(),
            tiles: self.tiles.ptr(),
            tile_offsets: self.tile_offsets.ptr(),
            splits: self.splits.ptr(),
            rows: self.rows.as_ref().map(DeviceBuffer::ptr),
        };
        let scratch = match &self.combine {
            Some(_) => Some(Scratch::new(self.kernel.device(), stream, self.plan.workspace_bytes())?),
            None => None,
        };
        let workspace = scratch.as_ref().map_or(DevicePtr(0), Scratch::ptr);
        let arguments = self.plan.arguments(lists, workspace, (alpha, beta), b.placed(), c.placed());
        let output = arguments.output;
        let params = (
            map_v,
            map_b,
            DevicePtr::of(arguments.groups.as_ptr()),
            DevicePtr::of(arguments.tiles.as_ptr()),
            DevicePtr::of(arguments.tile_offsets.as_ptr()),
            workspace,
            DevicePtr::of(output.c),
            output.leading_dimension,
            output.num_rows,
            output.num_cols,
            output.alpha,
            output.beta,
            output.kind,
            DevicePtr::of(output.row_order.as_ptr()),
            arguments.policy_v.0,
            DevicePtr::of(arguments.b),
            arguments.b_leading_dimension,
            arguments.num_inner,
        );
        // SAFETY: the parameters are those that `Arguments` lists, in its order; the lists and the maps live as long as
        // `self`, which the caller keeps until the launch is done; the rest is the caller's promise.
        unsafe { self.kernel.launch(self.plan.grid(), stream, params) }?;
        let Some(combine) = &self.combine else { return Ok(()) };
        let sum = self.plan.combine_arguments(lists, workspace, &arguments);
        let params = (
            lists.splits,
            workspace,
            sum.window_rows,
            sum.tile_n,
            DevicePtr::of(output.c),
            output.leading_dimension,
            output.num_rows,
            output.num_cols,
            output.alpha,
            output.beta,
            output.kind,
            DevicePtr::of(output.row_order.as_ptr()),
        );
        // SAFETY: the parameters are those that `CombineArguments` lists, in its order; the workspace is freed on the same
        // stream, after this launch; the rest as above.
        unsafe { combine.launch(self.plan.combine_grid(), stream, params) }
    }

    /// The maps of A and of this B.
    fn maps_for(&self, b: &DeviceDenseView<'_, T>) -> Result<Arc<TensorMaps<2>>, GpuError> {
        self.maps.get_or((b.ptr(), b.leading_dimension()), || {
            let device = self.kernel.device();
            let values = self.values.ptr();
            let maps = [
                TensorMap::new(device, &self.plan.v_map::<T>(values))?,
                TensorMap::new(device, &self.plan.b_map::<T>(values, b.placed()))?,
            ];
            Ok(Arc::new(TensorMaps::upload(device, &maps)?))
        })
    }
}

impl<T: Element> fmt::Debug for WcsrPrepared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WcsrPrepared").field("plan", &self.plan.to_string()).finish_non_exhaustive()
    }
}
