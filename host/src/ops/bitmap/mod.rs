//! Y = X W^T + bias with W as a [bitmap](crate::formats::Bitmap): which kernel, and who multiplies what.
//!
//! [`Linear`] is the problem, [`BitmapPlan`] the choice; both print, and planning needs no GPU. On a device a plan is
//! prepared (`BitmapPlan::prepare`, feature `gpu`) and then launched many times.

#[cfg(any(feature = "gpu", feature = "sim"))]
mod launch;
#[cfg(feature = "gpu")]
mod prepared;
#[cfg(feature = "sim")]
mod simulated;

use kernels_gpu::bitmap::{Arguments, CONFIGURATIONS};
use kernels_gpu::linear::WARPS;

use super::linear::{Linear, LinearError, LinearPlan};
use crate::element::Element;
use crate::formats::Bitmap;

#[cfg(feature = "gpu")]
pub use prepared::BitmapPrepared;

/// What was chosen for a problem.
pub type BitmapPlan = LinearPlan<Arguments>;

impl BitmapPlan {
    /// Chooses kernel and splits for `weights`, `num_tokens` tokens and a device with `multiprocessors` multiprocessors.
    ///
    /// # Errors
    /// [`LinearError::Dtype`] and [`LinearError::Size`].
    pub fn new<T: Element>(weights: &Bitmap<T>, num_tokens: usize, multiprocessors: u32) -> Result<Self, LinearError> {
        let (num_outputs, num_inputs) = (weights.num_rows(), weights.num_cols());
        let problem = Linear { num_outputs, num_inputs, num_tokens, dtype: T::DTYPE };
        let size = (weights.num_strips() / WARPS, weights.num_units());
        Self::choose(CONFIGURATIONS, problem, size, multiprocessors)
    }
}
