//! Operations. Problem -> plan -> prepared -> launch.

use core::fmt;

use crate::element::Dtype;
use crate::formats::{Axis, BlockShape, Layout, WindowShape};

pub mod attention;
pub mod auto;
pub mod bcsr;
pub mod bitmap;
pub mod csr;
mod dealt;
mod dense_factors;
#[cfg(any(feature = "gpu", feature = "sim"))]
mod dense_launch;
pub mod linear;
#[cfg(any(feature = "gpu", feature = "sim"))]
mod placed;
mod shape;
pub mod three_layer;
pub mod wcsr;

use dense_factors::DenseFactors;
#[cfg(any(feature = "gpu", feature = "sim"))]
pub(crate) use placed::{Placed, PlacedHeads};
pub(crate) use shape::check_spmm_shapes;

/// A matrix of C = alpha A B + beta C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The sparse factor, M x K.
    A,
    /// The dense factor, K x N.
    B,
    /// The dense result, M x N.
    C,
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
        })
    }
}

/// Why no kernel serves a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The kernels do not take the element type.
    Dtype {
        /// The family of kernels.
        kernel: &'static str,
        /// The type asked for.
        dtype: Dtype,
        /// The types they take.
        offered: &'static str,
    },
    /// The kernels do not write the element type.
    Output {
        /// The family of kernels.
        kernel: &'static str,
        /// The type of A and B.
        input: Dtype,
        /// The type asked for.
        output: Dtype,
    },
    /// No kernel is made for the block shape.
    Block {
        /// The shape asked for.
        block: BlockShape,
    },
    /// No kernel is made for the window shape.
    Window {
        /// The shape asked for.
        window: WindowShape,
    },
    /// No kernel for the window shape has tiles of C of that width.
    Tile {
        /// The window shape.
        window: WindowShape,
        /// Columns asked for.
        columns: usize,
    },
    /// The kernels do not read this layout of B.
    LayoutOfB {
        /// The family of kernels.
        kernel: &'static str,
        /// The one that they read.
        offered: Layout,
    },
    /// The order of the rows of A is one of more rows, or fewer.
    RowOrder {
        /// Rows of the order.
        ordered: u64,
        /// Rows of A.
        rows: u64,
    },
    /// An axis is longer than the device can address.
    Size {
        /// Its size.
        size: u64,
        /// The largest.
        most: u64,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dtype { kernel, dtype, offered } => write!(f, "the {kernel} kernels take {offered}, not {dtype}"),
            Self::Output { kernel, input: Dtype::F32, output } => {
                write!(f, "the {kernel} kernels write f32 from f32, not {output}")
            }
            Self::Output { kernel, input, output } => {
                write!(f, "the {kernel} kernels write {input} or f32 from {input}, not {output}")
            }
            Self::Block { block } => write!(f, "no kernel multiplies blocks of {block}"),
            Self::Window { window } => write!(f, "no kernel multiplies windows of {window}"),
            Self::Tile { window, columns } => {
                write!(f, "no kernel for windows of {window} has tiles of {columns} columns")
            }
            Self::LayoutOfB { kernel, offered: Layout::RowMajor } => {
                write!(f, "the {kernel} kernels read B by rows: give it row-major")
            }
            Self::LayoutOfB { kernel, offered: Layout::ColumnMajor } => {
                write!(f, "the {kernel} kernels read B by columns: give it column-major")
            }
            Self::RowOrder { ordered, rows } => {
                write!(f, "an order of {ordered} rows is none for the {rows} rows of A")
            }
            Self::Size { size, most } => {
                write!(f, "a matrix with an axis of {size} is too large for the device: at most {most}")
            }
        }
    }
}

/// Why no plan serves a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// No kernel serves the problem.
    Refused(Refusal),
    /// A plan was given a matrix, a layout or a type that it was not made for.
    NotPlanned {
        /// The matrix that differs.
        operand: Operand,
    },
    /// The shape of a matrix does not agree with the shape of another.
    ShapeMismatch {
        /// The matrix refused.
        operand: Operand,
        /// The axis that disagrees.
        axis: Axis,
        /// The size that the other matrix asks for.
        expected: u64,
        /// The size found.
        found: u64,
        /// The other matrix.
        other: Operand,
        /// The axis of the other matrix.
        other_axis: Axis,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::NotPlanned { operand } => {
                write!(f, "the plan was made for another shape, layout, type or order of {operand}: plan again")
            }
            Self::ShapeMismatch { operand, axis, expected, found, other, other_axis } => {
                write!(f, "{operand} has {found} {axis}s, but {other} has {expected} {other_axis}s")
            }
        }
    }
}

impl std::error::Error for PlanError {}
