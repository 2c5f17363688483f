//! Operations. Problem -> plan -> prepared -> launch.

use core::fmt;

use crate::formats::Axis;

mod shape;

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

/// Why no plan serves a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
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
            Self::ShapeMismatch { operand, axis, expected, found, other, other_axis } => {
                write!(f, "{operand} has {found} {axis}s, but {other} has {expected} {other_axis}s")
            }
        }
    }
}

impl std::error::Error for PlanError {}
