//! References: plain, slow, right.
//!
//! [`spmm`] computes C = alpha A B + beta C so exactly that its own error does not matter; [`naive`] computes it as the
//! first loop that comes to mind would, in the types of the implementation under test. How far the naive result is
//! from the exact one is the yardstick for any other implementation ([`Tolerance`]).
//!
//! ```
//! use hopper_sparse::formats::{CsrView, Dense, Layout};
//! use hopper_sparse::reference::naive::Unit;
//! use hopper_sparse::{cpu, reference};
//!
//! let a = CsrView { num_rows: 2, num_cols: 2, row_offsets: &[0, 1, 3], col_indices: &[0, 0, 1], values: &[2f32, 3.0, 4.0] };
//! let b = Dense::from_vec(vec![1f32, 10.0], 2, 1, Layout::RowMajor)?;
//! let mut c = Dense::<f32>::zeros(2, 1, Layout::RowMajor);
//!
//! let exact = reference::spmm(1.0, &a, b.view(), 0.0, c.view())?;
//! let tolerance = reference::naive::tolerance(Unit::Core, 1.0, &a, b.view(), 0.0, c.view(), &exact)?;
//! cpu::spmm_csr(1.0, a, b.view(), 0.0, &mut c.view_mut())?;
//! let verdict = tolerance.judge(&exact.compare(c.view())?);
//! assert!(verdict.is_accepted(), "{verdict}");
//! # Ok::<(), hopper_sparse::Error>(())
//! ```

pub mod attention;
mod error;
pub mod naive;
mod product;
mod sum;

pub use error::{ErrorReport, Tolerance, Verdict};

use crate::element::{Dtype, Element};
use crate::formats::{BcsrView, CsrView, Dense, DenseView, WcsrView};
use crate::ops::PlanError;
use product::Product;
use sum::{Compensated, Plain};

/// A sparse matrix that can be read row by row.
pub trait SparseRows<T>: Sync {
    /// Number of rows.
    fn num_rows(&self) -> usize;
    /// Number of columns.
    fn num_cols(&self) -> usize;
    /// Calls `visit(column, value)` for each stored element of a row that lies inside of the matrix, explicit zeros
    /// included, in the order of the columns.
    fn for_each_entry(&self, row: usize, visit: impl FnMut(usize, T));
}

impl<T: Element> SparseRows<T> for CsrView<'_, T> {
    fn num_rows(&self) -> usize {
        self.num_rows
    }

    fn num_cols(&self) -> usize {
        self.num_cols
    }

    fn for_each_entry(&self, row: usize, mut visit: impl FnMut(usize, T)) {
        for entry in self.row_offsets[row] as usize..self.row_offsets[row + 1] as usize {
            visit(self.col_indices[entry] as usize, self.values[entry]);
        }
    }
}

impl<T: Element> SparseRows<T> for BcsrView<'_, T> {
    fn num_rows(&self) -> usize {
        self.num_rows
    }

    fn num_cols(&self) -> usize {
        self.num_cols
    }

    fn for_each_entry(&self, row: usize, mut visit: impl FnMut(usize, T)) {
        let (block_row, row_in_block) = (row / self.block.rows, row % self.block.rows);
        for block in self.row_offsets[block_row] as usize..self.row_offsets[block_row + 1] as usize {
            let first_col = self.col_indices[block] as usize * self.block.cols;
            let first_value = (block * self.block.rows + row_in_block) * self.block.cols;
            for at in 0..self.block.cols.min(self.num_cols - first_col) {
                visit(first_col + at, self.values[first_value + at]);
            }
        }
    }
}

/// Rows are the matrix' own, whatever their order; each costs as much as its window stores columns.
impl<T: Element> SparseRows<T> for WcsrView<'_, T> {
    fn num_rows(&self) -> usize {
        self.num_rows
    }

    fn num_cols(&self) -> usize {
        self.num_cols
    }

    fn for_each_entry(&self, row: usize, visit: impl FnMut(usize, T)) {
        self.for_each_stored(row, visit);
    }
}

/// Rows of the exact C = alpha A B + beta C.
#[derive(Clone, Debug)]
pub struct Exact {
    /// The rows of C that `values` and `magnitudes` hold, in their order.
    rows: Vec<usize>,
    /// The number of rows of C.
    num_rows: usize,
    /// The rows of C.
    values: Dense<f64>,
    /// |alpha| |A| |B| + |beta| |C| in the place of each value: what a rounding on the way is relative to.
    magnitudes: Dense<f64>,
}

impl Exact {
    /// The rows of C that are held.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The values of these rows, in their order.
    pub fn values(&self) -> &Dense<f64> {
        &self.values
    }
}

/// C = alpha A B + beta C in float64 (in about twice that precision for `f64` input), row-major.
///
/// With `beta = 0` the elements of C are not read, with `alpha = 0` those of A and B are not: a NaN in them does not
/// reach the result. Apart from that NaN and infinity take the way that IEEE 754 prescribes.
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
) -> Result<Exact, PlanError> {
    spmm_rows(alpha, a, b, beta, c, &(0..a.num_rows()).collect::<Vec<_>>())
}

/// Some rows of what [`spmm`] computes, where all are too many.
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
) -> Result<Exact, PlanError> {
    let product = Product::new(alpha, a, b, beta, c)?;
    // The product of two f32 is exact in float64, and a sum of them as good as exact beside any f32 one.
    let (values, magnitudes) = match T::DTYPE {
        Dtype::F64 => product.exact::<Compensated>(rows),
        Dtype::Bf16 | Dtype::F16 | Dtype::F32 => product.exact::<Plain>(rows),
    };
    Ok(Exact { rows: rows.to_vec(), num_rows: a.num_rows(), values, magnitudes })
}

/// Up to `count` rows spread over a matrix, its first and last among them.
pub fn sample_rows(num_rows: usize, count: usize) -> Vec<usize> {
    if count >= num_rows {
        return (0..num_rows).collect();
    }
    (0..count).map(|i| (i as u128 * (num_rows - 1) as u128 / count.saturating_sub(1).max(1) as u128) as usize).collect()
}
