//! `--check`: how far the result is from the float64 reference.

use hopper_sparse::Element;
use hopper_sparse::formats::Dense;
use hopper_sparse::reference::naive::Unit;
use hopper_sparse::reference::{self, ErrorReport, Tolerance, Verdict};

use super::Problem;
use crate::error::{CliError, Result};
use crate::progress;

/// Multiplications that the reference may do; beyond it, it is asked for some of the rows only.
const MOST_PRODUCTS: u64 = 4_000_000_000;

/// What the comparison found.
#[derive(Clone, Debug)]
pub struct Check {
    /// Whether the error is within the tolerance.
    pub accepted: bool,
    /// The sentence that says so.
    pub verdict: Verdict,
    /// How far the result is from the reference.
    pub error: ErrorReport,
    /// How far it may be.
    pub tolerance: Tolerance,
    /// Rows compared.
    pub num_rows: usize,
}

/// Compares `result`, which `unit` added up, with the reference.
///
/// # Errors
/// A failure where the result does not have the shape of C.
pub fn run<T: Element, C: Element>(problem: &Problem<'_, T, C>, result: &Dense<C>, unit: Unit) -> Result<Check> {
    let spinner = progress::spinner("checking against float64");
    let Problem { alpha, a, b, beta, c } = *problem;
    let rows = reference::sample_rows(a.num_rows(), num_rows_to_check(a.num_rows(), a.num_entries(), b.num_cols()));
    let exact = reference::spmm_rows(alpha, &a.view(), b.view(), beta, c.view(), &rows).map_err(CliError::failure)?;
    let tolerance = reference::naive::tolerance(unit, alpha, &a.view(), b.view(), beta, c.view(), &exact);
    let tolerance = tolerance.map_err(CliError::failure)?;
    let error = exact.compare(result.view()).map_err(CliError::failure)?;
    let verdict = tolerance.judge(&error);
    spinner.finish_and_clear();
    Ok(Check { accepted: verdict.is_accepted(), verdict, error, tolerance, num_rows: rows.len() })
}

/// All rows where that is quick, else as many as an even share of the work allows.
fn num_rows_to_check(num_rows: usize, num_entries: usize, num_cols: usize) -> usize {
    let products = (num_entries as u64).saturating_mul(num_cols as u64);
    if products <= MOST_PRODUCTS {
        return num_rows;
    }
    ((num_rows as f64 * MOST_PRODUCTS as f64 / products as f64) as usize).clamp(2, num_rows.max(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_products_are_sampled() {
        assert_eq!(num_rows_to_check(1000, 50_000, 128), 1000);
        assert_eq!(num_rows_to_check(8192, 8192 * 8192, 8192), 59);
        assert_eq!(num_rows_to_check(4, usize::MAX / 8192, 8192), 2);
    }
}
