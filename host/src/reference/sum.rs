//! Running sums, and the loop that feeds them.

use rayon::prelude::*;

use super::SparseRows;
use crate::element::{Accumulator, Element};
use crate::formats::DenseView;

/// A sum of products, one after the other.
pub(super) trait RunningSum: Clone + Default + Send {
    /// The type of the factors.
    type Factor: Accumulator;
    /// Adds `a * b`.
    fn add_product(&mut self, a: Self::Factor, b: Self::Factor);
}

/// A sum that knows the magnitude of its terms.
pub(super) trait ExactSum: RunningSum<Factor = f64> {
    /// The sum.
    fn value(&self) -> f64;
    /// The sum of the terms' absolute values.
    fn magnitude(&self) -> f64;
}

/// A sum in float64.
#[derive(Clone, Default)]
pub(super) struct Plain {
    sum: f64,
    magnitude: f64,
}

impl RunningSum for Plain {
    type Factor = f64;
    #[inline(always)]
    fn add_product(&mut self, a: f64, b: f64) {
        let product = a * b;
        self.sum += product;
        self.magnitude += product.abs();
    }
}

impl ExactSum for Plain {
    fn value(&self) -> f64 {
        self.sum
    }
    fn magnitude(&self) -> f64 {
        self.magnitude
    }
}

/// A sum of float64 products in about twice the precision: what each operation rounds away is added up apart
/// (the dot product of Ogita, Rump and Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26, 2005).
#[derive(Clone, Default)]
pub(super) struct Compensated {
    sum: f64,
    lost: f64,
    magnitude: f64,
}

impl RunningSum for Compensated {
    type Factor = f64;
    #[inline(always)]
    fn add_product(&mut self, a: f64, b: f64) {
        let product = a * b;
        let lost_in_product = a.mul_add(b, -product);
        let sum = self.sum + product;
        let of_product = sum - self.sum;
        let lost_in_sum = (self.sum - (sum - of_product)) + (product - of_product);
        self.sum = sum;
        self.lost += lost_in_product + lost_in_sum;
        self.magnitude += product.abs();
    }
}

impl ExactSum for Compensated {
    fn value(&self) -> f64 {
        // Beside an infinite sum the losses are differences of infinities, which say nothing.
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }
    fn magnitude(&self) -> f64 {
        self.magnitude
    }
}

/// The naive kernel's sum: each product and each partial sum is rounded.
#[derive(Clone)]
pub(super) struct Naive<A>(pub A);

impl<A: Accumulator> Default for Naive<A> {
    fn default() -> Self {
        Self(A::ZERO)
    }
}

impl<A: Accumulator> RunningSum for Naive<A> {
    type Factor = A;
    #[inline(always)]
    fn add_product(&mut self, a: A, b: A) {
        self.0 = self.0 + a * b;
    }
}

/// The rows that are asked for.
#[derive(Clone, Copy)]
pub(super) enum Rows<'a> {
    /// The sums of A B.
    WithProduct(&'a [usize]),
    /// Empty sums; A and B are not read.
    WithoutProduct(&'a [usize]),
}

/// Adds up rows of A B and hands each sum to `finish(index of the row in the selection, column, sum)`.
pub(super) fn sums_of_rows<T: Element, S: RunningSum>(
    a: &impl SparseRows<T>,
    b: DenseView<'_, T>,
    selection: Rows<'_>,
    mut finish: impl FnMut(usize, usize, S),
) {
    // B is widened a panel of columns at a time, so that its copy stays small and each element is widened once.
    const PANEL_COLS: usize = 128;
    let (Rows::WithProduct(rows) | Rows::WithoutProduct(rows)) = selection;
    for first_col in (0..b.num_cols()).step_by(PANEL_COLS) {
        let num_cols = PANEL_COLS.min(b.num_cols() - first_col);
        let panel: Vec<S::Factor> = match selection {
            Rows::WithoutProduct(_) => vec![],
            Rows::WithProduct(_) => (0..b.num_rows() * num_cols)
                .into_par_iter()
                .map(|at| S::Factor::widen(b.get(at / num_cols, first_col + at % num_cols)))
                .collect(),
        };
        let sums: Vec<Vec<S>> = rows
            .par_iter()
            .map(|&row| {
                let mut sums = vec![S::default(); num_cols];
                if !matches!(selection, Rows::WithoutProduct(_)) {
                    a.for_each_entry(row, |col, value| {
                        let value = S::Factor::widen(value);
                        for (sum, &factor) in sums.iter_mut().zip(&panel[col * num_cols..][..num_cols]) {
                            sum.add_product(value, factor);
                        }
                    });
                }
                sums
            })
            .collect();
        for (index, sums) in sums.into_iter().enumerate() {
            for (at, sum) in sums.into_iter().enumerate() {
                finish(index, first_col + at, sum);
            }
        }
    }
}
