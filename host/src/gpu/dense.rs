//! Dense matrices in device memory, and views of them.

use core::ffi::c_void;
use core::fmt;
use core::marker::PhantomData;
use core::ptr;

use cuda_loader::driver;
use cuda_loader::types::{CUDA_MEMCPY2D, CUmemorytype};

use super::buffer::{DeviceBuffer, DevicePtr, wait_for_default_stream};
use super::device::Device;
use super::error::{GpuError, check};
use crate::element::Element;
use crate::formats::{DenseView, DenseViewMut, Layout};

/// The tensor memory accelerator wants the distance between rows to be a multiple of this.
const ROW_ALIGNMENT_BYTES: usize = 16;

/// The largest distance between rows, in bytes, that one two-dimensional copy can have (`CU_DEVICE_ATTRIBUTE_MAX_PITCH`).
const MAX_PITCH_BYTES: usize = i32::MAX as usize;

/// Rows, columns, layout and leading dimension: where the elements of a matrix lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    num_rows: usize,
    num_cols: usize,
    leading_dimension: usize,
    layout: Layout,
}

impl Shape {
    /// The elements of one row (row-major) or column (column-major).
    fn line_len(self) -> usize {
        match self.layout {
            Layout::RowMajor => self.num_cols,
            Layout::ColumnMajor => self.num_rows,
        }
    }

    /// The number of rows (row-major) or columns (column-major).
    fn num_lines(self) -> usize {
        match self.layout {
            Layout::RowMajor => self.num_rows,
            Layout::ColumnMajor => self.num_cols,
        }
    }

    /// Refuses a leading dimension in which rows would overlap.
    fn checked(self) -> Result<Self, GpuError> {
        if self.leading_dimension >= self.line_len() {
            return Ok(self);
        }
        Err(GpuError::LeadingDimension { found: self.leading_dimension as u64, least: self.line_len() as u64 })
    }
}

macro_rules! shape_accessors {
    () => {
        /// The number of rows.
        pub fn num_rows(&self) -> usize {
            self.shape.num_rows
        }

        /// The number of columns.
        pub fn num_cols(&self) -> usize {
            self.shape.num_cols
        }

        /// Elements from one row (row-major) or column (column-major) to the next.
        pub fn leading_dimension(&self) -> usize {
            self.shape.leading_dimension
        }

        /// Row-major or column-major.
        pub fn layout(&self) -> Layout {
            self.shape.layout
        }

        /// The elements of one row (row-major) or column (column-major), which are contiguous.
        pub fn line_len(&self) -> usize {
            self.shape.line_len()
        }

        /// The number of rows (row-major) or columns (column-major).
        pub fn num_lines(&self) -> usize {
            self.shape.num_lines()
        }
    };
}

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
        let host = Shape {
            num_rows: matrix.num_rows(),
            num_cols: matrix.num_cols(),
            leading_dimension: matrix.leading_dimension(),
            layout: matrix.layout(),
        };
        self.copy(Host::Read(matrix.data()), host)
    }

    /// Copies all elements to the host. Elements of the slice that lie between the view's rows stay as they are.
    ///
    /// # Errors
    /// As [`DeviceDense::copy_from_host`].
    pub fn to_host(&self, matrix: &mut DenseViewMut<'_, T>) -> Result<(), GpuError> {
        let host = Shape {
            num_rows: matrix.num_rows(),
            num_cols: matrix.num_cols(),
            leading_dimension: matrix.leading_dimension(),
            layout: matrix.layout(),
        };
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
        DeviceDenseView { ptr: self.buffer.ptr(), shape: self.shape, memory: PhantomData }
    }

    /// The matrix, to write.
    pub fn view_mut(&mut self) -> DeviceDenseViewMut<'_, T> {
        DeviceDenseViewMut { ptr: self.buffer.ptr(), shape: self.shape, memory: PhantomData }
    }

    /// The size in bytes, padding included.
    pub fn num_bytes(&self) -> usize {
        self.buffer.num_bytes()
    }

    /// The device that the memory is of.
    pub fn device(&self) -> &Device {
        self.buffer.device()
    }

    shape_accessors!();

    /// One copy between the matrix and a slice of the host in which the rows lie as `host` says.
    fn copy(&self, slice: Host<'_, T>, host: Shape) -> Result<(), GpuError> {
        let dims = |shape: Shape| [shape.num_rows as u64, shape.num_cols as u64];
        if dims(self.shape) != dims(host) {
            return Err(GpuError::Shape { device: dims(self.shape), host: dims(host) });
        }
        // A vector is the same in both layouts, but its leading dimension is not.
        if self.shape.layout != host.layout {
            return Err(GpuError::Layout);
        }
        let (row_len, num_rows) = (host.line_len(), host.num_lines());
        if row_len == 0 || num_rows == 0 {
            return Ok(());
        }
        let host = host.checked()?;
        let reach = host.leading_dimension.checked_mul(num_rows - 1).and_then(|start| start.checked_add(row_len));
        match reach {
            Some(reach) if reach <= slice.len() => {}
            reach => {
                let device = reach.map_or(u64::MAX, |reach| reach as u64);
                return Err(GpuError::Length { device, host: slice.len() as u64 });
            }
        }
        self.device().make_current()?;
        let size = size_of::<T>();
        let rows = Rows {
            num_rows,
            row_bytes: row_len * size,
            device_pitch: self.shape.leading_dimension * size,
            host_pitch: host.leading_dimension * size,
        };
        // SAFETY: the current context is the device's. The matrix has `num_rows` rows of that many bytes at its own
        // distance, and so has the slice at the host's, as `reach` has just shown.
        unsafe { rows.copy(self.buffer.ptr(), slice) }
    }
}

/// The host's side of a copy.
enum Host<'a, T> {
    /// To the device.
    Read(&'a [T]),
    /// From the device.
    Write(&'a mut [T]),
}

impl<T> Host<'_, T> {
    fn len(&self) -> usize {
        match self {
            Self::Read(slice) => slice.len(),
            Self::Write(slice) => slice.len(),
        }
    }
}

/// Rows of equal length at one distance on the device and another on the host, all in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rows {
    num_rows: usize,
    row_bytes: usize,
    device_pitch: usize,
    host_pitch: usize,
}

impl Rows {
    /// Copies all rows, and waits until they have arrived.
    ///
    /// # Safety
    /// The context of `device` is current; there are these rows on both sides.
    unsafe fn copy<T>(self, device: DevicePtr, mut host: Host<'_, T>) -> Result<(), GpuError> {
        for piece in self.pieces() {
            // SAFETY: a piece is some of the rows.
            unsafe { piece.copy_once(device, &mut host) }?;
        }
        match host {
            Host::Read(_) => wait_for_default_stream(),
            // The driver returns when the bytes have arrived.
            Host::Write(_) => Ok(()),
        }
    }

    /// What single calls of the driver can copy, in order: everything, unless the rows lie too far apart.
    fn pieces(self) -> impl Iterator<Item = Piece> {
        let Self { num_rows, row_bytes, device_pitch, host_pitch } = self;
        let (count, rows) = if device_pitch == row_bytes && host_pitch == row_bytes {
            (1, Self { num_rows: 1, row_bytes: row_bytes * num_rows, ..self })
        } else if device_pitch.max(host_pitch) <= MAX_PITCH_BYTES {
            (1, self)
        } else {
            (num_rows, Self { num_rows: 1, ..self })
        };
        (0..count).map(move |index| Piece {
            device_offset: index * device_pitch,
            host_offset: index * host_pitch,
            rows,
        })
    }
}

/// Rows that one call copies, and where they start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    device_offset: usize,
    host_offset: usize,
    rows: Rows,
}

impl Piece {
    /// # Safety
    /// As for [`Rows::copy`].
    unsafe fn copy_once<T>(self, device: DevicePtr, host: &mut Host<'_, T>) -> Result<(), GpuError> {
        let Self { device_offset, host_offset, rows } = self;
        let device = device.byte_add(device_offset as u64).0;
        match host {
            Host::Read(slice) if rows.num_rows == 1 => {
                let from = slice.as_ptr().cast::<c_void>().wrapping_byte_add(host_offset);
                // SAFETY: the row is there on both sides, and the context is current.
                check("cuMemcpyHtoD_v2", unsafe { driver::cuMemcpyHtoD_v2(device, from, rows.row_bytes) })
            }
            Host::Write(slice) if rows.num_rows == 1 => {
                let to = slice.as_mut_ptr().cast::<c_void>().wrapping_byte_add(host_offset);
                // SAFETY: as above; every bit pattern is an element.
                check("cuMemcpyDtoH_v2", unsafe { driver::cuMemcpyDtoH_v2(to, device, rows.row_bytes) })
            }
            Host::Read(slice) => {
                let copy = CUDA_MEMCPY2D {
                    srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
                    srcHost: slice.as_ptr().cast::<c_void>().wrapping_byte_add(host_offset),
                    srcPitch: rows.host_pitch,
                    dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                    dstDevice: device,
                    dstPitch: rows.device_pitch,
                    ..rows.no_copy()
                };
                // SAFETY: the rows are there on both sides, at these distances, and the context is current.
                check("cuMemcpy2D_v2", unsafe { driver::cuMemcpy2D_v2(&copy) })
            }
            Host::Write(slice) => {
                let copy = CUDA_MEMCPY2D {
                    srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                    srcDevice: device,
                    srcPitch: rows.device_pitch,
                    dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
                    dstHost: slice.as_mut_ptr().cast::<c_void>().wrapping_byte_add(host_offset),
                    dstPitch: rows.host_pitch,
                    ..rows.no_copy()
                };
                // SAFETY: as above; every bit pattern is an element.
                check("cuMemcpy2D_v2", unsafe { driver::cuMemcpy2D_v2(&copy) })
            }
        }
    }
}

impl Rows {
    /// The driver's description of a copy of these rows, from nowhere to nowhere.
    fn no_copy(self) -> CUDA_MEMCPY2D {
        CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: ptr::null(),
            srcDevice: 0,
            srcArray: ptr::null_mut(),
            srcPitch: 0,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            dstHost: ptr::null_mut(),
            dstDevice: 0,
            dstArray: ptr::null_mut(),
            dstPitch: 0,
            WidthInBytes: self.row_bytes,
            Height: self.num_rows,
        }
    }
}

/// A dense matrix in device memory, to read: of this library, or the caller's own.
#[derive(Clone, Copy)]
pub struct DeviceDenseView<'a, T> {
    ptr: DevicePtr,
    shape: Shape,
    memory: PhantomData<&'a T>,
}

/// A dense matrix in device memory, to write: of this library, or the caller's own.
pub struct DeviceDenseViewMut<'a, T> {
    ptr: DevicePtr,
    shape: Shape,
    memory: PhantomData<&'a mut T>,
}

impl<T: Element> DeviceDenseView<'_, T> {
    /// A view of memory that something else owns. Rows (row-major) or columns (column-major) start `leading_dimension`
    /// elements apart. Kernels that use tensor maps want `ptr` and that distance in bytes to be multiples of 16.
    ///
    /// # Errors
    /// [`GpuError::LeadingDimension`] where rows would overlap.
    ///
    /// # Safety
    /// While the view lives, the memory is allocated on the device that it is used with, and nothing writes to it.
    pub unsafe fn from_raw_parts(
        ptr: DevicePtr,
        num_rows: usize,
        num_cols: usize,
        leading_dimension: usize,
        layout: Layout,
    ) -> Result<Self, GpuError> {
        let shape = Shape { num_rows, num_cols, leading_dimension, layout }.checked()?;
        Ok(Self { ptr, shape, memory: PhantomData })
    }
}

impl<T> DeviceDenseView<'_, T> {
    /// The address of element (0, 0).
    pub fn ptr(&self) -> DevicePtr {
        self.ptr
    }

    shape_accessors!();
}

impl<T: Element> DeviceDenseViewMut<'_, T> {
    /// A view of memory that something else owns, as [`DeviceDenseView::from_raw_parts`].
    ///
    /// # Errors
    /// [`GpuError::LeadingDimension`] where rows would overlap.
    ///
    /// # Safety
    /// While the view lives, the memory is allocated on the device that it is used with, and nothing else reads it or
    /// writes to it.
    pub unsafe fn from_raw_parts(
        ptr: DevicePtr,
        num_rows: usize,
        num_cols: usize,
        leading_dimension: usize,
        layout: Layout,
    ) -> Result<Self, GpuError> {
        let shape = Shape { num_rows, num_cols, leading_dimension, layout }.checked()?;
        Ok(Self { ptr, shape, memory: PhantomData })
    }
}

impl<T> DeviceDenseViewMut<'_, T> {
    /// The address of element (0, 0).
    pub fn ptr(&self) -> DevicePtr {
        self.ptr
    }

    /// The same matrix, to read.
    pub fn as_view(&self) -> DeviceDenseView<'_, T> {
        DeviceDenseView { ptr: self.ptr, shape: self.shape, memory: PhantomData }
    }

    shape_accessors!();
}

impl<T> fmt::Debug for DeviceDenseView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceDenseView").field("ptr", &self.ptr).field("shape", &self.shape).finish()
    }
}

impl<T> fmt::Debug for DeviceDenseViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceDenseViewMut").field("ptr", &self.ptr).field("shape", &self.shape).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: Rows = Rows { num_rows: 3, row_bytes: 10, device_pitch: 16, host_pitch: 10 };

    #[test]
    fn padded_rows_are_one_piece() {
        let pieces: Vec<_> = ROWS.pieces().collect();
        assert_eq!(pieces, [Piece { device_offset: 0, host_offset: 0, rows: ROWS }]);
    }

    #[test]
    fn rows_without_padding_are_one_long_row() {
        let dense = Rows { device_pitch: 10, ..ROWS };
        let pieces: Vec<_> = dense.pieces().collect();
        let row = Rows { num_rows: 1, row_bytes: 30, ..dense };
        assert_eq!(pieces, [Piece { device_offset: 0, host_offset: 0, rows: row }]);
    }

    #[test]
    fn rows_too_far_apart_for_the_driver_go_one_by_one() {
        let far = Rows { host_pitch: MAX_PITCH_BYTES + 1, ..ROWS };
        let offsets: Vec<_> = far.pieces().map(|piece| (piece.device_offset, piece.host_offset)).collect();
        assert_eq!(offsets, [(0, 0), (16, 1 << 31), (32, 2 << 31)]);
        assert!(far.pieces().all(|piece| piece.rows.num_rows == 1 && piece.rows.row_bytes == 10));
    }

    #[test]
    fn overlapping_rows_are_refused() {
        // SAFETY: the view is not used.
        let view = unsafe { DeviceDenseView::<f32>::from_raw_parts(DevicePtr(256), 4, 6, 5, Layout::RowMajor) };
        let error = view.expect_err("5 is less than 6 columns");
        assert_eq!(error.to_string(), "the leading dimension is 5, but must be 6 or more");
        // SAFETY: the view is not used.
        let view = unsafe { DeviceDenseView::<f32>::from_raw_parts(DevicePtr(256), 4, 6, 4, Layout::ColumnMajor) };
        assert!(view.is_ok());
    }
}
