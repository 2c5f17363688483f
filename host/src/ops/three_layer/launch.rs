//! What a launch is given, the same on a device and in the simulator: arrays, tensor map, arguments.

use std::borrow::Cow;

use kernels_gpu::linear::{WARPS, Work};
use kernels_gpu::three_layer::layout::TILE_COLS;
use kernels_gpu::three_layer::{Arguments, CachePolicy};

use super::ThreeLayerPlan;
use crate::element::HalfElement;
use crate::formats::ThreeLayer;
use crate::ops::linear::{LinearError, Operands};
use crate::tensor_map::{DevicePtr, TensorMapSpec};

/// Where the weights and the plan's lists lie.
#[derive(Clone, Copy)]
pub(super) struct Lists {
    pub(super) tiles: DevicePtr,
    pub(super) tile_offsets: DevicePtr,
    pub(super) residual_offsets: DevicePtr,
    pub(super) residual: DevicePtr,
    pub(super) pieces: DevicePtr,
}

/// The words of all tiles; where there is none, zeros for the tensor map of an X that has no column.
pub(super) fn words<T>(weights: &ThreeLayer<T>) -> Cow<'_, [u32]> {
    if weights.words().is_empty() { Cow::Owned(vec![0; 4]) } else { Cow::Borrowed(weights.words()) }
}

impl ThreeLayerPlan {
    /// Whether `weights` are what was planned for.
    pub(super) fn check_weights<T: HalfElement>(&self, weights: &ThreeLayer<T>) -> Result<(), LinearError> {
        self.problem.check_weights::<T>(weights.num_rows(), weights.num_cols())
    }

    /// The tensor map of X.
    pub(super) fn x_map(&self, operands: &Operands, lists: Lists) -> TensorMapSpec<2> {
        operands.x_map(self.configuration.x_box, self.configuration.x_swizzle, lists.tiles)
    }

    /// Words of the counters.
    pub(super) fn num_counters(&self) -> usize {
        (self.pieces.row_blocks * self.num_panels()) as usize * WARPS
    }

    /// All arguments of the kernel but the map.
    pub(super) fn arguments(
        &self,
        lists: Lists,
        operands: &Operands,
        workspace: DevicePtr,
        counters: DevicePtr,
    ) -> Arguments {
        // Panels of tokens read W one beside the other: for more than one, what the first reads is kept for the others.
        let policy = if self.num_panels() == 1 { CachePolicy::EVICT_FIRST } else { CachePolicy::EVICT_NORMAL };
        // SAFETY: nothing is read here; that the lists live and stay as they are is a promise of whoever launches.
        unsafe {
            Arguments {
                tiles: lists.tiles.as_mut_ptr(),
                tile_offsets: lists.tile_offsets.array(),
                col_tiles: self.problem.num_inputs.div_ceil(TILE_COLS) as u32,
                residual_offsets: lists.residual_offsets.array(),
                residual: lists.residual.array(),
                x: operands.x.address.as_mut_ptr(),
                x_leading_dimension: operands.x.shape.leading_dimension as u64,
                work: Work { pieces: lists.pieces.array(), stride: self.pieces.stride() },
                policy,
                output: operands.output(&self.pieces, workspace, counters),
            }
        }
    }
}
