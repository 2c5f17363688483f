//! What a launch is given, the same on a device and in the simulator: arrays, tensor map, arguments.

use std::borrow::Cow;

use kernels_gpu::linear::Work;
use kernels_gpu::three_layer::Arguments;
use kernels_gpu::three_layer::layout::TILE_COLS;

use super::ThreeLayerPlan;
use crate::formats::ThreeLayer;
use crate::ops::linear::Operands;
use crate::tensor_map::DevicePtr;

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
    /// All arguments of the kernel but the map.
    pub(super) fn arguments(
        &self,
        lists: Lists,
        operands: &Operands,
        workspace: DevicePtr,
        counters: DevicePtr,
    ) -> Arguments {
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
                policy: self.policy(),
                output: operands.output(&self.pieces, workspace, counters),
            }
        }
    }
}
