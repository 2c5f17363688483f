//! Memory for the time of a launch.

use cuda_loader::driver;
use cust::stream::Stream;

use super::error::{GpuError, check};
use crate::tensor_map::DevicePtr;

/// Device memory that is allocated and (when dropped) freed in the order of one stream: nothing waits.
pub(crate) struct Scratch<'s> {
    ptr: DevicePtr,
    stream: &'s Stream,
}

impl<'s> Scratch<'s> {
    /// So many bytes, at least one, for what is put on `stream` from now until this is dropped. The stream's context must be
    /// current. What the memory holds is undefined.
    pub(crate) fn new(stream: &'s Stream, bytes: usize) -> Result<Self, GpuError> {
        let mut ptr = 0;
        // SAFETY: the out-pointer is valid; the stream is alive.
        check("cuMemAllocAsync", unsafe { driver::cuMemAllocAsync(&mut ptr, bytes, stream.as_inner()) })?;
        Ok(Self { ptr: DevicePtr(ptr), stream })
    }

    /// Its address.
    pub(crate) fn ptr(&self) -> DevicePtr {
        self.ptr
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        // A failure here is a fault of an earlier launch, which the next call reports.
        // SAFETY: the memory is this object's; what was put on the stream before still finds it.
        let _ = unsafe { driver::cuMemFreeAsync(self.ptr.0, self.stream.as_inner()) };
    }
}
