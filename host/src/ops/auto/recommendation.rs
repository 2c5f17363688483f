//! What is recommended, and why.

use core::fmt;

use super::cost::{Bound, Cost};
use super::device::DeviceDescription;
use super::format::Format;
use super::model::Estimate;
use crate::ops::Refusal;

/// A format that serves the question, with its predicted time.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The format.
    pub format: Format,
    /// The parts of one launch.
    pub cost: Cost,
    /// Seconds before the first launch, on the host and for the upload.
    pub preparation_seconds: f64,
    /// Launches that share the preparation.
    pub times: u64,
    /// Bytes of A on the device.
    pub bytes: u64,
    /// Elements of A that are stored and multiplied, zeros included.
    pub stored_elements: u64,
    /// Entries over stored elements, 0 to 1; 0 where nothing is stored.
    pub fill: f64,
    /// Rows of B that are fetched for each tile of columns.
    pub fetched_rows: u64,
    /// Multiplications and additions of one launch, those with zeros included.
    pub operations: f64,
    /// The kernel, where its name says more than the format's.
    pub note: &'static str,
}

impl Candidate {
    pub(super) fn new(estimate: Estimate, num_entries: u64, times: u64) -> Self {
        let Estimate { format, cost, preparation, bytes, stored, fetched, operations, note } = estimate;
        let fill = if stored == 0 { 0.0 } else { num_entries as f64 / stored as f64 };
        Self {
            format,
            cost,
            preparation_seconds: preparation,
            times: times.max(1),
            bytes,
            stored_elements: stored,
            fill,
            fetched_rows: fetched,
            operations,
            note,
        }
    }

    /// Predicted seconds of one launch.
    pub fn launch_seconds(&self) -> f64 {
        self.cost.seconds()
    }

    /// Predicted seconds of one product, with its share of the preparation: what candidates are ranked by.
    pub fn seconds(&self) -> f64 {
        self.launch_seconds() + self.preparation_seconds / self.times as f64
    }

    /// What one launch is bound by.
    pub fn bound(&self) -> Bound {
        self.cost.bound().0
    }

    /// Whether records of the kernels as they are support the predicted time of a launch.
    pub fn is_measured(&self) -> bool {
        self.cost.is_measured()
    }
}

/// Microseconds with one decimal.
struct Micros(f64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} us", self.0 * 1e6)
    }
}

/// One line: the format, the times, the reasons, and whether they are measured.
impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bound, part) = self.cost.bound();
        write!(
            f,
            "{:12} {} a launch, {} prepared; {} bytes, {:.1} % full, {} rows of B fetched, {:.2} GFLOP; bound by {bound} ({}; {})",
            self.format,
            Micros(self.launch_seconds()),
            Micros(self.preparation_seconds),
            self.bytes,
            self.fill * 100.0,
            self.fetched_rows,
            self.operations * 1e-9,
            Micros(part.seconds),
            if self.is_measured() { "measured constants" } else { "predicted, not measured" },
        )
    }
}

/// A format that was passed over before its fit was counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassedOver {
    /// The format.
    pub format: Format,
    /// Seconds of a product that it takes at least, by the lengths of rows alone; more than the best candidate's.
    pub least_seconds: f64,
}

/// A format that does not serve the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The format.
    pub format: Format,
    /// Why.
    pub refusal: Refusal,
}

/// The formats, best first. Each of [`Format::all`] is in one of the three lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// The device that was predicted for.
    pub device: DeviceDescription,
    /// The formats that serve the question, by [`Candidate::seconds`].
    pub candidates: Vec<Candidate>,
    /// Those whose bound excluded them.
    pub passed_over: Vec<PassedOver>,
    /// Those that do not serve it.
    pub refused: Vec<Refused>,
}

impl Recommendation {
    /// The best format; `None` where none serves the question.
    pub fn best(&self) -> Option<&Candidate> {
        self.candidates.first()
    }

    /// What is predicted of a format, where it is a candidate.
    pub fn candidate(&self, format: Format) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.format == format)
    }
}

/// A line for each format.
impl fmt::Display for Recommendation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "on {}", self.device)?;
        for candidate in &self.candidates {
            writeln!(f, "{candidate}")?;
        }
        for PassedOver { format, least_seconds } in &self.passed_over {
            writeln!(f, "{format:12} passed over: at least {} by the lengths of rows", Micros(*least_seconds))?;
        }
        for Refused { format, refusal } in &self.refused {
            writeln!(f, "{format:12} refused: {refusal}")?;
        }
        Ok(())
    }
}
