//! Is the product right? Asked before anything is timed.
//!
//! The library's [reference] computes rows of C exactly, and once more the plain way; an implementation's error may be
//! at most twice the plain way's. Beside that every element of C, in a sampled row or not, must have been written: none
//! may still be the poison, a NaN.

use hopper_sparse::Element;
use hopper_sparse::formats::DenseView;
use hopper_sparse::reference::naive::Unit;
use hopper_sparse::reference::{self, Exact, SparseRows, Tolerance};

use super::elements::{Elements, with_dtype};
use super::error::BenchError;
use super::operands::{Finding, Verdict};
use super::product_operands::ProductOperands;

/// Multiply-adds that a sample costs at most, except that it has at least [`MIN_ROWS`] rows.
const MAX_SAMPLE_PRODUCTS: u64 = 300_000_000;
const MIN_ROWS: usize = 8;
const MAX_ROWS: usize = 2048;

/// Rows of the right result, and how far another may be from them.
pub struct Reference {
    exact: Exact,
    tolerance: Tolerance,
}

impl Reference {
    /// Computes the rows.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the matrices' sizes do not agree.
    pub fn of(operands: &ProductOperands) -> Result<Self, BenchError> {
        let product = &operands.product;
        let rows = reference::sample_rows(product.m, num_rows(operands));
        // One yardstick for all: with 16-bit factors the dense peers and the block kernels use tensor cores.
        let unit = if product.dtype.size_bytes() == 2 { Unit::TensorCore } else { Unit::Core };
        // C is not read, since beta is 0; only its shape and type matter.
        let c = Elements::poisoned(product.c_dtype, product.m * product.n);
        with_dtype!(product.dtype, T => with_dtype!(product.c_dtype, U => {
            let (b, c) = (operands.b_view::<T>()?, operands.c_view::<U>(&c)?);
            match operands.bcsr_view::<T>() {
                Some(a) => Self::of_rows(unit, &a, b, c, &rows),
                None => Self::of_rows(unit, &operands.csr_view::<T>(), b, c, &rows),
            }
        }))
    }

    /// Computes some rows of A B. C is not read.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the matrices' sizes do not agree.
    pub fn of_rows<T: Element, U: Element>(
        unit: Unit,
        a: &impl SparseRows<T>,
        b: DenseView<'_, T>,
        c: DenseView<'_, U>,
        rows: &[usize],
    ) -> Result<Self, BenchError> {
        let of = |error: hopper_sparse::ops::PlanError| BenchError::Library(error.into());
        let exact = reference::spmm_rows(1.0, a, b, 0.0, c, rows).map_err(of)?;
        let tolerance = reference::naive::tolerance(unit, 1.0, a, b, 0.0, c, &exact).map_err(of)?;
        Ok(Self { exact, tolerance })
    }

    /// Compares a result.
    ///
    /// # Errors
    /// [`BenchError::Library`] where it is not of C's size.
    pub fn judge(&self, operands: &ProductOperands, c: &Elements) -> Result<Verdict, BenchError> {
        with_dtype!(operands.product.c_dtype, U => self.judge_view(operands.c_view::<U>(c)?, c.count_nan()))
    }

    /// Compares a result in which so many elements are not a number.
    ///
    /// # Errors
    /// [`BenchError::Library`] where it is not of C's size.
    pub fn judge_view<U: Element>(&self, c: DenseView<'_, U>, num_nan: usize) -> Result<Verdict, BenchError> {
        let report = self.exact.compare(c).map_err(|error| BenchError::Library(error.into()))?;
        Ok(Verdict {
            error: report.relative_frobenius,
            limit: self.tolerance.relative_frobenius,
            finding: match num_nan {
                0 => Finding::Rows(self.tolerance.judge(&report)),
                count => Finding::Unwritten(count),
            },
        })
    }
}

/// How many rows are compared: as many as are cheap.
fn num_rows(operands: &ProductOperands) -> usize {
    let product = &operands.product;
    let products_per_row = (operands.num_stored() * product.n as u64).div_ceil(product.m.max(1) as u64);
    let affordable = MAX_SAMPLE_PRODUCTS / products_per_row.max(1);
    affordable.clamp(MIN_ROWS as u64, MAX_ROWS as u64) as usize
}

#[cfg(test)]
mod tests {
    use half::bf16;
    use hopper_sparse::formats::Layout;

    use super::*;
    use crate::bench::product_operands::LastMatrix;
    use crate::bench::product_operands::smoke_product;

    fn operands(name: &str) -> ProductOperands {
        ProductOperands::of(&smoke_product(name), &mut LastMatrix::default()).expect("generated")
    }

    /// C by float64 on the densified A.
    fn right_result(operands: &ProductOperands) -> Elements {
        let product = &operands.product;
        let a = operands.dense_a();
        let element = |row: usize, col: usize| -> f32 {
            let b_at = |inner: usize| match product.b_layout {
                Layout::RowMajor => inner * product.n + col,
                Layout::ColumnMajor => col * product.k + inner,
            };
            (0..product.k).map(|inner| a.get(row * product.k + inner) * operands.b.get(b_at(inner))).sum::<f64>() as f32
        };
        Elements::from_fn(product.c_dtype, product.m * product.n, |index| match product.c_layout {
            Layout::RowMajor => element(index / product.n, index % product.n),
            Layout::ColumnMajor => element(index % product.m, index / product.m),
        })
    }

    fn judge(operands: &ProductOperands, c: &Elements) -> Verdict {
        Reference::of(operands).and_then(|reference| reference.judge(operands, c)).expect("sizes agree")
    }

    #[test]
    fn the_right_result_is_right_in_both_layouts() {
        for name in ["uniform", "bf16-columns", "blocks-ragged", "almost-empty", "one-column"] {
            let operands = operands(name);
            let verdict = judge(&operands, &right_result(&operands));
            assert!(verdict.is_right(), "{name}: {verdict}");
        }
    }

    #[test]
    fn one_element_off_by_a_tenth_is_wrong() {
        let operands = operands("uniform");
        let mut c = right_result(&operands);
        c.as_slice_mut::<f32>()[5] += 0.1;
        assert!(!judge(&operands, &c).is_right());
    }

    #[test]
    fn an_element_not_written_is_wrong() {
        let operands = operands("bf16-columns");
        let mut c = right_result(&operands);
        c.as_slice_mut::<bf16>()[0] = bf16::NAN;
        let verdict = judge(&operands, &c);
        assert_eq!(verdict.finding, Finding::Unwritten(1));
        assert!(!verdict.is_right());
        assert!(verdict.to_string().contains("never written"));
    }
}
