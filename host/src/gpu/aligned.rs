//! Aligned copies of matrices that tensor copies cannot read where they are, or not far enough.

use core::marker::PhantomData;

use cuda_loader::driver;
use cuda_loader::types::{CUDA_MEMCPY2D, CUmemorytype};
use cust::stream::Stream;

use super::copy::Lines;
use super::device::Device;
use super::error::{GpuError, check};
use super::scratch::Scratch;
use super::view::DeviceDenseView;
use crate::element::Element;
use crate::formats::Shape;

/// A copy of a matrix whose base and lines are aligned. Allocated, filled and (when dropped) freed in the
/// order of one stream: nothing waits.
pub(crate) struct AlignedCopy<'s, T> {
    memory: Scratch<'s>,
    shape: Shape,
    element: PhantomData<T>,
}

impl<'s, T: Element> AlignedCopy<'s, T> {
    /// Copies `matrix`, on `stream`, a stream of `device`, to lines of a multiple of `line_bytes` bytes, up to 256, all of which
    /// are allocated; what is behind the end of a line of the matrix is undefined.
    pub(crate) fn new(
        device: &Device,
        stream: &'s Stream,
        matrix: &DeviceDenseView<'_, T>,
        line_bytes: usize,
    ) -> Result<Self, GpuError> {
        let leading_dimension = matrix.line_len().next_multiple_of(line_bytes / size_of::<T>());
        let shape = Shape { leading_dimension, ..matrix.shape };
        let pitch = leading_dimension * size_of::<T>();
        let bytes = (pitch * shape.num_lines()).max(line_bytes);
        let copy = Self { memory: Scratch::new(device, stream, bytes)?, shape, element: PhantomData };
        if matrix.line_len() == 0 || shape.num_lines() == 0 {
            return Ok(copy);
        }
        let lines = Lines {
            num_lines: shape.num_lines(),
            line_bytes: matrix.line_len() * size_of::<T>(),
            device_pitch: pitch,
            host_pitch: 0,
        };
        let description = CUDA_MEMCPY2D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcDevice: matrix.ptr().0,
            srcPitch: matrix.leading_dimension() * size_of::<T>(),
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstDevice: copy.memory.ptr().0,
            dstPitch: pitch,
            ..lines.no_copy()
        };
        // SAFETY: the matrix has these lines (its view says so), and so has the allocation.
        check("cuMemcpy2DAsync_v2", unsafe { driver::cuMemcpy2DAsync_v2(&description, stream.as_inner()) })?;
        Ok(copy)
    }

    /// The copy.
    pub(crate) fn view(&self) -> DeviceDenseView<'_, T> {
        DeviceDenseView::of(self.memory.ptr(), self.shape)
    }
}
