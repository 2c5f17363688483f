//! Views of tokens and heads in device memory.

use core::fmt;
use core::marker::PhantomData;

use super::buffer::DeviceBuffer;
use crate::element::Element;
use crate::formats::{FormatError, HeadsShape, HeadsStrides, heads_accessors};
use crate::ops::PlacedHeads;
use crate::tensor_map::DevicePtr;

/// Q, K or V in device memory, to read: of this library, or the caller's own. The host's is
/// [`HeadsView`](crate::formats::HeadsView).
#[derive(Clone, Copy)]
pub struct DeviceHeadsView<'a, T> {
    ptr: DevicePtr,
    shape: HeadsShape,
    strides: HeadsStrides,
    memory: PhantomData<&'a T>,
}

/// O in device memory, to write: of this library, or the caller's own.
pub struct DeviceHeadsViewMut<'a, T> {
    rows: DeviceHeadsView<'a, T>,
    memory: PhantomData<&'a mut T>,
}

impl<'a, T: Element> DeviceHeadsView<'a, T> {
    /// A view of a buffer, whose first element is the first of sequence 0, token 0, head 0.
    ///
    /// # Errors
    /// [`FormatError::HeadsOverlap`] where rows would overlap, [`FormatError::TooShort`] where the buffer ends before the
    /// last one does, [`FormatError::HeadsTooMany`] where its place does not fit 64 bits.
    pub fn of_buffer(
        buffer: &'a DeviceBuffer<T>,
        shape: HeadsShape,
        strides: HeadsStrides,
    ) -> Result<Self, FormatError> {
        Self::of_memory(buffer.ptr(), buffer.len(), shape, strides)
    }

    /// A view of memory that something else owns. The kernels want `ptr` and the strides in bytes to be multiples of 16.
    ///
    /// # Errors
    /// [`FormatError::HeadsOverlap`] where rows would overlap, [`FormatError::HeadsTooMany`] where the last one's place does
    /// not fit 64 bits.
    ///
    /// # Safety
    /// While the view lives, the memory is allocated on the device that it is used with, as far as the rows reach, and
    /// nothing writes to it.
    pub unsafe fn from_raw_parts(
        ptr: DevicePtr,
        shape: HeadsShape,
        strides: HeadsStrides,
    ) -> Result<Self, FormatError> {
        Self::of_memory(ptr, usize::MAX, shape, strides)
    }

    /// A view of at most `len` elements.
    fn of_memory(ptr: DevicePtr, len: usize, shape: HeadsShape, strides: HeadsStrides) -> Result<Self, FormatError> {
        shape.check(strides, len)?;
        Ok(Self { ptr, shape, strides, memory: PhantomData })
    }

    /// Where it lies.
    pub(crate) fn placed(&self) -> PlacedHeads {
        PlacedHeads { address: self.ptr, shape: self.shape, strides: self.strides, dtype: T::DTYPE }
    }
}

impl<'a, T: Element> DeviceHeadsViewMut<'a, T> {
    /// A view of a buffer, as [`DeviceHeadsView::of_buffer`].
    ///
    /// # Errors
    /// As [`DeviceHeadsView::of_buffer`].
    pub fn of_buffer(
        buffer: &'a mut DeviceBuffer<T>,
        shape: HeadsShape,
        strides: HeadsStrides,
    ) -> Result<Self, FormatError> {
        Ok(Self { rows: DeviceHeadsView::of_buffer(buffer, shape, strides)?, memory: PhantomData })
    }

    /// A view of memory that something else owns, as [`DeviceHeadsView::from_raw_parts`].
    ///
    /// # Errors
    /// As [`DeviceHeadsView::from_raw_parts`].
    ///
    /// # Safety
    /// While the view lives, the memory is allocated on the device that it is used with, as far as the rows reach, and
    /// nothing else reads it or writes to it.
    pub unsafe fn from_raw_parts(
        ptr: DevicePtr,
        shape: HeadsShape,
        strides: HeadsStrides,
    ) -> Result<Self, FormatError> {
        // SAFETY: the caller promises more.
        let rows = unsafe { DeviceHeadsView::from_raw_parts(ptr, shape, strides) };
        Ok(Self { rows: rows?, memory: PhantomData })
    }
}

impl<T> DeviceHeadsView<'_, T> {
    /// The address of the first row.
    pub fn ptr(&self) -> DevicePtr {
        self.ptr
    }

    heads_accessors!();
}

impl<T> DeviceHeadsViewMut<'_, T> {
    /// The same rows, to read.
    pub fn as_view(&self) -> DeviceHeadsView<'_, T> {
        DeviceHeadsView { memory: PhantomData, ..self.rows }
    }

    /// The address of the first row.
    pub fn ptr(&self) -> DevicePtr {
        self.rows.ptr
    }

    /// The extents.
    pub fn shape(&self) -> HeadsShape {
        self.rows.shape
    }

    /// From one to the next, in elements.
    pub fn strides(&self) -> HeadsStrides {
        self.rows.strides
    }
}

impl<T> fmt::Debug for DeviceHeadsView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ptr, shape, strides, .. } = self;
        f.debug_struct("DeviceHeadsView")
            .field("ptr", ptr)
            .field("shape", shape)
            .field("strides", strides)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for DeviceHeadsViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeviceHeadsViewMut").field(&self.rows).finish()
    }
}
