//! The end of a product: alpha, beta, and the rounding to the output's type.

use crate::element::{Accumulator, Element};
use crate::formats::DenseViewMut;

/// The factors of C = alpha A B + beta C.
#[derive(Clone, Copy)]
pub(super) struct Scale<A> {
    alpha: A,
    beta: A,
}

impl<A: Accumulator> Scale<A> {
    /// Rounds the factors to the accumulator's type.
    pub(super) fn new(alpha: f64, beta: f64) -> Self {
        Self { alpha: A::from_f64(alpha), beta: A::from_f64(beta) }
    }

    /// Whether `alpha` is zero, so that A and B must not be read.
    pub(super) fn is_without_product(self) -> bool {
        self.alpha == A::ZERO
    }

    /// Sets each element of C that belongs to an element of the product.
    #[inline(always)]
    pub(super) fn apply<U: Element>(self, product: &[A], c: &mut [U]) {
        for (&sum, element) in product.iter().zip(c) {
            *element = self.combined(sum, *element);
        }
    }

    /// alpha sum + beta old, where a `beta` of zero does not read `old`.
    #[inline(always)]
    pub(super) fn combined<U: Element>(self, sum: A, old: U) -> U {
        let scaled = self.alpha * sum;
        if self.beta == A::ZERO { scaled.round_to() } else { (scaled + self.beta * A::widen(old)).round_to() }
    }
}

/// C = beta C.
pub(super) fn scale_only<A: Accumulator, U: Element>(scale: Scale<A>, c: &mut DenseViewMut<'_, U>) {
    if scale.beta == A::ZERO {
        c.fill(U::ZERO);
        return;
    }
    for line in c.lines_mut() {
        for element in line {
            *element = (scale.beta * A::widen(*element)).round_to();
        }
    }
}
