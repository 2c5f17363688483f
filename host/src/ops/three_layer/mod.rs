//! Y = X W^T + bias with W in [three layers](crate::formats::ThreeLayer): which kernel, and who multiplies what.
//!
//! [`Linear`] is the problem, [`ThreeLayerPlan`] the choice; both print, and planning needs no GPU. On a device a plan is prepared
//! (`ThreeLayerPlan::prepare`, feature `gpu`) and then launched many times.
//!
//! One thing is not as in a product with a dense W: a zero of W is not always multiplied. Where X has an infinity or a NaN in such a
//! column, Y may have a NaN there or the sum without it.

#[cfg(any(feature = "gpu", feature = "sim"))]
mod launch;
#[cfg(feature = "gpu")]
mod prepared;
#[cfg(feature = "sim")]
mod simulated;

use kernels_gpu::linear::UNIT_COLS;
use kernels_gpu::three_layer::layout::TILE_ROWS;
use kernels_gpu::three_layer::{Arguments, CONFIGURATIONS};

use super::linear::{Linear, LinearError, LinearPlan};
use crate::element::HalfElement;
use crate::formats::ThreeLayer;

#[cfg(feature = "gpu")]
pub use prepared::ThreeLayerPrepared;

/// What was chosen for a problem.
pub type ThreeLayerPlan = LinearPlan<Arguments>;

impl ThreeLayerPlan {
    /// Chooses kernel and splits for `weights`, `num_tokens` tokens and a device with `multiprocessors` multiprocessors.
    ///
    /// # Errors
    /// [`LinearError::Size`].
    pub fn new<T: HalfElement>(
        weights: &ThreeLayer<T>,
        num_tokens: usize,
        multiprocessors: u32,
    ) -> Result<Self, LinearError> {
        let (num_outputs, num_inputs) = (weights.num_rows(), weights.num_cols());
        let problem = Linear { num_outputs, num_inputs, num_tokens, dtype: T::DTYPE };
        // Without columns there is still an output to write.
        let size = (num_outputs.div_ceil(TILE_ROWS), num_inputs.div_ceil(UNIT_COLS).max(1));
        Self::choose(CONFIGURATIONS, problem, size, multiprocessors)
    }
}
