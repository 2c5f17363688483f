//! A plan on a device: weights, lists and tensor maps, launched many times.

use core::fmt;
use core::marker::PhantomData;

use super::BitmapPlan;
use super::launch::Lists;
use crate::element::Element;
use crate::error::Error;
use crate::formats::Bitmap;
use crate::gpu::{Device, DeviceBuffer, DeviceDenseView, DeviceDenseViewMut, DevicePtr, GpuError, Kernel, Stream};
#[cfg(doc)]
use crate::ops::linear::LinearError;
use crate::ops::linear::{Launcher, Operands, Parts};

/// Weights as a bitmap on a device, with all that their products need. Send and Sync: threads and streams may launch it at once.
pub struct BitmapPrepared<T> {
    plan: BitmapPlan,
    launcher: Launcher,
    masks: DeviceBuffer<u32>,
    values: DeviceBuffer<T>,
    pieces: DeviceBuffer<[u32; 8]>,
    streams: DeviceBuffer<[u32; 4]>,
    starts: DeviceBuffer<u32>,
    realignments: DeviceBuffer<u32>,
    element: PhantomData<T>,
}

impl BitmapPlan {
    /// Puts `weights` and the plan's lists into device memory.
    ///
    /// # Errors
    /// [`LinearError::Weights`] where `weights` are not what was planned for; [`GpuError::OutOfMemory`] with the bytes wanted
    /// and free; any other [`GpuError`] of the driver.
    pub fn prepare<T: Element>(&self, device: &Device, weights: &Bitmap<T>) -> Result<BitmapPrepared<T>, Error> {
        self.check_weights::<T>(weights.num_rows(), weights.num_cols())?;
        let streams = self.streams(weights);
        Ok(BitmapPrepared {
            plan: self.clone(),
            launcher: Launcher::new(device, self)?,
            masks: DeviceBuffer::from_slice(device, weights.masks())?,
            values: DeviceBuffer::from_slice(device, weights.values())?,
            pieces: DeviceBuffer::from_slice(device, &self.pieces.to_words())?,
            streams: DeviceBuffer::from_slice(device, &streams.streams)?,
            starts: DeviceBuffer::from_slice(device, &streams.starts)?,
            realignments: DeviceBuffer::from_slice(device, &weights.strips().realignments)?,
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
        &self.launcher.kernel
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
        let lists = self.lists();
        let bias = bias.map(|bias| (bias.ptr(), bias.len()));
        let operands = Operands { x: x.placed(), bias, y: y.placed() };
        // With K = 0 all values are padding, which is zeros.
        self.launcher.launch(&self.plan, stream, lists.values, x, operands, |operands, map_x, parts| {
            // SAFETY: the operands are the plan's; the rest is the caller's promise.
            unsafe { self.issue(stream, lists, operands, map_x, parts) }
        })
    }

    /// # Safety
    /// As [`launch`](Self::launch), with operands that were checked and a map of this X.
    unsafe fn issue(
        &self,
        stream: &Stream,
        lists: Lists,
        operands: &Operands,
        map_x: DevicePtr,
        parts: &Parts,
    ) -> Result<(), GpuError> {
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
        unsafe { self.launcher.kernel.launch(self.plan.grid(), stream, params) }
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
}

impl<T: Element> fmt::Debug for BitmapPrepared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BitmapPrepared").field("plan", &self.plan.to_string()).finish_non_exhaustive()
    }
}
