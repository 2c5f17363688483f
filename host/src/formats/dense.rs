//! Dense matrices and views of them: row-major or column-major, with a leading dimension.

use crate::element::Element;
use crate::formats::FormatError;

/// The order in which a dense matrix lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Rows are contiguous: element (i, j) is at `i * leading_dimension + j`.
    RowMajor,
    /// Columns are contiguous: element (i, j) is at `j * leading_dimension + i`.
    ColumnMajor,
}

/// An owned dense matrix. Its leading dimension is its number of columns (row-major) or rows (column-major).
#[derive(Clone, Debug, PartialEq)]
pub struct Dense<T> {
    data: Vec<T>,
    num_rows: usize,
    num_cols: usize,
    layout: Layout,
}

/// A view of `num_rows` x `num_cols` elements in a slice.
#[derive(Clone, Copy, Debug)]
pub struct DenseView<'a, T> {
    data: &'a [T],
    num_rows: usize,
    num_cols: usize,
    leading_dimension: usize,
    layout: Layout,
}

/// A mutable view of `num_rows` x `num_cols` elements in a slice.
#[derive(Debug)]
pub struct DenseViewMut<'a, T> {
    data: &'a mut [T],
    num_rows: usize,
    num_cols: usize,
    leading_dimension: usize,
    layout: Layout,
}

impl<T: Element> Dense<T> {
    /// A matrix of zeros.
    pub fn zeros(num_rows: usize, num_cols: usize, layout: Layout) -> Self {
        Self { data: vec![T::ZERO; num_rows * num_cols], num_rows, num_cols, layout }
    }

    /// Takes the elements of `data`, in the order of `layout`.
    ///
    /// # Errors
    /// [`FormatError::Length`] where `data` does not hold `num_rows * num_cols` elements.
    pub fn from_vec(data: Vec<T>, num_rows: usize, num_cols: usize, layout: Layout) -> Result<Self, FormatError> {
        if data.len() != num_rows * num_cols {
            return Err(FormatError::Length {
                array: "data",
                expected: (num_rows * num_cols) as u64,
                found: data.len() as u64,
            });
        }
        Ok(Self { data, num_rows, num_cols, layout })
    }

    /// The whole matrix, to read.
    pub fn view(&self) -> DenseView<'_, T> {
        todo!("formats")
    }

    /// The whole matrix, to write.
    pub fn view_mut(&mut self) -> DenseViewMut<'_, T> {
        todo!("formats")
    }
}
