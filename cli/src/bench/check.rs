//! Is the result right? Asked before anything is timed.
//!
//! Sampled rows of C are computed in float64, and again the plain way: one product after the other, added in f32,
//! rounded once to C's type. The error of an element is its distance from the float64 value, over the sum of the
//! magnitudes of its products; an implementation's largest error may be at most twice the plain way's. Beside that,
//! every element of C, sampled or not, must have been written: none may be left at the poison, a NaN.

use half::{bf16, f16};
use hopper_sparse::Dtype;
use rayon::prelude::*;

use super::elements::Elements;
use super::operands::Operands;
use super::random::Random;

/// Multiply-adds that a sample costs at most, except that it has at least [`MIN_ROWS`] rows.
const MAX_SAMPLE_PRODUCTS: u64 = 400_000_000;
const MIN_ROWS: usize = 8;
const MAX_ROWS: usize = 2048;

/// Sampled rows of the right result.
pub struct Reference {
    rows: Vec<ReferenceRow>,
    naive_error: f64,
}

struct ReferenceRow {
    row: usize,
    /// The float64 result.
    exact: Vec<f64>,
    /// The sums of the products' magnitudes.
    magnitude: Vec<f64>,
}

/// How an implementation's result compares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The largest error among the sampled elements; infinite where one is not a number.
    pub error: f64,
    /// The largest that is accepted.
    pub limit: f64,
    /// Elements of C, sampled or not, that are not a number.
    pub num_nan: usize,
}

impl Verdict {
    /// Whether the result may be called right.
    pub fn is_right(&self) -> bool {
        self.num_nan == 0 && self.error <= self.limit
    }
}

impl Reference {
    /// Computes the sample.
    pub fn of(operands: &Operands) -> Self {
        let workload = &operands.workload;
        let computed: Vec<_> = sample_rows(operands)
            .into_par_iter()
            .map(|row| {
                let products = RowProducts::of(operands, row);
                let naive = products.naive.iter().map(|&sum| round_to(workload.c_dtype, sum));
                let error = largest_error(naive, &products.exact, &products.magnitude);
                (ReferenceRow { row, exact: products.exact, magnitude: products.magnitude }, error)
            })
            .collect();
        let naive_error = computed.iter().map(|(_, error)| *error).fold(0.0, f64::max);
        Self { rows: computed.into_iter().map(|(row, _)| row).collect(), naive_error }
    }

    /// Compares a result.
    pub fn judge(&self, operands: &Operands, c: &Elements) -> Verdict {
        let error = self
            .rows
            .par_iter()
            .map(|reference| {
                let found = (0..operands.workload.n).map(|col| c.get(operands.c_index(reference.row, col)));
                largest_error(found, &reference.exact, &reference.magnitude)
            })
            .reduce(|| 0.0, f64::max);
        // Where the plain way happens to be exact, one rounding of the f32 accumulator is still nobody's fault.
        let limit = 2.0 * self.naive_error + f64::from(f32::EPSILON);
        Verdict { error, limit, num_nan: c.count_nan() }
    }
}

/// A row of C, three ways.
struct RowProducts {
    exact: Vec<f64>,
    magnitude: Vec<f64>,
    naive: Vec<f32>,
}

impl RowProducts {
    fn of(operands: &Operands, row: usize) -> Self {
        let n = operands.workload.n;
        let mut sums = Self { exact: vec![0.0; n], magnitude: vec![0.0; n], naive: vec![0.0; n] };
        operands.for_each_entry(row, |col, position| {
            let a = operands.value(position);
            for j in 0..n {
                let b = operands.b.get(operands.b_index(col, j));
                sums.exact[j] += a * b;
                sums.magnitude[j] += (a * b).abs();
                sums.naive[j] += a as f32 * b as f32;
            }
        });
        sums
    }
}

/// The largest distance of `found` from `exact`, relative to `magnitude`; infinite where one is not a number.
fn largest_error(found: impl Iterator<Item = f64>, exact: &[f64], magnitude: &[f64]) -> f64 {
    let mut largest: f64 = 0.0;
    for ((found, exact), magnitude) in found.zip(exact).zip(magnitude) {
        let distance = (found - exact).abs();
        let error = if distance == 0.0 { 0.0 } else { distance / magnitude };
        largest = largest.max(if error.is_nan() { f64::INFINITY } else { error });
    }
    largest
}

fn round_to(dtype: Dtype, value: f32) -> f64 {
    match dtype {
        Dtype::Bf16 => bf16::from_f32(value).to_f64(),
        Dtype::F16 => f16::from_f32(value).to_f64(),
        Dtype::F32 | Dtype::F64 => f64::from(value),
    }
}

/// All rows where that is cheap; else the first, the last and others at random.
fn sample_rows(operands: &Operands) -> Vec<usize> {
    let workload = &operands.workload;
    if workload.m == 0 {
        return Vec::new();
    }
    let products_per_row = (operands.num_stored() * workload.n as u64 / workload.m as u64).max(1);
    let affordable = (MAX_SAMPLE_PRODUCTS / products_per_row) as usize;
    let num_rows = affordable.clamp(MIN_ROWS, MAX_ROWS);
    if num_rows >= workload.m {
        return (0..workload.m).collect();
    }
    let mut random = Random::new(workload.seed);
    let mut rows = vec![0, workload.m - 1];
    rows.extend((2..num_rows).map(|_| random.below(workload.m as u64) as usize));
    rows.sort_unstable();
    rows.dedup();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::workload::Suite;

    fn operands(name: &str) -> Operands {
        let workloads = Suite::load("smoke").and_then(|suite| suite.workloads(None)).expect("the smoke suite");
        Operands::of(workloads.iter().find(|workload| workload.name == name).expect(name)).expect("generated")
    }

    fn right_result(operands: &Operands) -> Elements {
        let (m, n) = (operands.workload.m, operands.workload.n);
        let rows: Vec<Vec<f64>> = (0..m).map(|row| RowProducts::of(operands, row).exact).collect();
        let mut c = vec![0.0; m * n];
        for (row, values) in rows.iter().enumerate() {
            for (col, value) in values.iter().enumerate() {
                c[operands.c_index(row, col)] = *value as f32;
            }
        }
        Elements::from_fn(operands.workload.c_dtype, m * n, |index| c[index])
    }

    #[test]
    fn the_right_result_is_right_in_both_layouts() {
        for name in ["uniform", "bf16-columns", "blocks-ragged", "almost-empty"] {
            let operands = operands(name);
            let verdict = Reference::of(&operands).judge(&operands, &right_result(&operands));
            assert!(verdict.is_right(), "{name}: {verdict:?}");
        }
    }

    #[test]
    fn one_element_off_by_a_hundredth_is_wrong() {
        let operands = operands("uniform");
        let mut c = right_result(&operands);
        if let Elements::F32(values) = &mut c {
            values[5] += 0.01;
        }
        assert!(!Reference::of(&operands).judge(&operands, &c).is_right());
    }

    #[test]
    fn an_element_not_written_is_wrong() {
        let operands = operands("uniform");
        let mut c = right_result(&operands);
        if let Elements::F32(values) = &mut c {
            values[0] = f32::NAN;
        }
        let verdict = Reference::of(&operands).judge(&operands, &c);
        assert_eq!(verdict.num_nan, 1);
        assert!(!verdict.is_right());
    }

    #[test]
    fn a_value_in_an_empty_row_is_wrong() {
        let operands = operands("almost-empty");
        let entries = operands.entries();
        let empty = (0..operands.workload.m)
            .find(|&row| entries.row_offsets[row] == entries.row_offsets[row + 1])
            .expect("almost all rows are empty");
        let mut c = right_result(&operands);
        let index = operands.c_index(empty, 0);
        if let Elements::F32(values) = &mut c {
            values[index] = 1e-30;
        }
        assert!(!Reference::of(&operands).judge(&operands, &c).is_right());
    }
}
