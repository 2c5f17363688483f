//! Linear layers, Y = X W^T + bias: what their kernels share.
//!
//! X is N x K (tokens, features), W is M x K as checkpoints have it, Y is N x M; X and Y are row-major, with any leading dimension.
//! X, W, the bias and Y are of one 16-bit type, sums are fp32. As in a product with a dense W, zeros count: where X has an infinity or a
//! NaN, a weight of zero makes a NaN of it.

mod error;
#[cfg(feature = "gpu")]
mod launcher;
#[cfg(any(feature = "gpu", feature = "sim"))]
mod operands;
mod pieces;
mod plan;
#[cfg(feature = "sim")]
mod simulated;

use core::fmt;

pub use error::{LinearError, LinearOperand};
#[cfg(feature = "gpu")]
pub(crate) use launcher::{Launcher, Parts};
#[cfg(any(feature = "gpu", feature = "sim"))]
pub(crate) use operands::Operands;
pub(crate) use pieces::Pieces;
pub use plan::LinearPlan;

use crate::element::Dtype;
#[cfg(any(feature = "gpu", feature = "sim"))]
use crate::element::Element;

/// A problem: Y (N x M) = X (N x K) W^T + bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    /// M: outputs, rows of W.
    pub num_outputs: usize,
    /// K: inputs, columns of W.
    pub num_inputs: usize,
    /// N: tokens, rows of X and Y.
    pub num_tokens: usize,
    /// The type of X, W and Y.
    pub dtype: Dtype,
}

/// Coordinates of tensor copies are signed 32-bit numbers, and the last tile may reach over the edge.
const MOST: usize = i32::MAX as usize - 1024;

impl Linear {
    /// Whether 16-bit kernels serve the problem.
    ///
    /// # Errors
    /// [`LinearError::Dtype`], [`LinearError::Size`].
    pub(crate) fn check(&self) -> Result<(), LinearError> {
        if !matches!(self.dtype, Dtype::Bf16 | Dtype::F16) {
            return Err(LinearError::Dtype { dtype: self.dtype });
        }
        match [self.num_outputs, self.num_inputs, self.num_tokens].into_iter().find(|&size| size > MOST) {
            Some(size) => Err(LinearError::Size { size: size as u64, most: MOST as u64 }),
            None => Ok(()),
        }
    }

    /// Whether a matrix of this size and type is the problem's W.
    ///
    /// # Errors
    /// [`LinearError::Weights`].
    #[cfg(any(feature = "gpu", feature = "sim"))]
    pub(crate) fn check_weights<T: Element>(&self, num_rows: usize, num_cols: usize) -> Result<(), LinearError> {
        if (num_rows, num_cols, T::DTYPE) == (self.num_outputs, self.num_inputs, self.dtype) {
            return Ok(());
        }
        Err(LinearError::Weights {
            expected: [self.num_outputs as u64, self.num_inputs as u64],
            found: [num_rows as u64, num_cols as u64],
        })
    }
}

impl fmt::Display for Linear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { num_outputs, num_inputs, num_tokens, dtype } = self;
        write!(f, "{num_tokens} tokens, {num_inputs} -> {num_outputs}, {dtype}")
    }
}
