//! A matrix that owns its elements.

use super::shape::{Layout, Shape, shape_accessors};
use super::{DenseView, DenseViewMut};
use crate::element::Element;
use crate::formats::FormatError;

/// An owned dense matrix. Its leading dimension is its number of columns (row-major) or rows (column-major).
///
/// Invariant: `data` holds exactly `num_rows * num_cols` elements. Either size may be zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense<T> {
    data: Vec<T>,
    shape: Shape,
}

impl<T: Element> Dense<T> {
    /// A matrix of zeros.
    ///
    /// # Panics
    /// Like [`Vec::with_capacity`], where so many elements cannot be addressed; [`Dense::try_zeros`] refuses.
    pub fn zeros(num_rows: usize, num_cols: usize, layout: Layout) -> Self {
        let shape = Shape::tight(num_rows, num_cols, layout);
        Self { data: vec![T::ZERO; shape.num_elements().unwrap_or(usize::MAX)], shape }
    }

    /// A matrix of zeros.
    ///
    /// # Errors
    /// [`FormatError::SizeOverflow`] where so many elements cannot be addressed.
    pub fn try_zeros(num_rows: usize, num_cols: usize, layout: Layout) -> Result<Self, FormatError> {
        let shape = Shape::tight(num_rows, num_cols, layout);
        let len = shape.num_elements()?;
        if len > isize::MAX as usize / size_of::<T>() {
            return Err(shape.overflow());
        }
        Ok(Self { data: vec![T::ZERO; len], shape })
    }

    /// Takes the elements of `data`, in the order of `layout`.
    ///
    /// # Errors
    /// [`FormatError::Length`] where `data` does not hold `num_rows * num_cols` elements,
    /// [`FormatError::SizeOverflow`] where that product does not fit.
    pub fn from_vec(data: Vec<T>, num_rows: usize, num_cols: usize, layout: Layout) -> Result<Self, FormatError> {
        let shape = Shape::tight(num_rows, num_cols, layout);
        let expected = shape.num_elements()?;
        if data.len() != expected {
            return Err(FormatError::Length { array: "data", expected: expected as u64, found: data.len() as u64 });
        }
        Ok(Self { data, shape })
    }

    /// The matrix whose element (i, j) is `element(i, j)`; the elements are asked for in the order of memory.
    ///
    /// # Panics
    /// As [`Dense::zeros`] does.
    pub fn from_fn(
        num_rows: usize,
        num_cols: usize,
        layout: Layout,
        mut element: impl FnMut(usize, usize) -> T,
    ) -> Self {
        let mut dense = Self::zeros(num_rows, num_cols, layout);
        let line_len = dense.shape.line_len();
        for (line, values) in dense.data.chunks_exact_mut(line_len.max(1)).enumerate() {
            for (at, value) in values.iter_mut().enumerate() {
                *value = match layout {
                    Layout::RowMajor => element(line, at),
                    Layout::ColumnMajor => element(at, line),
                };
            }
        }
        dense
    }

    shape_accessors!();

    /// The elements, in the order of the layout.
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// The elements, in the order of the layout, to write.
    pub fn data_mut(&mut self) -> &mut [T] {
        &mut self.data
    }

    /// The elements, in the order of the layout.
    pub fn into_vec(self) -> Vec<T> {
        self.data
    }

    /// Element (i, j).
    ///
    /// # Panics
    /// Where it is outside of the matrix.
    #[inline(always)]
    pub fn get(&self, i: usize, j: usize) -> T {
        self.view().get(i, j)
    }

    /// Sets element (i, j).
    ///
    /// # Panics
    /// Where it is outside of the matrix.
    #[inline(always)]
    pub fn set(&mut self, i: usize, j: usize, value: T) {
        self.view_mut().set(i, j, value);
    }

    /// The whole matrix, to read.
    #[inline(always)]
    pub fn view(&self) -> DenseView<'_, T> {
        DenseView { data: &self.data, shape: self.shape }
    }

    /// The whole matrix, to write.
    #[inline(always)]
    pub fn view_mut(&mut self) -> DenseViewMut<'_, T> {
        DenseViewMut { data: &mut self.data, shape: self.shape }
    }

    /// The transpose, as a view of the same memory with the other layout.
    pub fn transposed(&self) -> DenseView<'_, T> {
        self.view().transposed()
    }

    /// The transpose, in the same memory with the other layout.
    pub fn into_transposed(self) -> Self {
        Self { data: self.data, shape: self.shape.transposed() }
    }

    /// The same matrix with another layout.
    pub fn to_layout(&self, layout: Layout) -> Self {
        self.view().to_dense(layout)
    }

    /// Each element rounded once, to nearest with ties to even, to another type.
    pub fn cast<U: Element>(&self) -> Dense<U> {
        Dense { data: self.data.iter().map(|value| U::from_f64(value.to_f64())).collect(), shape: self.shape }
    }
}
