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

/// A naive kernel's sum, whichever unit computes it.
pub(super) trait NaiveSum<A>: RunningSum {
    /// The sum, in the accumulator's type.
    fn value(&self) -> A;
}

impl<A: Accumulator> NaiveSum<A> for Naive<A> {
    fn value(&self) -> A {
        self.0
    }
}

/// A tensor core's sum: 16 exact products at a time are added to an fp32 accumulator, and what lies beyond its last bit
/// is cut off, not rounded. (A model that accounts for the errors seen on an H200; the PTX ISA leaves the precision of the sum open.)
#[derive(Clone, Default)]
pub(super) struct Truncated {
    sum: f32,
    products: f64,
    num_products: u32,
}

impl Truncated {
    /// The accumulator and the products that wait, cut to fp32.
    fn cut(&self) -> f32 {
        let exact = f64::from(self.sum) + self.products;
        let nearest = exact as f32;
        // Rounding to nearest may have gone away from zero: then the neighbour towards zero is meant.
        if nearest.is_finite() && f64::from(nearest).abs() > exact.abs() {
            f32::from_bits(nearest.to_bits() - 1)
        } else {
            nearest
        }
    }
}

impl RunningSum for Truncated {
    type Factor = f64;
    #[inline(always)]
    fn add_product(&mut self, a: f64, b: f64) {
        self.products += a * b;
        self.num_products += 1;
        if self.num_products == 16 {
            *self = Self { sum: self.cut(), ..Self::default() };
        }
    }
}

impl<A: Accumulator> NaiveSum<A> for Truncated {
    fn value(&self) -> A {
        A::from_f32(self.cut())
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

impl<'a> Rows<'a> {
    /// The rows of alpha A B: where `alpha` is zero, neither A nor B is read.
    pub(super) fn scaled_by<A: Accumulator>(alpha: A, rows: &'a [usize]) -> Self {
        if alpha == A::ZERO { Self::WithoutProduct(rows) } else { Self::WithProduct(rows) }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_core_cuts_and_does_not_round() {
        let mut sum = Truncated::default();
        sum.add_product(1.0, 1.0);
        // Three quarters of the last bit of 1.0, from either side of zero: nearest would round up, a cut drops it.
        for _ in 0..15 {
            sum.add_product(0.75 / 15.0, f64::from(f32::EPSILON));
        }
        assert_eq!(NaiveSum::<f32>::value(&sum), 1.0);
        let mut sum = Truncated::default();
        sum.add_product(-1.0, 1.0);
        sum.add_product(-0.75, f64::from(f32::EPSILON));
        assert_eq!(NaiveSum::<f32>::value(&sum), -1.0);
    }
}
