//! A view to read.

use core::ops::Range;

use super::Dense;
use super::shape::{Layout, Shape, shape_accessors};
use super::view_mut::copy;
use crate::element::Element;
use crate::formats::FormatError;

/// A view of `num_rows` x `num_cols` elements in a slice.
///
/// Invariants, all checked: the leading dimension is at least the length of a line, and `data` reaches to the last
/// element of the last line. Either size may be zero.
#[derive(Clone, Copy, Debug)]
pub struct DenseView<'a, T> {
    pub(super) data: &'a [T],
    pub(crate) shape: Shape,
}

impl<'a, T: Element> DenseView<'a, T> {
    /// A view of `data`, whose first element is element (0, 0).
    ///
    /// # Errors
    /// [`FormatError::LeadingDimension`] where a line is longer than the leading dimension,
    /// [`FormatError::TooShort`] where `data` ends before the last element,
    /// [`FormatError::SizeOverflow`] where the place of the last element does not fit 64 bits.
    pub fn try_new(
        data: &'a [T],
        num_rows: usize,
        num_cols: usize,
        leading_dimension: usize,
        layout: Layout,
    ) -> Result<Self, FormatError> {
        let shape = Shape { num_rows, num_cols, leading_dimension, layout }.checked(data.len())?;
        Ok(Self { data, shape })
    }

    shape_accessors!();

    /// The memory under the view: element (0, 0) comes first, and there may be more than the matrix.
    #[inline(always)]
    pub fn data(&self) -> &'a [T] {
        self.data
    }

    /// Element (i, j).
    ///
    /// # Panics
    /// Where it is outside of the matrix.
    #[inline(always)]
    pub fn get(&self, i: usize, j: usize) -> T {
        self.data[self.shape.position(i, j)]
    }

    /// Number of lines: rows of a row-major matrix, columns of a column-major one.
    #[inline(always)]
    pub fn num_lines(&self) -> usize {
        self.shape.num_lines()
    }

    /// Line `index`: a row of a row-major matrix, a column of a column-major one.
    ///
    /// # Panics
    /// Where there is no such line.
    #[inline(always)]
    pub fn line(&self, index: usize) -> &'a [T] {
        let (num_lines, line_len) = (self.shape.num_lines(), self.shape.line_len());
        assert!(index < num_lines, "line {index} of {num_lines}");
        // A matrix of empty lines may have no memory at all, so its lines have no place in it.
        if line_len == 0 { &[] } else { &self.data[index * self.shape.leading_dimension..][..line_len] }
    }

    /// The part of the matrix in the given rows and columns.
    ///
    /// # Errors
    /// [`FormatError::RangeOutOfBounds`] where a range is reversed or ends outside of the matrix.
    pub fn try_part(&self, rows: Range<usize>, cols: Range<usize>) -> Result<Self, FormatError> {
        let (shape, first) = self.shape.part(rows, cols)?;
        let data = first.map_or(&[][..], |first| &self.data[first..]);
        Ok(Self { data, shape })
    }

    /// The transpose, as a view of the same memory with the other layout.
    pub fn transposed(self) -> Self {
        Self { shape: self.shape.transposed(), ..self }
    }

    /// A copy with the given layout and no space between lines.
    ///
    /// # Panics
    /// As [`Dense::zeros`] does.
    pub fn to_dense(&self, layout: Layout) -> Dense<T> {
        let mut dense = Dense::zeros(self.num_rows(), self.num_cols(), layout);
        copy(*self, &mut dense.view_mut());
        dense
    }
}
