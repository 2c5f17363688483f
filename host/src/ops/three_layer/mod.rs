//! Y = X W^T + bias with W in [three layers](crate::formats::ThreeLayer): which kernel, and who multiplies what.
//!
//! [`Linear`] is the problem, [`ThreeLayerPlan`] the choice; both print, and planning needs no GPU. On a device a plan is prepared
//! (`ThreeLayerPlan::prepare`, feature `gpu`) and then launched many times.
//!
//! Work is dealt as in the other [linear layers](crate::ops::linear): each multiprocessor has one block, and each block as many units of
//! columns as any other.
//!
//! One thing is not as in a product with a dense W: a zero of W is not always multiplied. Where X has an infinity or a NaN in such a
//! column, Y may have a NaN there or the sum without it.

#[cfg(any(feature = "gpu", feature = "sim"))]
mod launch;
#[cfg(feature = "gpu")]
mod prepared;
#[cfg(feature = "sim")]
mod simulated;

use core::fmt;

use kernels_gpu::linear::{UNIT_COLS, WARP_ROWS, WARPS};
use kernels_gpu::three_layer::layout::TILE_ROWS;
use kernels_gpu::three_layer::{CONFIGURATIONS, Configuration, Dtype as KernelDtype};

use super::linear::{Linear, LinearError, Pieces};
use crate::element::{Dtype, HalfElement};
use crate::formats::ThreeLayer;

#[cfg(feature = "gpu")]
pub use prepared::ThreeLayerPrepared;

/// What was chosen for a problem.
#[derive(Clone, Debug)]
#[cfg_attr(not(any(feature = "gpu", feature = "sim")), allow(dead_code, reason = "only a launch reads the lists"))]
pub struct ThreeLayerPlan {
    problem: Linear,
    configuration: &'static Configuration,
    pieces: Pieces,
}

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
        problem.check()?;
        let of_type = || CONFIGURATIONS.iter().filter(|configuration| serves(configuration, problem.dtype));
        // The narrowest panel that holds all tokens; else the widest.
        let configuration = of_type()
            .filter(|configuration| configuration.tokens >= num_tokens)
            .min_by_key(|configuration| configuration.tokens)
            .or_else(|| of_type().max_by_key(|configuration| configuration.tokens))
            .ok_or(LinearError::Dtype { dtype: problem.dtype })?;
        let panels = num_tokens.div_ceil(configuration.tokens).max(1) as u32;
        let row_blocks = num_outputs.div_ceil(TILE_ROWS) as u32;
        // Without columns there is still an output to write.
        let units = num_inputs.div_ceil(UNIT_COLS).max(1) as u32;
        let workers = (multiprocessors / panels).max(1);
        Ok(Self { problem, configuration, pieces: Pieces::deal(row_blocks, units, workers) })
    }

    /// The problem.
    pub fn problem(&self) -> &Linear {
        &self.problem
    }

    /// The kernel.
    pub fn configuration(&self) -> &'static Configuration {
        self.configuration
    }

    /// Blocks of the launch: workers, and panels of tokens.
    pub fn grid(&self) -> (u32, u32) {
        (self.pieces.num_workers(), self.num_panels())
    }

    /// Parts of sums that are added up.
    pub fn num_parts(&self) -> u32 {
        self.pieces.num_slots
    }

    /// Memory for parts of sums, in bytes, for each stream that launches.
    pub fn workspace_bytes(&self) -> usize {
        let part = WARPS * WARP_ROWS * self.configuration.tokens * size_of::<f32>();
        (self.pieces.num_slots * self.num_panels()) as usize * part
    }

    /// Panels of tokens.
    fn num_panels(&self) -> u32 {
        self.problem.num_tokens.div_ceil(self.configuration.tokens) as u32
    }

    /// Whether there is nothing to launch.
    #[cfg(any(feature = "gpu", feature = "sim"))]
    fn is_empty(&self) -> bool {
        self.problem.num_outputs == 0 || self.problem.num_tokens == 0
    }
}

fn serves(configuration: &Configuration, dtype: Dtype) -> bool {
    match configuration.dtype {
        KernelDtype::Bf16 => dtype == Dtype::Bf16,
        KernelDtype::F16 => dtype == Dtype::F16,
    }
}

impl fmt::Display for ThreeLayerPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (workers, panels) = self.grid();
        write!(
            f,
            "{}: {} row blocks of {} units on {workers} workers, {panels} panels of {} tokens, {} parts",
            self.configuration.spec.name,
            self.pieces.row_blocks,
            self.pieces.units,
            self.configuration.tokens,
            self.pieces.num_slots
        )
    }
}
