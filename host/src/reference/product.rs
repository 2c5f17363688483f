//! C = alpha A B + beta C over a selection of rows, with whichever sum adds up the products.

use super::SparseRows;
use super::sum::{ExactSum, NaiveSum, Rows, sums_of_rows};
use crate::element::{Accumulator, Element};
use crate::formats::{Dense, DenseView, Layout};
use crate::ops::{PlanError, check_spmm_shapes};

/// What is multiplied; the shapes agree.
pub(super) struct Product<'a, A, T, U> {
    alpha: f64,
    a: &'a A,
    b: DenseView<'a, T>,
    beta: f64,
    c: DenseView<'a, U>,
}

impl<'a, A: SparseRows<T>, T: Element, U: Element> Product<'a, A, T, U> {
    /// Checks that the shapes agree.
    pub(super) fn new(
        alpha: f64,
        a: &'a A,
        b: DenseView<'a, T>,
        beta: f64,
        c: DenseView<'a, U>,
    ) -> Result<Self, PlanError> {
        check_spmm_shapes((a.num_rows(), a.num_cols()), (b.num_rows(), b.num_cols()), (c.num_rows(), c.num_cols()))?;
        Ok(Self { alpha, a, b, beta, c })
    }

    /// Rows of the exact result, and the magnitudes of what is added up in each element.
    pub(super) fn exact<S: ExactSum>(&self, rows: &[usize]) -> (Dense<f64>, Dense<f64>) {
        let Self { alpha, a, b, beta, c } = *self;
        let mut values = Dense::zeros(rows.len(), b.num_cols(), Layout::RowMajor);
        let mut magnitudes = values.clone();
        sums_of_rows(a, b, Rows::scaled_by(alpha, rows), |index, col, sum: S| {
            let (mut value, mut magnitude) = (0.0, 0.0);
            if alpha != 0.0 {
                (value, magnitude) = (alpha * sum.value(), alpha.abs() * sum.magnitude());
            }
            if beta != 0.0 {
                let old = c.get(rows[index], col).to_f64();
                (value, magnitude) = (value + beta * old, magnitude + (beta * old).abs());
            }
            values.set(index, col, value);
            magnitudes.set(index, col, magnitude);
        });
        (values, magnitudes)
    }

    /// Rows of the naive result.
    pub(super) fn naive<S: NaiveSum<T::Accumulator>>(&self, rows: &[usize]) -> Dense<U> {
        let Self { a, b, c, .. } = *self;
        let (alpha, beta) = (T::Accumulator::from_f64(self.alpha), T::Accumulator::from_f64(self.beta));
        let zero = T::Accumulator::ZERO;
        let mut found = Dense::zeros(rows.len(), b.num_cols(), Layout::RowMajor);
        sums_of_rows(a, b, Rows::scaled_by(alpha, rows), |index, col, sum: S| {
            let product = if alpha == zero { zero } else { alpha * sum.value() };
            let value =
                if beta == zero { product } else { product + beta * T::Accumulator::widen(c.get(rows[index], col)) };
            found.set(index, col, value.round_to());
        });
        found
    }
}
