//! What was chosen for a linear layer, whatever the format of its weights.

use core::fmt;

#[cfg(any(feature = "gpu", feature = "sim"))]
use hopper_std::ptx::tensor::CachePolicy;
use kernels_gpu::linear::{Configuration, Dtype as KernelDtype, WARP_ROWS, WARPS};

use super::{Linear, LinearError, Pieces};
use crate::element::Dtype;
#[cfg(any(feature = "gpu", feature = "sim"))]
use crate::element::Element;

/// A plan: kernel, panels of tokens, and who multiplies what. `Arguments` are what the kernels of the weights' format take;
/// [`BitmapPlan`](crate::ops::bitmap::BitmapPlan) and [`ThreeLayerPlan`](crate::ops::three_layer::ThreeLayerPlan) are such plans.
///
/// Each multiprocessor has one block, and each block the same number of units of columns, give or take one, whatever the shape (as
/// [`kernels_gpu::linear`] describes): so W is split along K where it has too few rows, and never waits for a last wave. How sums are
/// split depends on the shape of W and on the device only, not on X, nor on how many tokens there are up to a panel.
#[derive(Clone, Debug)]
#[cfg_attr(not(any(feature = "gpu", feature = "sim")), allow(dead_code, reason = "only a launch reads the lists"))]
pub struct LinearPlan<Arguments: 'static> {
    pub(crate) problem: Linear,
    pub(crate) configuration: &'static Configuration<Arguments>,
    pub(crate) pieces: Pieces,
}

impl<Arguments> LinearPlan<Arguments> {
    /// Chooses among `configurations` for weights of `row_blocks` row blocks and `units` units, and a device with `multiprocessors`
    /// multiprocessors.
    pub(crate) fn choose(
        configurations: &'static [Configuration<Arguments>],
        problem: Linear,
        (row_blocks, units): (usize, usize),
        multiprocessors: u32,
    ) -> Result<Self, LinearError> {
        problem.check()?;
        let of_type = || configurations.iter().filter(|configuration| serves(configuration, problem.dtype));
        // The narrowest panel that holds all tokens; else the widest.
        let configuration = of_type()
            .filter(|configuration| configuration.tokens >= problem.num_tokens)
            .min_by_key(|configuration| configuration.tokens)
            .or_else(|| of_type().max_by_key(|configuration| configuration.tokens))
            .ok_or(LinearError::Dtype { dtype: problem.dtype })?;
        let panels = problem.num_tokens.div_ceil(configuration.tokens).max(1) as u32;
        let workers = (multiprocessors / panels).max(1);
        Ok(Self { problem, configuration, pieces: Pieces::deal(row_blocks as u32, units as u32, workers) })
    }

    /// The problem.
    pub fn problem(&self) -> &Linear {
        &self.problem
    }

    /// The kernel.
    pub fn configuration(&self) -> &'static Configuration<Arguments> {
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
    pub(crate) fn num_panels(&self) -> u32 {
        self.problem.num_tokens.div_ceil(self.configuration.tokens) as u32
    }
}

#[cfg(any(feature = "gpu", feature = "sim"))]
impl<Arguments> LinearPlan<Arguments> {
    /// Whether a matrix of this size and type is what was planned for.
    pub(crate) fn check_weights<T: Element>(&self, num_rows: usize, num_cols: usize) -> Result<(), LinearError> {
        self.problem.check_weights::<T>(num_rows, num_cols)
    }

    /// Whether there is nothing to launch.
    pub(crate) fn is_empty(&self) -> bool {
        self.problem.num_outputs == 0 || self.problem.num_tokens == 0
    }

    /// Words of the counters.
    pub(crate) fn num_counters(&self) -> usize {
        (self.pieces.row_blocks * self.num_panels()) as usize * WARPS
    }

    /// What L2 does with the weights. Panels of tokens read W one beside the other: for more than one, what the first reads is kept
    /// for the others.
    pub(crate) fn policy(&self) -> CachePolicy {
        if self.num_panels() == 1 { CachePolicy::EVICT_FIRST } else { CachePolicy::EVICT_NORMAL }
    }
}

fn serves<Arguments>(configuration: &Configuration<Arguments>, dtype: Dtype) -> bool {
    match configuration.dtype {
        KernelDtype::Bf16 => dtype == Dtype::Bf16,
        KernelDtype::F16 => dtype == Dtype::F16,
    }
}

impl<Arguments> fmt::Display for LinearPlan<Arguments> {
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
