//! What a format refuses.

use core::fmt;

/// An axis of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Rows.
    Row,
    /// Columns.
    Column,
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Row => "row",
            Self::Column => "column",
        })
    }
}

/// Why a matrix was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// An index lies outside the matrix.
    IndexOutOfRange {
        /// The axis of the index.
        axis: Axis,
        /// The index found, from 0.
        index: u64,
        /// The size of that axis.
        size: u64,
        /// The position of the entry, from 0.
        entry: u64,
    },
    /// An array does not have the length that the format demands.
    Length {
        /// The array's name.
        array: &'static str,
        /// The length demanded.
        expected: u64,
        /// The length found.
        found: u64,
    },
    /// An array ends before the last element that is read or written.
    TooShort {
        /// The array's name.
        array: &'static str,
        /// The least length.
        needed: u64,
        /// The length found.
        found: u64,
    },
    /// Lines of a dense matrix overlap.
    LeadingDimension {
        /// The length of a line.
        least: u64,
        /// The leading dimension found.
        found: u64,
    },
    /// A matrix has more elements than can be addressed.
    SizeOverflow {
        /// Number of rows.
        num_rows: u64,
        /// Number of columns.
        num_cols: u64,
    },
    /// A range of rows or columns is reversed or ends outside of the matrix.
    RangeOutOfBounds {
        /// The axis of the range.
        axis: Axis,
        /// The first index.
        start: u64,
        /// The index after the last.
        end: u64,
        /// The size of that axis.
        size: u64,
    },
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IndexOutOfRange { axis, index, size, entry } => {
                write!(f, "entry {entry} has {axis} index {index}, but the matrix has {size} {axis}s")
            }
            Self::Length { array, expected, found } => {
                write!(f, "`{array}` has {found} elements, but {expected} are expected")
            }
            Self::TooShort { array, needed, found } => {
                write!(f, "`{array}` has {found} elements, but at least {needed} are needed")
            }
            Self::LeadingDimension { least, found } => {
                write!(f, "the leading dimension is {found}, but lines of {least} elements need at least {least}")
            }
            Self::SizeOverflow { num_rows, num_cols } => {
                write!(f, "a matrix of {num_rows} x {num_cols} elements is larger than memory can be addressed")
            }
            Self::RangeOutOfBounds { axis, start, end, size } => {
                write!(f, "{axis}s {start}..{end} are not a range of the matrix's {size} {axis}s")
            }
        }
    }
}

impl std::error::Error for FormatError {}
