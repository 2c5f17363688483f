//! Dense matrices in device memory.

use super::buffer::DeviceBuffer;
use super::copy::{Host, Lines};
use super::device::Device;
use super::error::GpuError;
use super::view::{DeviceDenseView, DeviceDenseViewMut, checked_within, device_accessors};
use crate::element::Element;
use crate::formats::{DenseView, DenseViewMut, Layout, Shape, shape_accessors};

/// The tensor memory accelerator wants the distance between rows to be a multiple of this.
const ROW_ALIGNMENT_BYTES: usize = 16;

/// A dense matrix in device memory, freed when dropped.
///
/// Its rows (row-major) or columns (column-major) are padded so that they start at multiples of 16 bytes, and the first
/// at a multiple of 256: a [`TensorMap`](super::TensorMap) can be made of any shape that is not empty. Nothing reads the
/// padding. Copies wait, as those of [`DeviceBuffer`] do.
#[derive(Debug)]
pub struct DeviceDense<T> {
    buffer: DeviceBuffer<T>,
    shape: Shape,
}

impl<T: Element> DeviceDense<T> {
    /// A matrix copied from the host.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`]; [`GpuError::Driver`] where the driver fails.
    pub fn from_host(device: &Device, matrix: DenseView<'_, T>) -> Result<Self, GpuError> {
        let mut on_device = Self::allocate(device, matrix.num_rows(), matrix.num_cols(), matrix.layout())?;
        on_device.copy_from_host(matrix)?;
        Ok(on_device)
    }

    /// A matrix of zeros.
    ///
    /// # Errors
    /// As [`DeviceDense::from_host`].
    pub fn zeros(device: &Device, num_rows: usize, num_cols: usize, layout: Layout) -> Result<Self, GpuError> {
        let mut matrix = Self::allocate(device, num_rows, num_cols, layout)?;
        matrix.fill_bytes(0)?;
        Ok(matrix)
    }

    fn allocate(device: &Device, num_rows: usize, num_cols: usize, layout: Layout) -> Result<Self, GpuError> {
        let mut shape = Shape { num_rows, num_cols, leading_dimension: 0, layout };
        let unit = ROW_ALIGNMENT_BYTES / size_of::<T>();
        // A length past the address space saturates, and the allocation refuses it.
        shape.leading_dimension = shape.line_len().max(1).div_ceil(unit).saturating_mul(unit);
        let len = match shape.line_len() {
            0 => 0,
            _ => shape.leading_dimension.saturating_mul(shape.num_lines()),
        };
        Ok(Self { buffer: DeviceBuffer::allocate(device, len)?, shape })
    }

    /// Replaces all elements by those of the host.
    ///
    /// # Errors
    /// [`GpuError::Shape`] or [`GpuError::Layout`] where the two differ; [`GpuError::Driver`] where the driver fails,
    /// also for the fault of an earlier launch.
    pub fn copy_from_host(&mut self, matrix: DenseView<'_, T>) -> Result<(), GpuError> {
        self.copy(Host::Read(matrix.data()), matrix.shape)
    }

    /// Copies all elements to the host. Elements of the slice that lie between the view's rows stay as they are.
    ///
    /// # Errors
    /// As [`DeviceDense::copy_from_host`].
    pub fn to_host(&self, matrix: &mut DenseViewMut<'_, T>) -> Result<(), GpuError> {
        let host = matrix.shape;
        self.copy(Host::Write(matrix.data_mut()), host)
    }

    /// Sets every byte, padding included: 0xFF makes every element a NaN.
    ///
    /// # Errors
    /// [`GpuError::Driver`] where the driver fails, also for the fault of an earlier launch.
    pub fn fill_bytes(&mut self, byte: u8) -> Result<(), GpuError> {
        self.buffer.fill_bytes(byte)
    }

    /// The matrix, to read.
    pub fn view(&self) -> DeviceDenseView<'_, T> {
        DeviceDenseView::of(self.buffer.ptr(), self.shape)
    }

    /// The matrix, to write.
    pub fn view_mut(&mut self) -> DeviceDenseViewMut<'_, T> {
        DeviceDenseViewMut::of(self.buffer.ptr(), self.shape)
    }

    /// The size in bytes, padding included.
    pub fn num_bytes(&self) -> usize {
        self.buffer.num_bytes()
    }

    /// The device that the memory is of.
    pub fn device(&self) -> &Device {
        self.buffer.device()
    }

    device_accessors!();

    /// One copy between the matrix and a slice of the host in which the lines lie as `host` says.
    fn copy(&self, slice: Host<'_, T>, host: Shape) -> Result<(), GpuError> {
        let dims = |shape: Shape| [shape.num_rows as u64, shape.num_cols as u64];
        if dims(self.shape) != dims(host) {
            return Err(GpuError::Shape { device: dims(self.shape), host: dims(host) });
        }
        // A vector is the same in both layouts, but its leading dimension is not.
        if self.shape.layout != host.layout {
            return Err(GpuError::Layout);
        }
        let (line_len, num_lines) = (host.line_len(), host.num_lines());
        if line_len == 0 || num_lines == 0 {
            return Ok(());
        }
        // The view keeps this, by its own account; the copy must not depend on it.
        checked_within(host, slice.len())?;
        self.device().make_current()?;
        let size = size_of::<T>();
        let lines = Lines {
            num_lines,
            line_bytes: line_len * size,
            device_pitch: self.shape.leading_dimension * size,
            host_pitch: host.leading_dimension * size,
        };
        // SAFETY: the current context is the device's. The matrix has `num_lines` lines of that many bytes at its own
        // distance, and so has the slice at the host's, which is long enough.
        unsafe { lines.copy(self.buffer.ptr(), slice) }
    }
}
