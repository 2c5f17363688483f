//! Why a linear layer is refused.

use core::fmt;

use crate::element::Dtype;
use crate::formats::Axis;

/// An operand of Y = X W^T + bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearOperand {
    /// X, tokens by inputs.
    X,
    /// Y, tokens by outputs.
    Y,
}

impl fmt::Display for LinearOperand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X => "X",
            Self::Y => "Y",
        })
    }
}

/// Why no plan serves a linear layer, or an operand is not the plan's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinearError {
    /// The kernels do not take the element type.
    Dtype {
        /// The type asked for.
        dtype: Dtype,
    },
    /// An axis is longer than the device can address.
    Size {
        /// Its size.
        size: u64,
        /// The largest.
        most: u64,
    },
    /// The weights have another shape, or type, than the problem's.
    Weights {
        /// Outputs and inputs.
        expected: [u64; 2],
        /// Rows and columns found.
        found: [u64; 2],
    },
    /// X or Y has another size than was planned for.
    Shape {
        /// Which.
        operand: LinearOperand,
        /// The axis.
        axis: Axis,
        /// The size planned for.
        expected: u64,
        /// The size found.
        found: u64,
    },
    /// X or Y is column-major, or of another type than was planned for.
    Layout {
        /// Which.
        operand: LinearOperand,
        /// The type planned for.
        dtype: Dtype,
    },
    /// The bias does not have an element for each output.
    Bias {
        /// Outputs.
        expected: u64,
        /// Elements found.
        found: u64,
    },
}

impl fmt::Display for LinearError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dtype { dtype } => write!(f, "the kernels of linear layers take bf16 and f16, not {dtype}"),
            Self::Size { size, most } => {
                write!(f, "a linear layer with an axis of {size} is too large for the device: at most {most}")
            }
            Self::Weights { expected: [rows, cols], found: [found_rows, found_cols] } => write!(
                f,
                "the plan was made for weights of {rows}x{cols} and another type or shape was given, of \
                 {found_rows}x{found_cols}: plan again"
            ),
            Self::Shape { operand, axis, expected, found } => {
                write!(f, "{operand} has {found} {axis}s, but {expected} were planned for")
            }
            Self::Layout { operand, dtype } => write!(f, "{operand} must be row-major, of {dtype}, as was planned"),
            Self::Bias { expected, found } => {
                write!(f, "the bias has {found} elements, but there are {expected} outputs")
            }
        }
    }
}

impl std::error::Error for LinearError {}
