//! What a plan knows of B and C, the same for every format of A.

use core::fmt;

use super::{Operand, PlanError, Refusal};
#[cfg(any(feature = "gpu", feature = "sim"))]
use super::{Placed, check_spmm_shapes};
use crate::element::{Dtype, Element};
use crate::formats::Layout;

/// Sizes, types and layouts of C (M x N) = alpha A (M x K) B (K x N) + beta C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DenseFactors {
    /// M.
    pub num_rows: usize,
    /// K.
    pub num_inner: usize,
    /// N.
    pub num_cols: usize,
    /// The type of A and B.
    pub dtype: Dtype,
    /// The type of C.
    pub output: Dtype,
    /// The layout of B.
    pub b_layout: Layout,
    /// The layout of C.
    pub c_layout: Layout,
}

impl DenseFactors {
    /// Whether `kernel` writes C: in the type of A and B, or in f32.
    pub(super) fn check_output(&self, kernel: &'static str) -> Result<(), Refusal> {
        if self.output == self.dtype || self.output == Dtype::F32 {
            return Ok(());
        }
        Err(Refusal::Output { kernel, input: self.dtype, output: self.output })
    }

    /// Whether no size exceeds `most`.
    pub(super) fn check_sizes(&self, most: u64) -> Result<(), Refusal> {
        match [self.num_rows, self.num_inner, self.num_cols].into_iter().find(|&size| size as u64 > most) {
            Some(size) => Err(Refusal::Size { size: size as u64, most }),
            None => Ok(()),
        }
    }

    /// Whether A is what the problem says, where it has elements of type `T`.
    ///
    /// # Errors
    /// [`PlanError::NotPlanned`].
    pub(super) fn check_sparse<T: Element>(&self, num_rows: usize, num_cols: usize) -> Result<(), PlanError> {
        if (num_rows, num_cols, T::DTYPE) == (self.num_rows, self.num_inner, self.dtype) {
            return Ok(());
        }
        Err(PlanError::NotPlanned { operand: Operand::A })
    }

    /// Whether B and C are what was planned for.
    #[cfg(any(feature = "gpu", feature = "sim"))]
    pub(super) fn check_planned(&self, b: Placed, c: Placed) -> Result<(), PlanError> {
        let a = (self.num_rows, self.num_inner);
        let size = |matrix: Placed| (matrix.shape.num_rows, matrix.shape.num_cols);
        check_spmm_shapes(a, size(b), size(c))?;
        if (b.shape.num_cols, b.dtype, b.shape.layout) != (self.num_cols, self.dtype, self.b_layout) {
            return Err(PlanError::NotPlanned { operand: Operand::B });
        }
        if (c.dtype, c.shape.layout) != (self.output, self.c_layout) {
            return Err(PlanError::NotPlanned { operand: Operand::C });
        }
        Ok(())
    }
}

impl fmt::Display for DenseFactors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |layout| if layout == Layout::RowMajor { "row" } else { "col" };
        write!(
            f,
            "{}x{}x{} {} -> {}, B {}, C {}",
            self.num_rows,
            self.num_cols,
            self.num_inner,
            self.dtype,
            self.output,
            letter(self.b_layout),
            letter(self.c_layout)
        )
    }
}
