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
        }
    }
}

impl std::error::Error for FormatError {}
