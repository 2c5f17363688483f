//! A view to write.

use super::DenseView;
use super::shape::{Layout, Shape, shape_accessors};
use crate::element::Element;
use crate::formats::FormatError;

/// A mutable view of `num_rows` x `num_cols` elements in a slice, with the invariants of [`DenseView`].
///
/// What lies between the lines (where the leading dimension is larger than a line) is never written.
#[derive(Debug)]
pub struct DenseViewMut<'a, T> {
    pub(super) data: &'a mut [T],
    pub(crate) shape: Shape,
}

impl<'a, T: Element> DenseViewMut<'a, T> {
    /// A view of `data`, whose first element is element (0, 0).
    ///
    /// # Errors
    /// As [`DenseView::try_new`].
    pub fn try_new(
        data: &'a mut [T],
        num_rows: usize,
        num_cols: usize,
        leading_dimension: usize,
        layout: Layout,
    ) -> Result<Self, FormatError> {
        let shape = Shape { num_rows, num_cols, leading_dimension, layout }.checked(data.len())?;
        Ok(Self { data, shape })
    }

    shape_accessors!();

    /// The memory under the view, to write: element (0, 0) comes first, and there may be more than the matrix.
    pub fn data_mut(&mut self) -> &mut [T] {
        self.data
    }

    /// The same view, to read.
    #[inline(always)]
    pub fn as_view(&self) -> DenseView<'_, T> {
        DenseView { data: self.data, shape: self.shape }
    }

    /// The same view for a shorter time.
    pub fn reborrow(&mut self) -> DenseViewMut<'_, T> {
        DenseViewMut { data: self.data, shape: self.shape }
    }

    /// The transpose, as a view of the same memory with the other layout.
    pub fn transposed(self) -> Self {
        Self { shape: self.shape.transposed(), ..self }
    }

    /// Element (i, j).
    ///
    /// # Panics
    /// Where it is outside of the matrix.
    #[inline(always)]
    pub fn get(&self, i: usize, j: usize) -> T {
        self.as_view().get(i, j)
    }

    /// Sets element (i, j).
    ///
    /// # Panics
    /// Where it is outside of the matrix.
    #[inline(always)]
    pub fn set(&mut self, i: usize, j: usize, value: T) {
        let at = self.shape.position(i, j);
        self.data[at] = value;
    }

    /// The lines, to write, in order: rows of a row-major matrix, columns of a column-major one.
    pub fn lines_mut(&mut self) -> impl Iterator<Item = &mut [T]> {
        let (num_lines, line_len) = (self.shape.num_lines(), self.shape.line_len());
        // Lines without elements may have no memory: then there is none to hand out.
        let num_lines = if line_len == 0 { 0 } else { num_lines };
        let stride = self.shape.leading_dimension.max(1);
        self.data.chunks_mut(stride).take(num_lines).map(move |chunk| &mut chunk[..line_len])
    }

    /// Sets every element of the matrix.
    pub fn fill(&mut self, value: T) {
        for line in self.lines_mut() {
            line.fill(value);
        }
    }

    /// Copies a matrix of the same shape, of either layout.
    ///
    /// # Errors
    /// [`FormatError::Length`] where the shapes differ; the array is `rows` or `columns`.
    pub fn try_copy_from(&mut self, source: DenseView<'_, T>) -> Result<(), FormatError> {
        let axes = [("rows", self.num_rows(), source.num_rows()), ("columns", self.num_cols(), source.num_cols())];
        for (array, expected, found) in axes {
            if expected != found {
                return Err(FormatError::Length { array, expected: expected as u64, found: found as u64 });
            }
        }
        copy(source, self);
        Ok(())
    }
}

/// Copies between matrices of the same shape.
pub(super) fn copy<T: Element>(source: DenseView<'_, T>, target: &mut DenseViewMut<'_, T>) {
    if source.layout() == target.layout() {
        for (index, line) in target.lines_mut().enumerate() {
            line.copy_from_slice(source.line(index));
        }
        return;
    }
    // Square tiles, so that the lines touched on both sides stay in the first-level cache.
    const TILE: usize = 32;
    let (num_rows, num_cols) = (source.num_rows(), source.num_cols());
    for row in (0..num_rows).step_by(TILE) {
        for col in (0..num_cols).step_by(TILE) {
            for i in row..num_rows.min(row + TILE) {
                for j in col..num_cols.min(col + TILE) {
                    target.set(i, j, source.get(i, j));
                }
            }
        }
    }
}
