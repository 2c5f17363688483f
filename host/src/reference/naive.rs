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

#[cfg(test)]
mod tests {
    use crate::formats::{CsrView, Dense, Layout};
    use crate::reference;
    use crate::reference::error::{ROUNDINGS_OF_AN_ELEMENT, rounding};

    use super::*;

    /// -1 to 1, by the linear congruences of Knuth's MMIX.
    fn numbers() -> impl FnMut() -> f32 {
        let mut state = 42u64;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        }
    }

    /// The product of a row and as many columns, added up from the last term to the first: as good as the naive order, and
    /// with roundings of its own.
    fn backwards(row: &[f32], b: &Dense<f32>) -> Dense<f32> {
        let sums = (0..b.num_cols())
            .map(|col| row.iter().enumerate().rev().fold(0f32, |sum, (at, value)| sum + value * b.get(at, col)))
            .collect();
        Dense::from_vec(sums, 1, b.num_cols(), Layout::RowMajor).unwrap()
    }

    /// Prints the table of docs/decisions/roundings-of-a-lucky-sum.md.
    #[test]
    #[ignore = "a table, not a check: with --release it takes a few seconds"]
    fn what_naive_sums_err_by() {
        let mut number = numbers();
        for depth in [4, 16, 64, 1024] {
            let trials = (60_000_000 / depth).min(4_000_000);
            let (mut squares, mut most, mut beyond) = (0.0, 0.0f64, [0; 2]);
            for _ in 0..trials {
                let (mut sum, mut exact, mut magnitude) = (0f32, 0.0, 0.0);
                for _ in 0..depth {
                    let (a, b) = (number(), number());
                    sum += a * b;
                    let product = f64::from(a) * f64::from(b);
                    exact += product;
                    magnitude += product.abs();
                }
                let roundings = (f64::from(sum) - exact).abs() / rounding(magnitude, crate::Dtype::F32);
                squares += roundings * roundings;
                most = most.max(roundings);
                beyond[0] += u32::from(roundings > 2.0);
                beyond[1] += u32::from(roundings > 3.0);
            }
            let mean = (squares / f64::from(trials)).sqrt();
            let [two, three] = beyond.map(|count| f64::from(count) / f64::from(trials));
            println!("| {depth} | {trials} | {mean:.2} | {most:.1} | {two:.1e} | {three:.1e} |");
        }
    }

    #[test]
    fn an_order_of_its_own_is_right_whatever_the_luck_of_the_naive_one() {
        let mut number = numbers();
        let (mut hardly, mut never) = (0, 0);
        for (num_sums, trials) in [(1, 40_000), (2, 20_000), (7, 4_000), (200, 200)] {
            for trial in 0..trials {
                let depth = [4, 32, 64][trial % 3];
                let (indices, row): (Vec<u32>, Vec<f32>) = (0..depth as u32).map(|at| (at, number())).unzip();
                let a = CsrView {
                    num_rows: 1,
                    num_cols: depth,
                    row_offsets: &[0, depth as u64],
                    col_indices: &indices,
                    values: &row,
                };
                let elements = (0..depth * num_sums).map(|_| number()).collect();
                let b = Dense::from_vec(elements, depth, num_sums, Layout::RowMajor).unwrap();
                let c = Dense::<f32>::zeros(1, num_sums, Layout::RowMajor);
                let exact = reference::spmm(1.0, &a, b.view(), 0.0, c.view()).unwrap();
                let allowed = tolerance(Unit::Core, 1.0, &a, b.view(), 0.0, c.view(), &exact).unwrap();

                let mut found = backwards(&row, &b);
                let verdict = allowed.judge(&exact.compare(found.view()).unwrap());
                assert!(verdict.is_accepted(), "{num_sums} sums of {depth}: {verdict}");
                let unit = |magnitude| rounding(magnitude, crate::Dtype::F32);
                let off = f64::from(found.get(0, 0)) - exact.values.get(0, 0);
                hardly += u32::from(off > 2.0 * unit(exact.magnitudes.get(0, 0)));

                let largest = exact.magnitudes.data().iter().copied().fold(0.0, f64::max);
                found.set(0, 0, found.get(0, 0) + (2.0 * ROUNDINGS_OF_AN_ELEMENT * unit(largest)) as f32);
                never += u32::from(allowed.judge(&exact.compare(found.view()).unwrap()).is_accepted());
            }
        }
        assert!(hardly > 0, "a floor of two roundings would have done");
        assert!(never < 10, "{never} results that are off by {ROUNDINGS_OF_AN_ELEMENT} roundings or more are accepted");
    }
}
