//! Is the attention right? Asked before anything is timed.
//!
//! The library's [reference] computes rows of O exactly, and once more as a textbook would in the kernels' types; an
//! implementation's error may be at most twice the textbook's. Beside that every element of O, in a sampled row or not, must
//! have been written: none may still be the poison, a NaN.

use hopper_sparse::ops::attention::AttentionError;
use hopper_sparse::reference::attention::{self as reference, AttentionExact, AttentionRow, AttentionTolerance};

use super::attention_operands::AttentionOperands;
use super::elements::{Elements, with_dtype};
use super::error::BenchError;
use super::operands::{Finding, Verdict};

/// Multiply-adds that a sample costs at most, except that it has at least [`MIN_ROWS`] rows.
const MAX_SAMPLE_PRODUCTS: usize = 600_000_000;
const MIN_ROWS: usize = 64;
const MAX_ROWS: usize = 2048;

/// Rows of the right result, and how far another may be from them.
pub struct AttentionReference {
    exact: AttentionExact,
    tolerance: AttentionTolerance,
}

impl AttentionReference {
    /// Computes the rows.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the problem is not one.
    pub fn of(operands: &AttentionOperands) -> Result<Self, BenchError> {
        let problem = operands.problem();
        let products_per_row = 2 * problem.keys.longest() * problem.head_dim;
        let count = (MAX_SAMPLE_PRODUCTS / products_per_row.max(1)).clamp(MIN_ROWS, MAX_ROWS);
        let rows = reference::some_rows(problem, count, operands.workload.seed);
        let of = |error: AttentionError| BenchError::Library(error.into());
        with_dtype!(problem.dtype, T => {
            let [q, k, v] = operands.views::<T>()?;
            if let Some(sparse) = &operands.sparse {
                let keys_of = |at: AttentionRow| sparse.keys_of(at.sequence, at.head, at.row);
                let exact = reference::attention_to(problem, [q, k, v], &rows, &keys_of).map_err(of)?;
                let tolerance = reference::tolerance_to(problem, [q, k, v], &exact, &keys_of).map_err(of)?;
                return Ok(Self { exact, tolerance });
            }
            let exact = reference::attention(problem, q, k, v, &rows).map_err(of)?;
            let tolerance = reference::tolerance(problem, q, k, v, &exact).map_err(of)?;
            Ok(Self { exact, tolerance })
        })
    }

    /// Compares a result.
    ///
    /// # Errors
    /// [`BenchError::Library`] where it is not of O's size.
    pub fn judge(&self, operands: &AttentionOperands, o: &Elements) -> Result<Verdict, BenchError> {
        let report = with_dtype!(operands.problem().dtype, T => self.exact.compare(operands.o_view::<T>(o)?));
        let report = report.map_err(|error| BenchError::Library(error.into()))?;
        Ok(Verdict {
            error: report.relative_frobenius,
            limit: self.tolerance.values.relative_frobenius,
            finding: match o.count_nan() {
                0 => Finding::Rows(self.tolerance.values.judge(&report)),
                count => Finding::Unwritten(count),
            },
        })
    }
}
