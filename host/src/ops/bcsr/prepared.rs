//! A plan on a device: values, lists and tensor maps, launched many times.

use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;

use kernels_gpu::bcsr::Arguments;

use super::BcsrPlan;
use super::launch::Lists;
use crate::element::Element;
use crate::error::Error;
use crate::formats::BcsrView;
use crate::gpu::{
    AlignedCopy, Device, DeviceBuffer, DeviceDenseView, DeviceDenseViewMut, DevicePtr, GpuError, Kept, Kernel, Stream,
    TensorMap, TensorMaps,
};
use crate::ops::Placed;
#[cfg(doc)]
use crate::ops::PlanError;
use crate::ops::dense_launch::{LINE_BYTES, is_aligned};

/// A BCSR matrix on a device, with all that its products need. Send and Sync: threads and streams may launch it at once.
pub struct BcsrPrepared<T> {
    pub(super) plan: BcsrPlan,
    pub(super) kernel: Kernel,
    pub(super) values: DeviceBuffer<T>,
    blocks: DeviceBuffer<[u32; 2]>,
    tiles: DeviceBuffer<[u32; 4]>,
    tile_offsets: DeviceBuffer<u32>,
    /// The maps of A and B, by address and leading dimension of B.
    maps: Kept<(DevicePtr, usize), TensorMaps<2>>,
    element: PhantomData<T>,
}

impl BcsrPlan {
    /// Puts `a` and the plan's lists into device memory.
    ///
    /// # Errors
    /// [`PlanError::NotPlanned`] where `a` is not what was planned for; [`GpuError::OutOfMemory`] with the bytes wanted
    /// and free; any other [`GpuError`] of the driver.
    pub fn prepare<T: Element>(&self, device: &Device, a: &BcsrView<'_, T>) -> Result<BcsrPrepared<T>, Error> {
        self.check_sparse(a)?;
        let kernel = device.kernel(self.configuration.spec)?;
        Ok(BcsrPrepared {
            plan: self.clone(),
            kernel,
            values: DeviceBuffer::from_slice(device, &self.values(a))?,
            blocks: DeviceBuffer::from_slice(device, &self.blocks)?,
            tiles: DeviceBuffer::from_slice(device, &self.tiles())?,
            tile_offsets: DeviceBuffer::from_slice(device, &self.schedule.offsets)?,
            maps: Kept::default(),
            element: PhantomData,
        })
    }
}

impl<T: Element> BcsrPrepared<T> {
    /// The plan.
    pub fn plan(&self) -> &BcsrPlan {
        &self.plan
    }

    /// The loaded kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Device memory held, in bytes.
    pub fn num_bytes(&self) -> usize {
        self.values.num_bytes() + self.blocks.num_bytes() + self.tiles.num_bytes() + self.tile_offsets.num_bytes()
    }

    /// Launches C = alpha A B + beta C on `stream` and returns without waiting. With `beta` 0, C is not read; with
    /// `alpha` 0, A and B are not.
    ///
    /// B and C may lie anywhere, with any leading dimension. Where B is not aligned as tensor copies demand (16 bytes for
    /// its base and its lines), an aligned copy of it is made first, on the same stream.
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
        self.launch_by(stream, (alpha, beta), b, c, |grid, map_a, map_b, arguments, _| {
            let output = arguments.output;
            let params = (
                map_a,
                map_b,
                DevicePtr::of(arguments.blocks.as_ptr()),
                DevicePtr::of(arguments.tiles.as_ptr()),
                DevicePtr::of(arguments.tile_offsets.as_ptr()),
                DevicePtr::of(output.c),
                output.leading_dimension,
                output.num_rows,
                output.num_cols,
                output.alpha,
                output.beta,
                output.kind,
                arguments.policy_a.0,
                arguments.policy_b.0,
            );
            // SAFETY: the parameters are those that `Arguments` lists, in its order; the lists and the maps live as long as
            // `self`, which the caller keeps until the launch is done; the rest is the caller's promise.
            unsafe { self.kernel.launch(grid, stream, params) }
        })
    }

    /// As [`launch`](Self::launch), by whatever `call` launches: with that grid, the maps of A and B, the arguments, and B.
    pub(super) fn launch_by<U: Element>(
        &self,
        stream: &Stream,
        (alpha, beta): (f32, f32),
        b: DeviceDenseView<'_, T>,
        c: &mut DeviceDenseViewMut<'_, U>,
        call: impl FnOnce(u32, DevicePtr, DevicePtr, &Arguments, Placed) -> Result<(), GpuError>,
    ) -> Result<(), Error> {
        self.plan.problem.factors().check_planned(b.placed(), c.placed())?;
        if self.plan.num_tiles() == 0 {
            return Ok(());
        }
        let with_aligned = |b: &DeviceDenseView<'_, T>| {
            let maps = self.maps_for(b)?;
            let [map_a, map_b] = maps.addresses();
            let (blocks, tiles, tile_offsets) = (self.blocks.ptr(), self.tiles.ptr(), self.tile_offsets.ptr());
            let arguments = self.plan.arguments(Lists { blocks, tiles, tile_offsets }, alpha, beta, c.placed());
            call(self.plan.grid(), map_a, map_b, &arguments, b.placed())
        };
        if is_aligned(b.placed()) {
            return Ok(with_aligned(&b)?);
        }
        // It is freed on the same stream, after the launch.
        let copy = AlignedCopy::new(self.kernel.device(), stream, &b, LINE_BYTES)?;
        Ok(with_aligned(&copy.view())?)
    }

    /// The maps of A and of this B.
    fn maps_for(&self, b: &DeviceDenseView<'_, T>) -> Result<Arc<TensorMaps<2>>, GpuError> {
        self.maps.get_or((b.ptr(), b.leading_dimension()), || {
            let device = self.kernel.device();
            let values = self.values.ptr();
            let maps = [
                TensorMap::new(device, &self.plan.a_map::<T>(values))?,
                TensorMap::new(device, &self.plan.b_map::<T>(values, b.placed()))?,
            ];
            Ok(Arc::new(TensorMaps::upload(device, &maps)?))
        })
    }
}

impl<T: Element> fmt::Debug for BcsrPrepared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BcsrPrepared").field("plan", &self.plan.to_string()).finish_non_exhaustive()
    }
}
