//! What the models of the families share.

use super::Question;
use super::constants::{CLEAR, COPY, LAUNCH, MEMORY, PLACE_ENTRY, PREPARE, UPLOAD, by_width};
use super::cost::{Cost, Part};
use super::device::DeviceDescription;
use super::format::Format;
use super::survey::Fit;
use crate::formats::CsrPattern;

/// The multiprocessors of the device that the rates were measured on.
const MEASURED_WITH: f64 = 132.0;

/// A question about a matrix.
#[derive(Clone, Copy)]
pub(super) struct Problem<'a> {
    pub question: &'a Question,
    /// M.
    pub num_rows: usize,
    /// K.
    pub num_inner: usize,
    pub num_entries: u64,
}

/// What a model says of a format.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    pub format: Format,
    pub cost: Cost,
    /// Seconds.
    pub preparation: f64,
    /// Of A on the device.
    pub bytes: u64,
    /// Elements of A, zeros included.
    pub stored: u64,
    /// Rows of B for each tile of columns.
    pub fetched: u64,
    /// Multiplications and additions, those with zeros and in unused columns included.
    pub operations: f64,
    /// The kernel, or what else there is to say.
    pub note: &'static str,
}

impl<'a> Problem<'a> {
    pub(super) fn new(matrix: &CsrPattern, question: &'a Question) -> Self {
        Self {
            question,
            num_rows: matrix.num_rows(),
            num_inner: matrix.num_cols(),
            num_entries: matrix.num_entries() as u64,
        }
    }

    pub(super) fn device(&self) -> &'a DeviceDescription {
        &self.question.device
    }

    pub(super) fn element_bytes(&self) -> f64 {
        self.question.dtype.size_bytes() as f64
    }

    pub(super) fn num_cols(&self) -> f64 {
        self.question.num_cols as f64
    }

    pub(super) fn threads(&self) -> f64 {
        rayon::current_num_threads() as f64
    }

    /// Tiles across N.
    pub(super) fn panels(&self, tile_n: usize) -> f64 {
        self.question.num_cols.div_ceil(tile_n) as f64
    }

    /// Bytes of C.
    pub(super) fn c_bytes(&self) -> f64 {
        self.num_rows as f64 * self.num_cols() * self.question.output.size_bytes() as f64
    }

    /// C, written once.
    pub(super) fn store(&self) -> Part {
        Part::at(self.c_bytes(), MEMORY)
    }

    /// Bytes of A from memory: once where it stays in L2, else once for each of so many passes.
    pub(super) fn a_traffic(&self, bytes: f64, passes: f64) -> f64 {
        if bytes <= self.device().resident_bytes() { bytes } else { bytes * passes }
    }

    /// Bytes of B from memory, of which `passes` parts of `width_bytes` a row are used in turn and each of which `fit` says how
    /// often windows fetch its rows: each row once, and where a part does not stay in L2 each stray one again.
    pub(super) fn b_traffic(&self, fit: &Fit, width_bytes: f64, passes: f64) -> f64 {
        let (fetched, inner) = (fit.num_columns as f64, self.num_inner as f64);
        let stays = inner * width_bytes <= self.device().resident_bytes();
        let strays = if stays || fetched == 0.0 { 0.0 } else { fit.num_strays as f64 / fetched };
        let rows = fetched.min(inner) + strays * (fetched - inner).max(0.0);
        rows * (width_bytes * passes).min(self.num_cols() * self.element_bytes())
    }

    /// What `amount` is on this device to one of as many multiprocessors as the rates were measured with.
    pub(super) fn per_share(&self, amount: f64) -> f64 {
        amount / self.device().share()
    }

    /// Multiprocessors that work on so many tiles.
    pub(super) fn workers(&self, tiles: f64) -> f64 {
        tiles.clamp(1.0, f64::from(self.device().num_multiprocessors.max(1)))
    }

    /// The part of a measured rate that so many tiles reach.
    pub(super) fn busy_share(&self, tiles: f64) -> f64 {
        self.workers(tiles) / MEASURED_WITH
    }

    /// What one multiprocessor takes for what all take so long for.
    pub(super) fn per_worker(&self, part: Part) -> Part {
        Part { seconds: part.seconds * MEASURED_WITH, ..part }
    }

    /// A launch that copies B, where its lines are no multiple of `columns` elements and tensor copies cannot read it; a B without gaps is
    /// assumed.
    pub(super) fn aligned_copy(&self, columns: usize) -> Part {
        if self.question.num_cols.is_multiple_of(columns) {
            return Part::NONE;
        }
        let padded = self.question.num_cols.next_multiple_of(columns);
        let bytes = self.num_inner as f64 * (self.question.num_cols + padded) as f64 * self.element_bytes();
        Part::times(1.0, LAUNCH).and(Part::at(bytes, by_width(COPY, self.num_inner)))
    }

    /// Seconds to put the entries into blocks or windows of so many bytes and to bring these to the device.
    pub(super) fn build(&self, bytes: u64) -> f64 {
        let placing = self.num_entries as f64 * PLACE_ENTRY.value / self.threads();
        PREPARE.value + placing + bytes as f64 * (1.0 / CLEAR.value + 1.0 / UPLOAD.value)
    }
}
