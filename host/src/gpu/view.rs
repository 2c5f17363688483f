//! Views of dense matrices in device memory.

use core::fmt;
use core::marker::PhantomData;

use super::buffer::DeviceBuffer;
use super::error::GpuError;
use crate::element::Element;
use crate::formats::{Layout, Shape, shape_accessors};
use crate::ops::Placed;
use crate::tensor_map::DevicePtr;

/// The shape, where its rows do not overlap.
fn checked(shape: Shape) -> Result<Shape, GpuError> {
    if shape.leading_dimension >= shape.line_len() {
        return Ok(shape);
    }
    Err(GpuError::LeadingDimension { found: shape.leading_dimension as u64, least: shape.line_len() as u64 })
}

/// The shape, where besides `found` elements reach to its last one.
pub(super) fn checked_within(shape: Shape, found: usize) -> Result<Shape, GpuError> {
    match checked(shape)?.reach() {
        Some(needed) if needed <= found => Ok(shape),
        needed => {
            Err(GpuError::TooShort { found: found as u64, needed: needed.map_or(u64::MAX, |needed| needed as u64) })
        }
    }
}

/// The accessors of a matrix in device memory.
macro_rules! device_accessors {
    () => {
        shape_accessors!();

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

pub(super) use device_accessors;

/// A dense matrix in device memory, to read: of this library, or the caller's own.
#[derive(Clone, Copy)]
pub struct DeviceDenseView<'a, T> {
    ptr: DevicePtr,
    pub(super) shape: Shape,
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
        let shape = checked(Shape { num_rows, num_cols, leading_dimension, layout })?;
        Ok(Self::of(ptr, shape))
    }
}

impl<'a, T: Element> DeviceDenseView<'a, T> {
    /// The elements of a buffer as a matrix: its lines, rows or columns as `layout` says, start `leading_dimension`
    /// elements apart, the first at the buffer's start.
    ///
    /// # Errors
    /// [`GpuError::LeadingDimension`] where lines would overlap; [`GpuError::TooShort`] where the buffer ends before the
    /// last of them.
    pub fn of_buffer(
        buffer: &'a DeviceBuffer<T>,
        num_rows: usize,
        num_cols: usize,
        leading_dimension: usize,
        layout: Layout,
    ) -> Result<Self, GpuError> {
        let shape = checked_within(Shape { num_rows, num_cols, leading_dimension, layout }, buffer.len())?;
        Ok(Self::of(buffer.ptr(), shape))
    }
}

impl<T: Element> DeviceDenseView<'_, T> {
    /// Where it lies.
    pub(crate) fn placed(&self) -> Placed {
        Placed { address: self.ptr, shape: self.shape, dtype: T::DTYPE }
    }
}

impl<T> DeviceDenseView<'_, T> {
    pub(super) fn of(ptr: DevicePtr, shape: Shape) -> Self {
        Self { ptr, shape, memory: PhantomData }
    }

    /// The address of element (0, 0).
    pub fn ptr(&self) -> DevicePtr {
        self.ptr
    }

    device_accessors!();
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
        let shape = checked(Shape { num_rows, num_cols, leading_dimension, layout })?;
        Ok(Self::of(ptr, shape))
    }
}

impl<T: Element> DeviceDenseViewMut<'_, T> {
    /// Where it lies.
    pub(crate) fn placed(&self) -> Placed {
        Placed { address: self.ptr, shape: self.shape, dtype: T::DTYPE }
    }
}

impl<T> DeviceDenseViewMut<'_, T> {
    pub(super) fn of(ptr: DevicePtr, shape: Shape) -> Self {
        Self { ptr, shape, memory: PhantomData }
    }

    /// The address of element (0, 0).
    pub fn ptr(&self) -> DevicePtr {
        self.ptr
    }

    /// The same matrix, to read.
    pub fn as_view(&self) -> DeviceDenseView<'_, T> {
        DeviceDenseView::of(self.ptr, self.shape)
    }

    device_accessors!();
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
