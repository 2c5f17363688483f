//! How a weight's nonzeros are spread over its rows.

use rayon::prelude::*;

use crate::element::Element;

/// Counts of elements that are not zero; -0.0 is zero, NaN is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowBalance {
    /// In the whole matrix.
    pub num_nonzeros: u64,
    /// In the row that has the fewest; 0 where there is no row.
    pub row_min: u64,
    /// In the row that has the most; 0 where there is no row.
    pub row_max: u64,
}

impl RowBalance {
    /// Counts those of a row-major matrix.
    pub fn of<T: Element>(elements: &[T], num_cols: usize) -> Self {
        let rows = elements.par_chunks(num_cols.max(1));
        let counts = rows.map(|row| row.iter().filter(|&&element| element != T::ZERO).count() as u64);
        let none = || (0, u64::MAX, 0);
        let (num_nonzeros, row_min, row_max) = counts
            .map(|count| (count, count, count))
            .reduce(none, |one, other| (one.0 + other.0, one.1.min(other.1), one.2.max(other.2)));
        let row_min = if row_min == u64::MAX { 0 } else { row_min };
        Self { num_nonzeros, row_min, row_max }
    }
}
