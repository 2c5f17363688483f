//! Is the result right? Asked before anything is timed.
//!
//! The library's [reference] computes rows of C exactly, and once more the plain way; an implementation's error may be
//! at most twice the plain way's. Beside that every element of C, in a sampled row or not, must have been written: none
//! may still be the poison, a NaN.

use core::fmt;

use hopper_sparse::reference::naive::Unit;
use hopper_sparse::reference::{self, Exact, Tolerance};

use super::elements::{Elements, with_dtype};
use super::error::BenchError;
use super::operands::Operands;

/// Multiply-adds that a sample costs at most, except that it has at least [`MIN_ROWS`] rows.
const MAX_SAMPLE_PRODUCTS: u64 = 300_000_000;
const MIN_ROWS: usize = 8;
const MAX_ROWS: usize = 2048;

/// Rows of the right result, and how far another may be from them.
pub struct Reference {
    exact: Exact,
    tolerance: Tolerance,
}

/// How an implementation's result compares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The relative Frobenius error of the rows compared.
    pub error: f64,
    /// The largest that is accepted.
    pub limit: f64,
    /// What the library says of the rows compared.
    pub rows: reference::Verdict,
    /// Elements of C, compared or not, that are not a number though the matrices hold numbers only.
    pub num_nan: usize,
}

impl Verdict {
    /// Whether the result may be called right.
    pub fn is_right(&self) -> bool {
        self.num_nan == 0 && self.rows.is_accepted()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.num_nan > 0 {
            return write!(f, "wrong: {} elements of C are not a number, as if never written", self.num_nan);
        }
        self.rows.fmt(f)
    }
}

impl Reference {
    /// Computes the rows.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the matrices' sizes do not agree.
    pub fn of(operands: &Operands) -> Result<Self, BenchError> {
        let workload = &operands.workload;
        let rows = reference::sample_rows(workload.m, num_rows(operands));
        // One yardstick for all: with 16-bit factors the dense peers and the block kernels use tensor cores.
        let unit = if workload.dtype.size_bytes() == 2 { Unit::TensorCore } else { Unit::Core };
        // C is not read, since beta is 0; only its shape and type matter.
        let c = Elements::poisoned(workload.c_dtype, workload.m * workload.n);
        with_dtype!(workload.dtype, T => with_dtype!(workload.c_dtype, U => {
            let (b, c) = (operands.b_view::<T>()?, operands.c_view::<U>(&c)?);
            let of = |error: hopper_sparse::ops::PlanError| BenchError::Library(error.into());
            let (exact, tolerance) = match operands.bcsr_view::<T>() {
                Some(a) => {
                    let exact = reference::spmm_rows(1.0, &a, b, 0.0, c, &rows).map_err(of)?;
                    let tolerance = reference::naive::tolerance(unit, 1.0, &a, b, 0.0, c, &exact).map_err(of)?;
                    (exact, tolerance)
                }
                None => {
                    let a = operands.csr_view::<T>();
                    let exact = reference::spmm_rows(1.0, &a, b, 0.0, c, &rows).map_err(of)?;
                    let tolerance = reference::naive::tolerance(unit, 1.0, &a, b, 0.0, c, &exact).map_err(of)?;
                    (exact, tolerance)
                }
            };
            Ok(Self { exact, tolerance })
        }))
    }

    /// Compares a result.
    ///
    /// # Errors
    /// [`BenchError::Library`] where it is not of C's size.
    pub fn judge(&self, operands: &Operands, c: &Elements) -> Result<Verdict, BenchError> {
        let report = with_dtype!(operands.workload.c_dtype, U => self.exact.compare(operands.c_view::<U>(c)?));
        let report = report.map_err(|error| BenchError::Library(error.into()))?;
        Ok(Verdict {
            error: report.relative_frobenius,
            limit: self.tolerance.relative_frobenius,
            rows: self.tolerance.judge(&report),
            num_nan: c.count_nan(),
        })
    }
}

/// How many rows are compared: as many as are cheap.
fn num_rows(operands: &Operands) -> usize {
    let workload = &operands.workload;
    let products_per_row = (operands.num_stored() * workload.n as u64).div_ceil(workload.m.max(1) as u64);
    let affordable = MAX_SAMPLE_PRODUCTS / products_per_row.max(1);
    affordable.clamp(MIN_ROWS as u64, MAX_ROWS as u64) as usize
}

#[cfg(test)]
mod tests {
    use half::bf16;
    use hopper_sparse::formats::Layout;

    use super::*;
    use crate::bench::workload::Suite;

    fn operands(name: &str) -> Operands {
        let workloads = Suite::load("smoke").and_then(|suite| suite.workloads(None)).expect("the smoke suite");
        Operands::of(workloads.iter().find(|workload| workload.name == name).expect(name)).expect("generated")
    }

    /// C by float64 on the densified A.
    fn right_result(operands: &Operands) -> Elements {
        let workload = &operands.workload;
        let a = operands.dense_a();
        let element = |row: usize, col: usize| -> f32 {
            let b_at = |inner: usize| match workload.b_layout {
                Layout::RowMajor => inner * workload.n + col,
                Layout::ColumnMajor => col * workload.k + inner,
            };
            (0..workload.k).map(|inner| a.get(row * workload.k + inner) * operands.b.get(b_at(inner))).sum::<f64>()
                as f32
        };
        Elements::from_fn(workload.c_dtype, workload.m * workload.n, |index| match workload.c_layout {
            Layout::RowMajor => element(index / workload.n, index % workload.n),
            Layout::ColumnMajor => element(index % workload.m, index / workload.m),
        })
    }

    fn judge(operands: &Operands, c: &Elements) -> Verdict {
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
        assert_eq!(verdict.num_nan, 1);
        assert!(!verdict.is_right());
        assert!(verdict.to_string().contains("never written"));
    }
}
