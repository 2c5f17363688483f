//! Views of dense matrices in device memory.

use core::fmt;
use core::marker::PhantomData;

use super::buffer::{DeviceBuffer, DevicePtr};
use super::error::GpuError;
use crate::element::Element;
use crate::formats::Layout;

/// Rows, columns, layout and leading dimension: where the elements of a matrix lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) num_rows: usize,
    pub(super) num_cols: usize,
    pub(super) leading_dimension: usize,
    pub(super) layout: Layout,
}

impl Shape {
    /// The elements of one row (row-major) or column (column-major).
    pub(super) fn line_len(self) -> usize {
        match self.layout {
            Layout::RowMajor => self.num_cols,
            Layout::ColumnMajor => self.num_rows,
        }
    }

    /// The number of rows (row-major) or columns (column-major).
    pub(super) fn num_lines(self) -> usize {
        match self.layout {
            Layout::RowMajor => self.num_rows,
            Layout::ColumnMajor => self.num_cols,
        }
    }

    /// The elements from the first to the last, with what lies between; `None` where no address space has so many.
    pub(super) fn reach(self) -> Option<usize> {
        match (self.line_len(), self.num_lines()) {
            (0, _) | (_, 0) => Some(0),
            (line_len, num_lines) => self.leading_dimension.checked_mul(num_lines - 1)?.checked_add(line_len),
        }
    }

    /// Refuses a leading dimension in which rows would overlap.
    pub(super) fn checked(self) -> Result<Self, GpuError> {
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

pub(super) use shape_accessors;

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
        let shape = Shape { num_rows, num_cols, leading_dimension, layout }.checked()?;
        match shape.reach() {
            Some(needed) if needed <= buffer.len() => Ok(Self::of(buffer.ptr(), shape)),
            needed => Err(GpuError::TooShort {
                found: buffer.len() as u64,
                needed: needed.map_or(u64::MAX, |needed| needed as u64),
            }),
        }
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
        Ok(Self::of(ptr, shape))
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

    #[test]
    fn a_matrix_reaches_to_the_end_of_its_last_line() {
        let shape = Shape { num_rows: 3, num_cols: 5, leading_dimension: 8, layout: Layout::RowMajor };
        assert_eq!(shape.reach(), Some(21));
        assert_eq!(Shape { num_rows: 0, ..shape }.reach(), Some(0));
        assert_eq!(Shape { num_cols: 0, ..shape }.reach(), Some(0));
        assert_eq!(Shape { leading_dimension: usize::MAX, ..shape }.reach(), None);
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
