//! Where the elements of a dense matrix lie, on the host or on a device.

use core::ops::Range;

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
}

/// Rows, columns, layout and leading dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub num_rows: usize,
    pub num_cols: usize,
    pub leading_dimension: usize,
    pub layout: Layout,
}

impl Shape {
    /// A shape without space between lines.
    pub(crate) fn tight(num_rows: usize, num_cols: usize, layout: Layout) -> Self {
        let shape = Self { num_rows, num_cols, leading_dimension: 0, layout };
        Self { leading_dimension: shape.line_len(), ..shape }
    }

    /// The shape, where lines do not overlap and `found` elements reach to the last one of the last line.
    ///
    /// # Errors
    /// [`FormatError::LeadingDimension`], [`FormatError::TooShort`] or [`FormatError::SizeOverflow`].
    pub(super) fn checked(self, found: usize) -> Result<Self, FormatError> {
        let least = self.line_len();
        if self.leading_dimension < least {
            let found = self.leading_dimension as u64;
            return Err(FormatError::LeadingDimension { least: least as u64, found });
        }
        let needed = self.reach().ok_or(self.overflow())?;
        if found < needed {
            return Err(FormatError::TooShort { array: "data", needed: needed as u64, found: found as u64 });
        }
        Ok(self)
    }

    /// The elements of one row (row-major) or column (column-major).
    #[inline(always)]
    pub(crate) fn line_len(self) -> usize {
        match self.layout {
            Layout::RowMajor => self.num_cols,
            Layout::ColumnMajor => self.num_rows,
        }
    }

    /// The number of rows (row-major) or columns (column-major).
    #[inline(always)]
    pub(crate) fn num_lines(self) -> usize {
        match self.layout {
            Layout::RowMajor => self.num_rows,
            Layout::ColumnMajor => self.num_cols,
        }
    }

    /// The elements from the first to the last, with what lies between; `None` where no address space has so many.
    pub(crate) fn reach(self) -> Option<usize> {
        match (self.line_len(), self.num_lines()) {
            (0, _) | (_, 0) => Some(0),
            (line_len, num_lines) => self.leading_dimension.checked_mul(num_lines - 1)?.checked_add(line_len),
        }
    }

    /// `num_rows * num_cols`, where that fits.
    pub(super) fn num_elements(self) -> Result<usize, FormatError> {
        self.num_rows.checked_mul(self.num_cols).ok_or(self.overflow())
    }

    /// The refusal of more elements than can be addressed.
    pub(super) fn overflow(self) -> FormatError {
        FormatError::SizeOverflow { num_rows: self.num_rows as u64, num_cols: self.num_cols as u64 }
    }

    /// The position of element (i, j).
    ///
    /// # Panics
    /// Where the element is outside of the matrix.
    #[inline(always)]
    pub(super) fn position(self, i: usize, j: usize) -> usize {
        let Self { num_rows, num_cols, leading_dimension, layout } = self;
        assert!(i < num_rows && j < num_cols, "element ({i}, {j}) of a {num_rows} x {num_cols} matrix");
        match layout {
            Layout::RowMajor => i * leading_dimension + j,
            Layout::ColumnMajor => j * leading_dimension + i,
        }
    }

    /// The shape of the given rows and columns, and the position of their first element; `None` where there is none.
    ///
    /// # Errors
    /// [`FormatError::RangeOutOfBounds`] where a range is reversed or ends outside of the matrix.
    pub(super) fn part(self, rows: Range<usize>, cols: Range<usize>) -> Result<(Self, Option<usize>), FormatError> {
        check_range(Axis::Row, &rows, self.num_rows)?;
        check_range(Axis::Column, &cols, self.num_cols)?;
        let is_empty = rows.is_empty() || cols.is_empty();
        let first = if is_empty { None } else { Some(self.position(rows.start, cols.start)) };
        Ok((Self { num_rows: rows.len(), num_cols: cols.len(), ..self }, first))
    }

    /// The shape of the transpose of the same memory.
    pub(super) fn transposed(self) -> Self {
        Self { num_rows: self.num_cols, num_cols: self.num_rows, layout: self.layout.flipped(), ..self }
    }
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

/// The accessors of a type whose field `shape` is a [`Shape`].
macro_rules! shape_accessors {
    () => {
        /// Number of rows.
        #[inline(always)]
        pub fn num_rows(&self) -> usize {
            self.shape.num_rows
        }

        /// Number of columns.
        #[inline(always)]
        pub fn num_cols(&self) -> usize {
            self.shape.num_cols
        }

        /// The order of the elements in memory.
        #[inline(always)]
        pub fn layout(&self) -> Layout {
            self.shape.layout
        }

        /// The distance between the starts of two lines (rows of a row-major matrix, columns of a column-major one), in
        /// elements.
        #[inline(always)]
        pub fn leading_dimension(&self) -> usize {
            self.shape.leading_dimension
        }
    };
}

pub(crate) use shape_accessors;

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
}
