//! Dense matrices and views of them: row-major or column-major, with a leading dimension.
//!
//! A *line* is what lies contiguously: a row of a row-major matrix, a column of a column-major one. Code that only
//! needs contiguous memory is written over lines and serves both layouts.

use core::ops::Range;

use crate::element::Element;
use crate::formats::{Axis, FormatError};

/// The order in which a dense matrix lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Rows are contiguous: element (i, j) is at `i * leading_dimension + j`.
    RowMajor,
    /// Columns are contiguous: element (i, j) is at `j * leading_dimension + i`.
    ColumnMajor,
}

impl Layout {
    /// The layout of the transpose of the same memory.
    pub const fn flipped(self) -> Self {
        match self {
            Self::RowMajor => Self::ColumnMajor,
            Self::ColumnMajor => Self::RowMajor,
        }
    }

    /// (lines, elements of a line) of a matrix with this layout.
    const fn lines(self, num_rows: usize, num_cols: usize) -> (usize, usize) {
        match self {
            Self::RowMajor => (num_rows, num_cols),
            Self::ColumnMajor => (num_cols, num_rows),
        }
    }
}

/// An owned dense matrix. Its leading dimension is its number of columns (row-major) or rows (column-major).
///
/// Invariant: `data` holds exactly `num_rows * num_cols` elements. Either size may be zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense<T> {
    data: Vec<T>,
    num_rows: usize,
    num_cols: usize,
    layout: Layout,
}

/// A view of `num_rows` x `num_cols` elements in a slice.
///
/// Invariants, all checked: the leading dimension is at least the length of a line, and `data` reaches to the last
/// element of the last line. Either size may be zero.
#[derive(Clone, Copy, Debug)]
pub struct DenseView<'a, T> {
    data: &'a [T],
    num_rows: usize,
    num_cols: usize,
    leading_dimension: usize,
    layout: Layout,
}

/// A mutable view of `num_rows` x `num_cols` elements in a slice, with the invariants of [`DenseView`].
///
/// What lies between the lines (where the leading dimension is larger than a line) is never written.
#[derive(Debug)]
pub struct DenseViewMut<'a, T> {
    data: &'a mut [T],
    num_rows: usize,
    num_cols: usize,
    leading_dimension: usize,
    layout: Layout,
}

/// `num_rows * num_cols`, where that fits.
fn num_elements(num_rows: usize, num_cols: usize) -> Result<usize, FormatError> {
    let product = num_rows.checked_mul(num_cols);
    product.ok_or(FormatError::SizeOverflow { num_rows: num_rows as u64, num_cols: num_cols as u64 })
}

/// Checks the invariants of a view over `found` elements.
fn check_view(
    found: usize,
    num_rows: usize,
    num_cols: usize,
    leading_dimension: usize,
    layout: Layout,
) -> Result<(), FormatError> {
    let (num_lines, line_len) = layout.lines(num_rows, num_cols);
    if leading_dimension < line_len {
        return Err(FormatError::LeadingDimension { least: line_len as u64, found: leading_dimension as u64 });
    }
    let needed = if num_lines == 0 || line_len == 0 {
        0
    } else {
        let before_last = (num_lines - 1).checked_mul(leading_dimension);
        before_last
            .and_then(|offset| offset.checked_add(line_len))
            .ok_or(FormatError::SizeOverflow { num_rows: num_rows as u64, num_cols: num_cols as u64 })?
    };
    if found < needed {
        return Err(FormatError::TooShort { array: "data", needed: needed as u64, found: found as u64 });
    }
    Ok(())
}

/// Checks that `start..end` is a range of an axis of `size` elements.
fn check_range(axis: Axis, range: &Range<usize>, size: usize) -> Result<(), FormatError> {
    if range.start > range.end || range.end > size {
        return Err(FormatError::RangeOutOfBounds {
            axis,
            start: range.start as u64,
            end: range.end as u64,
            size: size as u64,
        });
    }
    Ok(())
}

/// The position of element (i, j).
///
/// # Panics
/// Where the element is outside of the matrix.
#[inline(always)]
fn position(i: usize, j: usize, num_rows: usize, num_cols: usize, leading_dimension: usize, layout: Layout) -> usize {
    assert!(i < num_rows && j < num_cols, "element ({i}, {j}) of a {num_rows} x {num_cols} matrix");
    match layout {
        Layout::RowMajor => i * leading_dimension + j,
        Layout::ColumnMajor => j * leading_dimension + i,
    }
}

impl<T: Element> Dense<T> {
    /// A matrix of zeros.
    ///
    /// # Panics
    /// Like [`Vec::with_capacity`], where so many elements cannot be addressed; [`Dense::try_zeros`] refuses.
    pub fn zeros(num_rows: usize, num_cols: usize, layout: Layout) -> Self {
        let len = num_rows.checked_mul(num_cols);
        Self { data: vec![T::ZERO; len.unwrap_or(usize::MAX)], num_rows, num_cols, layout }
    }

    /// A matrix of zeros.
    ///
    /// # Errors
    /// [`FormatError::SizeOverflow`] where so many elements cannot be addressed.
    pub fn try_zeros(num_rows: usize, num_cols: usize, layout: Layout) -> Result<Self, FormatError> {
        let len = num_elements(num_rows, num_cols)?;
        if len > isize::MAX as usize / size_of::<T>() {
            return Err(FormatError::SizeOverflow { num_rows: num_rows as u64, num_cols: num_cols as u64 });
        }
        Ok(Self { data: vec![T::ZERO; len], num_rows, num_cols, layout })
    }

    /// Takes the elements of `data`, in the order of `layout`.
    ///
    /// # Errors
    /// [`FormatError::Length`] where `data` does not hold `num_rows * num_cols` elements,
    /// [`FormatError::SizeOverflow`] where that product does not fit.
    pub fn from_vec(data: Vec<T>, num_rows: usize, num_cols: usize, layout: Layout) -> Result<Self, FormatError> {
        let expected = num_elements(num_rows, num_cols)?;
        if data.len() != expected {
            return Err(FormatError::Length { array: "data", expected: expected as u64, found: data.len() as u64 });
        }
        Ok(Self { data, num_rows, num_cols, layout })
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
        let (_, line_len) = layout.lines(num_rows, num_cols);
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

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Number of columns.
    pub fn num_cols(&self) -> usize {
        self.num_cols
    }

    /// The order of the elements in memory.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The distance between the starts of two lines, in elements: the length of a line.
    pub fn leading_dimension(&self) -> usize {
        self.layout.lines(self.num_rows, self.num_cols).1
    }

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
        DenseView {
            leading_dimension: self.leading_dimension(),
            data: &self.data,
            num_rows: self.num_rows,
            num_cols: self.num_cols,
            layout: self.layout,
        }
    }

    /// The whole matrix, to write.
    #[inline(always)]
    pub fn view_mut(&mut self) -> DenseViewMut<'_, T> {
        DenseViewMut {
            leading_dimension: self.leading_dimension(),
            data: &mut self.data,
            num_rows: self.num_rows,
            num_cols: self.num_cols,
            layout: self.layout,
        }
    }

    /// The transpose, as a view of the same memory with the other layout.
    pub fn transposed(&self) -> DenseView<'_, T> {
        self.view().transposed()
    }

    /// The transpose, in the same memory with the other layout.
    pub fn into_transposed(self) -> Self {
        Self { data: self.data, num_rows: self.num_cols, num_cols: self.num_rows, layout: self.layout.flipped() }
    }

    /// The same matrix with another layout.
    pub fn to_layout(&self, layout: Layout) -> Self {
        self.view().to_dense(layout)
    }

    /// Each element rounded once, to nearest with ties to even, to another type.
    pub fn cast<U: Element>(&self) -> Dense<U> {
        Dense {
            data: self.data.iter().map(|value| U::from_f64(value.to_f64())).collect(),
            num_rows: self.num_rows,
            num_cols: self.num_cols,
            layout: self.layout,
        }
    }
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
        check_view(data.len(), num_rows, num_cols, leading_dimension, layout)?;
        Ok(Self { data, num_rows, num_cols, leading_dimension, layout })
    }

    /// Number of rows.
    #[inline(always)]
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Number of columns.
    #[inline(always)]
    pub fn num_cols(&self) -> usize {
        self.num_cols
    }

    /// The order of the elements in memory.
    #[inline(always)]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The distance between the starts of two lines, in elements.
    #[inline(always)]
    pub fn leading_dimension(&self) -> usize {
        self.leading_dimension
    }

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
        self.data[position(i, j, self.num_rows, self.num_cols, self.leading_dimension, self.layout)]
    }

    /// Number of lines: rows of a row-major matrix, columns of a column-major one.
    #[inline(always)]
    pub fn num_lines(&self) -> usize {
        self.layout.lines(self.num_rows, self.num_cols).0
    }

    /// Line `index`: a row of a row-major matrix, a column of a column-major one.
    ///
    /// # Panics
    /// Where there is no such line.
    #[inline(always)]
    pub fn line(&self, index: usize) -> &'a [T] {
        let (num_lines, line_len) = self.layout.lines(self.num_rows, self.num_cols);
        assert!(index < num_lines, "line {index} of {num_lines}");
        // A matrix of empty lines may have no memory at all, so its lines have no place in it.
        if line_len == 0 { &[] } else { &self.data[index * self.leading_dimension..][..line_len] }
    }

    /// The part of the matrix in the given rows and columns.
    ///
    /// # Errors
    /// [`FormatError::RangeOutOfBounds`] where a range is reversed or ends outside of the matrix.
    pub fn try_part(&self, rows: Range<usize>, cols: Range<usize>) -> Result<Self, FormatError> {
        check_range(Axis::Row, &rows, self.num_rows)?;
        check_range(Axis::Column, &cols, self.num_cols)?;
        let data = if rows.is_empty() || cols.is_empty() {
            &[]
        } else {
            let (i, j) = (rows.start, cols.start);
            &self.data[position(i, j, self.num_rows, self.num_cols, self.leading_dimension, self.layout)..]
        };
        Ok(Self { data, num_rows: rows.len(), num_cols: cols.len(), ..*self })
    }

    /// The transpose, as a view of the same memory with the other layout.
    pub fn transposed(self) -> Self {
        Self { num_rows: self.num_cols, num_cols: self.num_rows, layout: self.layout.flipped(), ..self }
    }

    /// A copy with the given layout and no space between lines.
    ///
    /// # Panics
    /// As [`Dense::zeros`] does.
    pub fn to_dense(&self, layout: Layout) -> Dense<T> {
        let mut dense = Dense::zeros(self.num_rows, self.num_cols, layout);
        copy(*self, &mut dense.view_mut());
        dense
    }
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
        check_view(data.len(), num_rows, num_cols, leading_dimension, layout)?;
        Ok(Self { data, num_rows, num_cols, leading_dimension, layout })
    }

    /// Number of rows.
    #[inline(always)]
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Number of columns.
    #[inline(always)]
    pub fn num_cols(&self) -> usize {
        self.num_cols
    }

    /// The order of the elements in memory.
    #[inline(always)]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The distance between the starts of two lines, in elements.
    #[inline(always)]
    pub fn leading_dimension(&self) -> usize {
        self.leading_dimension
    }

    /// The memory under the view, to write: element (0, 0) comes first, and there may be more than the matrix.
    pub fn data_mut(&mut self) -> &mut [T] {
        self.data
    }

    /// The same view, to read.
    #[inline(always)]
    pub fn as_view(&self) -> DenseView<'_, T> {
        DenseView {
            data: self.data,
            num_rows: self.num_rows,
            num_cols: self.num_cols,
            leading_dimension: self.leading_dimension,
            layout: self.layout,
        }
    }

    /// The same view for a shorter time.
    pub fn reborrow(&mut self) -> DenseViewMut<'_, T> {
        DenseViewMut {
            data: self.data,
            num_rows: self.num_rows,
            num_cols: self.num_cols,
            leading_dimension: self.leading_dimension,
            layout: self.layout,
        }
    }

    /// The transpose, as a view of the same memory with the other layout.
    pub fn transposed(self) -> Self {
        let (num_rows, num_cols) = (self.num_cols, self.num_rows);
        Self { num_rows, num_cols, layout: self.layout.flipped(), ..self }
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
        let at = position(i, j, self.num_rows, self.num_cols, self.leading_dimension, self.layout);
        self.data[at] = value;
    }

    /// The lines, to write, in order: rows of a row-major matrix, columns of a column-major one.
    pub fn lines_mut(&mut self) -> impl Iterator<Item = &mut [T]> {
        let (num_lines, line_len) = self.layout.lines(self.num_rows, self.num_cols);
        // Lines without elements may have no memory: then there is none to hand out.
        let num_lines = if line_len == 0 { 0 } else { num_lines };
        let stride = self.leading_dimension.max(1);
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
        let axes = [("rows", self.num_rows, source.num_rows), ("columns", self.num_cols, source.num_cols)];
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
fn copy<T: Element>(source: DenseView<'_, T>, target: &mut DenseViewMut<'_, T>) {
    if source.layout == target.layout {
        for (index, line) in target.lines_mut().enumerate() {
            line.copy_from_slice(source.line(index));
        }
        return;
    }
    // Square tiles, so that the lines touched on both sides stay in the first-level cache.
    const TILE: usize = 32;
    let (num_rows, num_cols) = (source.num_rows, source.num_cols);
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
