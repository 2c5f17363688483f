//! How far a result is from the exact one, and how far it may be.

use core::fmt;

use super::Exact;
use crate::element::{Dtype, Element};
use crate::formats::DenseView;
use crate::ops::{PlanError, check_spmm_shapes};

/// How far a result is from the exact one.
///
/// NaN and infinity are compared apart from the finite values: where one is expected (also because the exact value lies
/// beyond the type's range) the same must be found, and nowhere else may one be found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorReport {
    /// Elements compared.
    pub num_elements: u64,
    /// The Frobenius norm of the error over that of the exact result, finite values only; 0 where there is no error.
    pub relative_frobenius: f64,
    /// The largest absolute error, finite values only.
    pub max_abs: f64,
    /// Row and column of the largest absolute error.
    pub max_abs_at: (usize, usize),
    /// Elements where a NaN or an infinity was found and not expected, or the reverse.
    pub num_wrong_specials: u64,
    /// Row and column of the first of them.
    pub first_wrong_special: Option<(usize, usize)>,
}

/// What one element says.
enum Difference {
    /// Both are finite.
    Finite(f64),
    /// The NaN or the infinity that was expected.
    SameSpecial,
    /// A NaN or an infinity on one side only, or different ones.
    WrongSpecial,
}

fn difference<U: Element>(found: U, exact: f64) -> Difference {
    let value = found.to_f64();
    if exact.is_nan() || value.is_nan() {
        return if exact.is_nan() && value.is_nan() { Difference::SameSpecial } else { Difference::WrongSpecial };
    }
    if exact.is_infinite() {
        return if value == exact { Difference::SameSpecial } else { Difference::WrongSpecial };
    }
    if value.is_infinite() {
        // A sum with a few roundings in it may cross into infinity where the exact value only just does not.
        let with_roundings = U::from_f64(exact * (1.0 + 4.0 * U::DTYPE.epsilon())).to_f64();
        return if value == with_roundings { Difference::SameSpecial } else { Difference::WrongSpecial };
    }
    Difference::Finite((value - exact).abs())
}

/// A Frobenius norm whose squares neither overflow nor vanish.
#[derive(Default)]
struct Norm {
    scale: f64,
    sum: f64,
}

impl Norm {
    fn add(&mut self, value: f64) {
        let value = value.abs();
        if value > self.scale {
            self.sum = self.sum * (self.scale / value).powi(2) + 1.0;
            self.scale = value;
        } else if value > 0.0 {
            self.sum += (value / self.scale).powi(2);
        }
    }

    fn value(&self) -> f64 {
        self.scale * self.sum.sqrt()
    }
}

/// `norm / by`, where nothing over nothing is nothing.
fn ratio(norm: f64, by: f64) -> f64 {
    if norm == 0.0 { 0.0 } else { norm / by }
}

impl ErrorReport {
    /// Compares `found(index of the row in `exact.rows`, column)` for every element.
    pub(super) fn of_rows<U: Element>(exact: &Exact, found: impl Fn(usize, usize) -> U) -> Self {
        let (mut error, mut size) = (Norm::default(), Norm::default());
        let mut report = Self {
            num_elements: exact.values.data().len() as u64,
            relative_frobenius: 0.0,
            max_abs: 0.0,
            max_abs_at: (0, 0),
            num_wrong_specials: 0,
            first_wrong_special: None,
        };
        for (index, &row) in exact.rows.iter().enumerate() {
            for col in 0..exact.values.num_cols() {
                let value = exact.values.get(index, col);
                match difference(found(index, col), value) {
                    Difference::Finite(difference) => {
                        error.add(difference);
                        size.add(value);
                        if difference > report.max_abs {
                            (report.max_abs, report.max_abs_at) = (difference, (row, col));
                        }
                    }
                    Difference::SameSpecial => {}
                    Difference::WrongSpecial => {
                        report.num_wrong_specials += 1;
                        report.first_wrong_special.get_or_insert((row, col));
                    }
                }
            }
        }
        report.relative_frobenius = ratio(error.value(), size.value());
        report
    }
}

impl Exact {
    /// Compares the rows that are held with those of a result.
    ///
    /// # Errors
    /// [`PlanError::ShapeMismatch`] where `found` does not have the shape of C.
    pub fn compare<U: Element>(&self, found: DenseView<'_, U>) -> Result<ErrorReport, PlanError> {
        let num_cols = self.values.num_cols();
        check_spmm_shapes((self.num_rows, 0), (0, num_cols), (found.num_rows(), found.num_cols()))?;
        Ok(ErrorReport::of_rows(self, |index, col| found.get(self.rows[index], col)))
    }
}

/// How far a result may be from the exact one: twice as far as a naive kernel's with the same types, and never less
/// than its unavoidable roundings, since a naive kernel may be lucky.
///
/// The roundings are one of the exact value to the output's type, and some of the sum of the terms' magnitudes to the
/// accumulator's: six for an element, and fewer for the norm of many, since they are rarely all unlucky.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// The largest [`ErrorReport::relative_frobenius`] accepted.
    pub relative_frobenius: f64,
    /// The largest [`ErrorReport::max_abs`] accepted.
    pub max_abs: f64,
}

impl Tolerance {
    /// What the naive kernel's error and the size of the exact result allow.
    pub(super) fn new(naive: &ErrorReport, exact: &Exact, output: Dtype, accumulator: Dtype) -> Self {
        let with = |roundings: f64| {
            Self::with_floor(naive, exact, |value, magnitude| {
                rounding(value, output) + roundings * rounding(magnitude, accumulator)
            })
        };
        Self {
            relative_frobenius: with(roundings_on_average(exact.values.data().len())).relative_frobenius,
            max_abs: with(ROUNDINGS_OF_AN_ELEMENT).max_abs,
        }
    }

    /// Twice the naive kernel's error, and never less than what `floor` says of each value and its magnitude.
    pub(super) fn with_floor(naive: &ErrorReport, exact: &Exact, floor: impl Fn(f64, f64) -> f64) -> Self {
        let (mut size, mut roundings) = (Norm::default(), Norm::default());
        let mut largest = 0f64;
        for (&value, &magnitude) in exact.values.data().iter().zip(exact.magnitudes.data()) {
            let rounding = floor(value, magnitude);
            if rounding.is_finite() {
                size.add(value);
                roundings.add(rounding);
                largest = largest.max(rounding);
            }
        }
        let floor = ratio(roundings.value(), size.value());
        Self {
            relative_frobenius: (2.0 * naive.relative_frobenius).max(floor),
            max_abs: (2.0 * naive.max_abs).max(largest),
        }
    }

    /// Whether an error is small enough, in a sentence.
    pub fn judge(&self, report: &ErrorReport) -> Verdict {
        if let Some(at) = report.first_wrong_special {
            return Verdict::WrongSpecials { count: report.num_wrong_specials, at };
        }
        let (found, allowed) = (report.relative_frobenius, self.relative_frobenius);
        let exceeds = |found: f64, allowed: f64| found > allowed || found.is_nan();
        if exceeds(found, allowed) {
            return Verdict::TooFar { found, allowed };
        }
        if exceeds(report.max_abs, self.max_abs) {
            return Verdict::ElementTooFar { found: report.max_abs, allowed: self.max_abs, at: report.max_abs_at };
        }
        Verdict::Accepted { found, allowed }
    }
}

/// How many roundings of the sum of the magnitudes one sum may be off by.
///
/// Where terms have either sign, each partial sum's rounding is random: the error is 0.4 to 0.5 roundings of the magnitude in the
/// mean square, more than 2 in one sum of 700, more than 3 in one of some 20,000, and 20 times rarer with each further one
/// (docs/decisions/roundings-of-a-lucky-sum.md): more than 6 in one of 10^8.
pub(super) const ROUNDINGS_OF_AN_ELEMENT: f64 = 6.0;

/// As [`ROUNDINGS_OF_AN_ELEMENT`], in the mean square over that many sums: one, and of few sums what a single one may add.
fn roundings_on_average(num_sums: usize) -> f64 {
    1.0 + (ROUNDINGS_OF_AN_ELEMENT - 1.0) / (num_sums.max(1) as f64).sqrt()
}

/// The most that rounding to a type can change a value by; the smallest positive value bounds it from below.
pub(super) fn rounding(value: f64, dtype: Dtype) -> f64 {
    let smallest_exponent = match dtype {
        Dtype::Bf16 => -133,
        Dtype::F16 => -24,
        Dtype::F32 => -149,
        Dtype::F64 => -1074,
    };
    let relative = value.abs() * dtype.epsilon() / 2.0;
    if value == 0.0 { 0.0 } else { relative.max(2f64.powi(smallest_exponent)) }
}

/// What a [`Tolerance`] says of a result.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// The error is within the tolerance; both are relative Frobenius norms.
    Accepted {
        /// The error.
        found: f64,
        /// The largest accepted.
        allowed: f64,
    },
    /// The error's relative Frobenius norm is too large.
    TooFar {
        /// The error.
        found: f64,
        /// The largest accepted.
        allowed: f64,
    },
    /// The absolute error of an element is too large.
    ElementTooFar {
        /// The error.
        found: f64,
        /// The largest accepted.
        allowed: f64,
        /// Row and column of the element.
        at: (usize, usize),
    },
    /// NaN or infinity was found where it was not expected, or the reverse.
    WrongSpecials {
        /// Elements concerned.
        count: u64,
        /// Row and column of the first.
        at: (usize, usize),
    },
}

impl Verdict {
    /// Whether the result is as good as it must be.
    pub fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted { .. })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted { found, allowed } => {
                write!(f, "right: the relative error is {found:.2e}, and {allowed:.2e} is allowed")
            }
            Self::TooFar { found, allowed } => {
                write!(f, "wrong: the relative error is {found:.2e}, but only {allowed:.2e} is allowed")
            }
            Self::ElementTooFar { found, allowed, at: (row, col) } => {
                write!(f, "wrong: element ({row}, {col}) is off by {found:.2e}, but only {allowed:.2e} is allowed")
            }
            Self::WrongSpecials { count, at: (row, col) } => write!(
                f,
                "wrong: {count} elements, first ({row}, {col}), are NaN or infinite where they should not be, or the reverse"
            ),
        }
    }
}
