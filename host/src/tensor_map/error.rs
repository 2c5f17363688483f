//! What the hardware cannot read by, in numbers and in a sentence.

use core::fmt;

#[cfg(doc)]
use super::TensorMapSpec;

/// A part of a [`TensorMapSpec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorMapPart {
    /// The address of the first element.
    Address,
    /// Elements of the tensor along a dimension.
    Dimension,
    /// Bytes from one element to the next along a dimension.
    StrideBytes,
    /// Elements of the box along a dimension.
    BoxDimension,
    /// Bytes of the box along its innermost dimension.
    BoxRowBytes,
    /// Which elements the box takes along a dimension.
    ElementStride,
}

/// A constraint of the hardware that a [`TensorMapSpec`] violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorMapError {
    /// A number is too small or too large.
    Range {
        /// Whose number.
        part: TensorMapPart,
        /// The dimension, from 0 for the innermost.
        axis: usize,
        /// The number.
        found: u64,
        /// The least possible.
        least: u64,
        /// The most possible.
        most: u64,
    },
    /// A number is no multiple of another.
    Multiple {
        /// Whose number.
        part: TensorMapPart,
        /// The dimension, from 0 for the innermost.
        axis: usize,
        /// The number.
        found: u64,
        /// What it must be a multiple of.
        of: u64,
    },
}

impl fmt::Display for TensorMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tensor map cannot be made: ")?;
        let (Self::Range { part, axis, .. } | Self::Multiple { part, axis, .. }) = *self;
        match part {
            TensorMapPart::Address => f.write_str("the address"),
            TensorMapPart::Dimension => write!(f, "the number of elements along dimension {axis}"),
            TensorMapPart::StrideBytes => write!(f, "the stride of dimension {axis} in bytes"),
            TensorMapPart::BoxDimension => write!(f, "the number of elements of the box along dimension {axis}"),
            TensorMapPart::BoxRowBytes => f.write_str("the length of the box along dimension 0 in bytes"),
            TensorMapPart::ElementStride => write!(f, "the element stride of dimension {axis}"),
        }?;
        match *self {
            Self::Range { found, least, most, .. } if least == most => write!(f, " is {found}, but must be {most}"),
            Self::Range { found, least, most, .. } => write!(f, " is {found}, but must be {least} to {most}"),
            Self::Multiple { part: TensorMapPart::Address, found, of, .. } => {
                write!(f, " is {found:#x}, but must be a multiple of {of}")
            }
            Self::Multiple { found, of, .. } => write!(f, " is {found}, but must be a multiple of {of}"),
        }
    }
}

impl std::error::Error for TensorMapError {}
