//! The first loop that comes to mind, in the types of the implementation under test: the yardstick.
//!
//! Products are rounded to the accumulator's type (`f32`, or `f64` for `f64`), added up in the order of the columns,
//! scaled, and rounded once to the output's type. On tensor cores, sixteen products at a time ([`Unit`]).

use super::error::{ErrorReport, Tolerance};
use super::product::Product;
use super::sum::{Naive, Truncated};
use super::{Exact, SparseRows};
use crate::element::Element;
use crate::formats::{Dense, DenseView};
use crate::ops::{PlanError, check_spmm_shapes};

/// What adds up the products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A processor core or a CUDA core: one product after the other, each sum rounded to nearest.
    Core,
    /// A tensor core: sixteen products at a time, each sum cut to fp32. Of 16-bit factors only.
    TensorCore,
}

/// C = alpha A B + beta C, row-major. Reads as [`spmm`](super::spmm) does with a factor of zero.
///
/// # Errors
/// [`PlanError::ShapeMismatch`].
///
/// # Panics
/// Where a view of A breaks an invariant of its format.
pub fn spmm<T: Element, U: Element>(
    alpha: f64,
    a: &impl SparseRows<T>,
    b: DenseView<'_, T>,
    beta: f64,
    c: DenseView<'_, U>,
) -> Result<Dense<U>, PlanError> {
    spmm_rows(alpha, a, b, beta, c, &(0..a.num_rows()).collect::<Vec<_>>())
}

/// Some rows of what [`spmm`] computes.
///
/// # Errors
/// [`PlanError::ShapeMismatch`].
///
/// # Panics
/// Where one of `rows` is not a row of A, or a view of A breaks an invariant of its format.
pub fn spmm_rows<T: Element, U: Element>(
    alpha: f64,
    a: &impl SparseRows<T>,
    b: DenseView<'_, T>,
    beta: f64,
    c: DenseView<'_, U>,
    rows: &[usize],
) -> Result<Dense<U>, PlanError> {
    Ok(Product::new(alpha, a, b, beta, c)?.naive::<Naive<T::Accumulator>>(rows))
}

/// What an implementation of C = alpha A B + beta C may err by, given what it reads and the rows of the exact result.
///
/// # Errors
/// [`PlanError::ShapeMismatch`], also where `exact` is the result of a problem of another shape.
///
/// # Panics
/// Where a view of A breaks an invariant of its format.
pub fn tolerance<T: Element, U: Element>(
    unit: Unit,
    alpha: f64,
    a: &impl SparseRows<T>,
    b: DenseView<'_, T>,
    beta: f64,
    c: DenseView<'_, U>,
    exact: &Exact,
) -> Result<Tolerance, PlanError> {
    check_spmm_shapes(
        (exact.num_rows, a.num_cols()),
        (b.num_rows(), exact.values.num_cols()),
        (c.num_rows(), c.num_cols()),
    )?;
    let product = Product::new(alpha, a, b, beta, c)?;
    let found = match unit {
        Unit::Core => product.naive::<Naive<T::Accumulator>>(&exact.rows),
        Unit::TensorCore => product.naive::<Truncated>(&exact.rows),
    };
    let naive = ErrorReport::of_rows(exact, |index, col| found.get(index, col));
    Ok(Tolerance::new(&naive, exact, U::DTYPE, <T::Accumulator as Element>::DTYPE))
}
