//! The data of a workload, as the harness sees it: arrays that are read, one that is written, and what it should hold.

use core::fmt;

use hopper_sparse::Dtype;
use hopper_sparse::reference;

use super::elements::Elements;
use super::error::BenchError;
use super::record::Row;
use super::workspace::Cache;

/// The data of a workload on the host.
pub trait Operands: Sized {
    /// The problem that an implementation is asked whether it takes.
    type Problem;
    /// What the right result is, or a sample of it.
    type Reference;

    /// The problem, its sizes known.
    fn problem(&self) -> &Self::Problem;

    /// The arrays that lie in every set of a [`Workspace`](super::workspace::Workspace), in the order of `inputs` there.
    fn inputs(&self) -> Vec<&Elements>;

    /// The type and the number of the elements of the result.
    fn output(&self) -> (Dtype, usize);

    /// Computes what results are compared with.
    ///
    /// # Errors
    /// [`BenchError::Library`] where sizes do not agree.
    fn reference(&self) -> Result<Self::Reference, BenchError>;

    /// Compares a result.
    ///
    /// # Errors
    /// [`BenchError::Library`] where it is not of the result's size.
    fn judge(&self, reference: &Self::Reference, output: &Elements) -> Result<Verdict, BenchError>;

    /// Fills in the columns of a record that name the problem.
    fn describe(&self, row: &mut Row);

    /// Bytes of a set: all inputs and the result.
    fn set_bytes(&self) -> u64 {
        let (dtype, len) = self.output();
        let inputs: usize = self.inputs().iter().map(|input| input.as_bytes().len()).sum();
        (inputs + len * dtype.size_bytes()) as u64
    }

    /// How many sets a device with `l2_bytes` of cache takes in turn.
    fn num_sets(&self, cache: Cache, l2_bytes: u64) -> usize {
        cache.num_sets(self.set_bytes(), l2_bytes)
    }
}

/// How an implementation's result compares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The relative Frobenius error of the rows compared.
    pub error: f64,
    /// The largest that is accepted.
    pub limit: f64,
    /// What is said of it.
    pub finding: Finding,
}

/// What a comparison finds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Finding {
    /// The library compared rows; this is what it says.
    Rows(reference::Verdict),
    /// So many elements of the result, compared or not, are not a number though the inputs hold numbers only.
    Unwritten(usize),
    /// Nothing but the two numbers is known.
    Numbers,
}

/// A peer is timed whose error is less than so many times what is allowed.
///
/// NOTE: the bound is that of this library. A peer that sums in another order, or rounds once more, may be beyond it by a little
/// where it is no less useful, and leaving it out would make the contest easier.
pub const NEAR: f64 = 2.0;

impl Verdict {
    /// Whether the result is beyond the bound by less than [`NEAR`] times.
    pub fn is_near(&self) -> bool {
        use reference::Verdict::{ElementTooFar, TooFar};
        match self.finding {
            Finding::Rows(TooFar { found, allowed } | ElementTooFar { found, allowed, .. }) => found < NEAR * allowed,
            Finding::Rows(_) | Finding::Unwritten(_) => false,
            Finding::Numbers => self.error < NEAR * self.limit,
        }
    }

    /// Whether the result may be called right.
    pub fn is_right(&self) -> bool {
        match self.finding {
            Finding::Rows(rows) => rows.is_accepted(),
            Finding::Unwritten(_) => false,
            Finding::Numbers => self.error <= self.limit,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.finding {
            Finding::Rows(rows) => rows.fmt(f),
            Finding::Unwritten(count) => {
                write!(f, "wrong: {count} elements of the result are not a number, as if never written")
            }
            Finding::Numbers => {
                let Self { error, limit, .. } = self;
                let word = if self.is_right() { "right" } else { "wrong" };
                write!(f, "{word}: the relative error is {error:.2e}, and {limit:.2e} is allowed")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_right_is_less_than_twice_what_is_allowed() {
        let verdict = |finding| Verdict { error: 1.0, limit: 3.0, finding };
        let off_by = |found| Finding::Rows(reference::Verdict::ElementTooFar { found, allowed: 2.0, at: (0, 0) });
        assert!(verdict(off_by(3.9)).is_near());
        for finding in [off_by(4.0), off_by(f64::NAN), Finding::Unwritten(1)] {
            assert!(!verdict(finding).is_near(), "{finding:?}");
        }
        let special = reference::Verdict::WrongSpecials { count: 1, at: (0, 0) };
        assert!(!verdict(Finding::Rows(special)).is_near());
        assert!(!Verdict { error: 6.0, limit: 3.0, finding: Finding::Numbers }.is_near());
    }
}
