//! Y = X W^T + bias with W as a [bitmap](crate::formats::Bitmap): which kernel, and who multiplies what.
//!
//! [`Linear`] is the problem, [`BitmapPlan`] the choice; both print, and planning needs no GPU. On a device a plan is
//! prepared (`BitmapPlan::prepare`, feature `gpu`) and then launched many times.
//!
//! Each multiprocessor has one block, and each block the same number of units of 256 columns, whatever the shape (as
//! [`kernels_gpu::linear`] describes): so W is split along K where it has too few rows, and never waits for a last wave. How sums are split
//! depends on the shape of W and on the device only, not on X, nor on how many tokens there are up to a panel.

#[cfg(any(feature = "gpu", feature = "sim"))]
mod launch;
#[cfg(feature = "gpu")]
mod prepared;
#[cfg(feature = "sim")]
mod simulated;

use core::fmt;

use kernels_gpu::bitmap::{CONFIGURATIONS, Configuration, Dtype as KernelDtype};
use kernels_gpu::linear::WARPS;

use super::linear::{Linear, LinearError, Pieces};
use crate::element::{Dtype, Element};
use crate::formats::Bitmap;

#[cfg(feature = "gpu")]
pub use prepared::BitmapPrepared;

/// What was chosen for a problem.
#[derive(Clone, Debug)]
#[cfg_attr(not(any(feature = "gpu", feature = "sim")), allow(dead_code, reason = "only a launch reads the lists"))]
pub struct BitmapPlan {
    problem: Linear,
    configuration: &'static Configuration,
    pieces: Pieces,
}

impl BitmapPlan {
    /// Chooses kernel and splits for `weights`, `num_tokens` tokens and a device with `multiprocessors` multiprocessors.
    ///
    /// # Errors
    /// [`LinearError::Dtype`] and [`LinearError::Size`].
    pub fn new<T: Element>(weights: &Bitmap<T>, num_tokens: usize, multiprocessors: u32) -> Result<Self, LinearError> {
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
        let row_blocks = (weights.num_strips() / WARPS) as u32;
        let workers = (multiprocessors / panels).max(1);
        Ok(Self { problem, configuration, pieces: Pieces::deal(row_blocks, weights.num_units() as u32, workers) })
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
        let part = WARPS * kernels_gpu::linear::WARP_ROWS * self.configuration.tokens * size_of::<f32>();
        (self.pieces.num_slots * self.num_panels()) as usize * part
    }

    /// Panels of tokens.
    fn num_panels(&self) -> u32 {
        self.problem.num_tokens.div_ceil(self.configuration.tokens) as u32
    }

    /// Whether there is anything to launch.
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

impl fmt::Display for BitmapPlan {
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
