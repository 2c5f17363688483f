//! `--check`: how far O and the log-sum-exps are from the float64 reference.

use core::fmt;

use hopper_sparse::Element;
use hopper_sparse::ops::attention::Attention;
use hopper_sparse::reference::attention::{self as reference, AttentionTolerance};
use hopper_sparse::reference::{ErrorReport, Verdict};

use super::{Inputs, Output};
use crate::error::{CliError, Result};
use crate::progress;

/// Multiply-adds that the reference may do; beyond it, it is asked for some of the rows only.
const MOST_PRODUCTS: u128 = 4_000_000_000;
/// The fewest rows that are compared where there are more.
const LEAST_ROWS: usize = 256;

/// What the comparison found.
#[derive(Clone, Debug)]
pub struct Check {
    /// What is said of O.
    pub o: Verdict,
    /// What is said of the log-sum-exps.
    pub lse: Verdict,
    /// How far O is from the reference.
    pub error: ErrorReport,
    /// How far O and the log-sum-exps may be.
    pub tolerance: AttentionTolerance,
    /// Rows compared, and all there are.
    pub num_rows: [usize; 2],
    /// Elements of O, compared or not, that are not a number.
    pub num_nan: usize,
}

impl Check {
    /// Whether all is within the tolerance.
    pub fn is_accepted(&self) -> bool {
        self.num_nan == 0 && self.o.is_accepted() && self.lse.is_accepted()
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.num_nan > 0 {
            write!(f, "wrong: {} elements of O are not a number", self.num_nan)
        } else if self.o.is_accepted() && !self.lse.is_accepted() {
            write!(f, "wrong in its log-sum-exps, {}", self.lse)
        } else {
            self.o.fmt(f)
        }
    }
}

/// Compares `output` with the reference.
///
/// # Errors
/// A failure where it does not have the problem's shapes.
pub fn run<T: Element>(problem: &Attention, inputs: &Inputs<T>, output: &Output<T>, seed: u64) -> Result<Check> {
    let spinner = progress::spinner("checking against float64");
    let [num_heads, num_queries] = problem.lse_shape();
    let num_rows = num_heads * num_queries;
    let rows = match num_rows_to_check(num_rows, problem.num_pairs() * 2 * problem.head_dim as u128) {
        all if all == num_rows => reference::rows(problem),
        some => reference::some_rows(problem, some, seed),
    };
    let (q, k, v) = (inputs.q.view(), inputs.k.view(), inputs.v.view());
    let exact = reference::attention(problem, q, k, v, &rows).map_err(CliError::failure)?;
    let tolerance = reference::tolerance(problem, q, k, v, &exact).map_err(CliError::failure)?;
    let error = exact.compare(output.o.view()).map_err(CliError::failure)?;
    let lse_error = exact.compare_lse(output.lse.view()).map_err(CliError::failure)?;
    let num_nan = output.o.data().iter().filter(|element| element.to_f32().is_nan()).count();
    let (o, lse) = (tolerance.values.judge(&error), tolerance.lse.judge(&lse_error));
    spinner.finish_and_clear();
    Ok(Check { o, lse, error, tolerance, num_rows: [rows.len(), num_rows], num_nan })
}

/// All rows where that is quick, else as many as an even share of the work allows.
fn num_rows_to_check(num_rows: usize, num_products: u128) -> usize {
    if num_products <= MOST_PRODUCTS {
        return num_rows;
    }
    ((num_rows as f64 * MOST_PRODUCTS as f64 / num_products as f64) as usize).max(LEAST_ROWS).min(num_rows)
}

#[cfg(test)]
mod tests {
    use hopper_sparse::ops::attention::{Sequences, Window};
    use hopper_sparse::{Dtype, bf16};

    use super::*;
    use crate::attention::draw;

    #[test]
    fn large_problems_are_sampled() {
        assert_eq!(num_rows_to_check(1000, 1_000_000), 1000);
        assert_eq!(num_rows_to_check(1 << 20, 1 << 42), 953);
        assert_eq!(num_rows_to_check(1 << 20, 1 << 50), LEAST_ROWS);
        assert_eq!(num_rows_to_check(3, u128::MAX), 3);
    }

    #[test]
    fn the_textbook_is_right_and_what_is_not_is_named() {
        let problem = Attention::new(Sequences::of_lengths(&[9, 20]), 2, 16, Dtype::Bf16).with_window(Window::CAUSAL);
        let inputs = draw::<bf16>(&problem, 4);
        let rows = reference::rows(&problem);
        let (q, k, v) = (inputs.q.view(), inputs.k.view(), inputs.v.view());
        let (values, lse) = reference::textbook(&problem, q, k, v, &rows).expect("a problem");
        let mut output = Output::<bf16>::poisoned(&problem);
        let unwritten = run(&problem, &inputs, &output, 0).expect("shapes agree");
        assert!(unwritten.to_string().contains("928 elements of O are not a number"), "{unwritten}");

        let mut o = output.o.view_mut();
        for (index, row) in rows.iter().enumerate() {
            let (batch, token) = problem.queries.place(row.sequence, row.row);
            o.row_mut(batch, token, row.head).copy_from_slice(&values.data()[16 * index..16 * (index + 1)]);
            output.lse.data_mut()[row.head * 29 + token] = lse[index];
        }
        let right = run(&problem, &inputs, &output, 0).expect("shapes agree");
        assert!(right.is_accepted(), "{right}");
        output.lse.data_mut()[3] += 0.5;
        let wrong = run(&problem, &inputs, &output, 0).expect("shapes agree");
        assert!(!wrong.is_accepted() && wrong.to_string().starts_with("wrong in its log-sum-exps"), "{wrong}");
    }
}
