//! A plan on a device: weights, lists and tensor maps, launched many times.

use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;

use super::BitmapPlan;
use super::launch::Lists;
use crate::element::Element;
use crate::error::Error;
use crate::formats::Bitmap;
use crate::gpu::{
    AlignedCopy, Device, DeviceBuffer, DeviceDenseView, DeviceDenseViewMut, DevicePtr, GpuError, Kept, Kernel, Stream,
    TensorMap, TensorMaps,
};
#[cfg(doc)]
use crate::ops::linear::LinearError;
use crate::ops::linear::Operands;

/// Weights as a bitmap on a device, with all that their products need. Send and Sync: threads and streams may launch it at once.
pub struct BitmapPrepared<T> {
    plan: BitmapPlan,
    kernel: Kernel,
    masks: DeviceBuffer<u32>,
    values: DeviceBuffer<T>,
    pieces: DeviceBuffer<[u32; 8]>,
    streams: DeviceBuffer<[u32; 4]>,
    starts: DeviceBuffer<u32>,
    realignments: DeviceBuffer<u32>,
    /// The map of X, by address and leading dimension.
    maps: Kept<(DevicePtr, usize), TensorMaps<1>>,
    /// Parts and counters, by stream: launches on one stream follow one another.
    parts: Kept<usize, Parts>,
    element: PhantomData<T>,
}

/// Where the parts of sums meet.
struct Parts {
    workspace: DeviceBuffer<f32>,
    /// Zeros, again after each launch.
    counters: DeviceBuffer<u32>,
}

impl BitmapPlan {
    /// Puts `weights` and the plan's lists into device memory.
    ///
    /// # Errors
    /// [`LinearError::Weights`] where `weights` are not what was planned for; [`GpuError::OutOfMemory`] with the bytes wanted
    /// and free; any other [`GpuError`] of the driver.
    pub fn prepare<T: Element>(&self, device: &Device, weights: &Bitmap<T>) -> Result<BitmapPrepared<T>, Error> {
        self.check_weights(weights)?;
        let streams = self.streams(weights);
        Ok(BitmapPrepared {
            plan: self.clone(),
            kernel: device.kernel(self.configuration.spec)?,
            masks: DeviceBuffer::from_slice(device, weights.masks())?,
            values: DeviceBuffer::from_slice(device, weights.values())?,
            pieces: DeviceBuffer::from_slice(device, &self.pieces.to_words())?,
            streams: DeviceBuffer::from_slice(device, &streams.streams)?,
            starts: DeviceBuffer::from_slice(device, &streams.starts)?,
            realignments: DeviceBuffer::from_slice(device, &weights.strips().realignments)?,
            maps: Kept::default(),
            parts: Kept::default(),
            element: PhantomData,
        })
    }
}

impl<T: Element> BitmapPrepared<T> {
    /// The plan.
    pub fn plan(&self) -> &BitmapPlan {
        &self.plan
    }

    /// The loaded kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Device memory held, in bytes; each stream that launches takes [`BitmapPlan::workspace_bytes`] and some counters beside it.
    pub fn num_bytes(&self) -> usize {
        let lists = self.pieces.num_bytes() + self.realignments.num_bytes();
        let streams = self.streams.num_bytes() + self.starts.num_bytes();
        self.masks.num_bytes() + self.values.num_bytes() + lists + streams
    }

    /// Launches Y = X W^T + bias on `stream` and returns without waiting.
    ///
    /// X and Y may lie anywhere, with any leading dimension. Where X is not aligned as tensor copies demand (16 bytes for its base and its
    /// rows), an aligned copy of it is made first, on the same stream.
    ///
    /// It may be captured in a graph, with what the graph needs alive for as long as it is replayed: see [graphs](crate::gpu#graphs).
    /// Such a graph adds up parts where launches on the stream that captured it do: it must not run beside those.
    ///
    /// # Errors
    /// [`LinearError`] where X, the bias or Y is not what was planned for; a [`GpuError`] where the driver refuses.
    ///
    /// # Safety
    /// X, the bias and Y stay allocated, X and the bias are not written and Y is not used, until the launch is done; they are in the
    /// memory of the device that this was prepared on, and `stream` is one of its streams.
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        x: DeviceDenseView<'_, T>,
        bias: Option<&DeviceBuffer<T>>,
        y: &mut DeviceDenseViewMut<'_, T>,
    ) -> Result<(), Error> {
        let bias = bias.map(|bias| (bias.ptr(), bias.len()));
        let operands = Operands { x: x.placed(), bias, y: y.placed() };
        operands.check(&self.plan.problem)?;
        if self.plan.is_empty() {
            return Ok(());
        }
        if operands.reads_in_place() {
            // SAFETY: the caller's promise.
            return Ok(unsafe { self.launch_aligned(stream, &operands) }?);
        }
        let copy = AlignedCopy::new(self.kernel.device(), stream, &x, crate::ops::dense_launch::LINE_BYTES)?;
        // SAFETY: the copy is freed on the same stream, after the launch.
        Ok(unsafe { self.launch_aligned(stream, &Operands { x: copy.view().placed(), ..operands }) }?)
    }

    /// # Safety
    /// As [`launch`](Self::launch).
    unsafe fn launch_aligned(&self, stream: &Stream, operands: &Operands) -> Result<(), GpuError> {
        let lists = self.lists();
        let maps = self.maps_for(operands, lists)?;
        let parts = self.parts_for(stream)?;
        let [map_x] = maps.addresses();
        let arguments = self.plan.arguments(lists, operands, parts.workspace.ptr(), parts.counters.ptr());
        let output = arguments.output;
        let params = (
            map_x,
            lists.masks,
            lists.values,
            lists.pieces,
            arguments.work.stride,
            lists.streams,
            lists.starts,
            lists.realignments,
            arguments.units,
            arguments.policy.0,
            DevicePtr::of(output.y),
            output.leading_dimension,
            output.num_outputs,
            output.num_tokens,
            DevicePtr::of(output.bias.as_ptr()),
            parts.workspace.ptr(),
            parts.counters.ptr(),
            output.slots,
            output.row_blocks,
        );
        // SAFETY: the parameters are those that `Arguments` lists, in its order; lists, maps and parts live as long as `self`, which
        // the caller keeps until the launch is done; the rest is the caller's promise.
        unsafe { self.kernel.launch(self.plan.grid(), stream, params) }
    }

    fn lists(&self) -> Lists {
        Lists {
            masks: self.masks.ptr(),
            values: self.values.ptr(),
            pieces: self.pieces.ptr(),
            streams: self.streams.ptr(),
            starts: self.starts.ptr(),
            realignments: self.realignments.ptr(),
        }
    }

    /// The map of this X.
    fn maps_for(&self, operands: &Operands, lists: Lists) -> Result<Arc<TensorMaps<1>>, GpuError> {
        self.maps.get_or((operands.x.address, operands.x.shape.leading_dimension), || {
            let device = self.kernel.device();
            let map = TensorMap::new(device, &self.plan.x_map(operands, lists))?;
            Ok(Arc::new(TensorMaps::upload(device, &[map])?))
        })
    }

    /// The parts of launches on `stream`.
    fn parts_for(&self, stream: &Stream) -> Result<Arc<Parts>, GpuError> {
        self.parts.get_or(stream.as_inner().addr(), || {
            let device = self.kernel.device();
            let floats = self.plan.workspace_bytes() / size_of::<f32>();
            Ok(Arc::new(Parts {
                workspace: DeviceBuffer::filled(device, floats, 0)?,
                counters: DeviceBuffer::filled(device, self.plan.num_counters(), 0)?,
            }))
        })
    }
}

impl<T: Element> fmt::Debug for BitmapPrepared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BitmapPrepared").field("plan", &self.plan.to_string()).finish_non_exhaustive()
    }
}
