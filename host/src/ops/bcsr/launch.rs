//! What a launch is given, the same on a device and in the simulator: arrays, tensor maps, arguments.

use std::borrow::Cow;

use kernels_gpu::bcsr::{Arguments, CachePolicy, WORDS_PER_TILE};

use super::BcsrPlan;
use crate::element::Element;
use crate::formats::BcsrView;
use crate::ops::dense_launch::{output, swizzle};
use crate::ops::{Operand, Placed, PlanError};
use crate::tensor_map::{DevicePtr, L2Promotion, TensorElement, TensorMapSpec};

/// Where the plan's lists lie.
#[derive(Clone, Copy)]
pub(super) struct Lists {
    pub(super) blocks: DevicePtr,
    pub(super) tiles: DevicePtr,
    pub(super) tile_offsets: DevicePtr,
}

impl BcsrPlan {
    /// Whether `a` is what was planned for.
    pub(super) fn check_sparse<T: Element>(&self, a: &BcsrView<'_, T>) -> Result<(), PlanError> {
        self.problem.check_sparse(a)?;
        if a.num_blocks() * self.halves() != self.num_blocks {
            return Err(PlanError::NotPlanned { operand: Operand::A });
        }
        Ok(())
    }

    /// The kernel's blocks in one of A's.
    fn halves(&self) -> usize {
        self.problem.block.cols / self.configuration.block_cols
    }

    /// The values of A in the kernel's blocks. Never empty: where there is no block, the tensor map has something to point
    /// to, which is not read.
    pub(super) fn values<'a, T: Element>(&self, a: &BcsrView<'a, T>) -> Cow<'a, [T]> {
        if a.values.is_empty() {
            return Cow::Owned(vec![T::ZERO; self.configuration.block_rows * self.configuration.block_cols]);
        }
        match self.halves() {
            1 => Cow::Borrowed(a.values),
            halves => Cow::Owned(split_columns(a.values, self.problem.block.cols, self.problem.block.rows, halves)),
        }
    }

    /// The list of tiles, as the kernel reads it.
    pub(super) fn tiles(&self) -> Vec<[u32; WORDS_PER_TILE]> {
        self.schedule.tiles.iter().map(|tile| tile.to_words()).collect()
    }

    /// The tensor map of A, whose values lie at `values`.
    pub(super) fn a_map<T: Element>(&self, values: DevicePtr) -> TensorMapSpec<3> {
        let configuration = self.configuration;
        let (rows, cols) = (configuration.block_rows as u64, configuration.block_cols as u64);
        let size = size_of::<T>() as u64;
        let [box_cols, box_rows] = configuration.a_box;
        TensorMapSpec {
            element: TensorElement::from(T::DTYPE),
            address: values,
            dims: [cols, rows, self.num_blocks.max(1) as u64],
            strides_bytes: [size, cols * size, rows * cols * size],
            box_dims: [box_cols, box_rows, 1],
            element_strides: [1; 3],
            swizzle: swizzle(configuration.a_swizzle),
            l2_promotion: L2Promotion::Bytes128,
        }
    }

    /// The tensor map of B.
    pub(super) fn b_map<T: Element>(&self, values: DevicePtr, b: Placed) -> TensorMapSpec<2> {
        let configuration = self.configuration;
        let (b_box, b_swizzle) = (configuration.b_box, swizzle(configuration.b_swizzle));
        let spec = TensorMapSpec {
            // PERF: 256 bytes, twice the width of a box: 3584 x 16384 x 18944 at 10 %, 343 us for 333 (H200).
            l2_promotion: L2Promotion::Bytes128,
            ..TensorMapSpec::of_shape::<T>(b.address, b.shape, b_box, b_swizzle)
        };
        if spec.dims.contains(&0) {
            // K = 0: there is no block, and B is never read; the map must still be one.
            return TensorMapSpec { address: values, dims: [1, 1], strides_bytes: [2, 16], ..spec };
        }
        spec
    }

    /// All arguments of the kernel but the maps.
    pub(super) fn arguments(&self, lists: Lists, alpha: f32, beta: f32, c: Placed) -> Arguments {
        let (policy_a, policy_b) = match self.streams_b {
            true => (CachePolicy::EVICT_LAST, CachePolicy::EVICT_FIRST),
            false => (CachePolicy::EVICT_NORMAL, CachePolicy::EVICT_NORMAL),
        };
        // SAFETY: nothing is read here; that the lists live and stay as they are is a promise of whoever launches.
        unsafe {
            Arguments {
                blocks: lists.blocks.array(),
                tiles: lists.tiles.array(),
                tile_offsets: lists.tile_offsets.array(),
                output: output(c, alpha, beta),
                policy_a,
                policy_b,
            }
        }
    }
}

/// Cuts row-major blocks of `cols` columns into `halves` blocks side by side, each row-major.
fn split_columns<T: Element>(values: &[T], cols: usize, rows: usize, halves: usize) -> Vec<T> {
    let part = cols / halves;
    let mut split = Vec::with_capacity(values.len());
    for block in values.chunks_exact(rows * cols) {
        for half in 0..halves {
            for row in block.chunks_exact(cols) {
                split.extend_from_slice(&row[half * part..(half + 1) * part]);
            }
        }
    }
    split
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_keeps_every_element_in_its_half() {
        let values: Vec<f32> = (0..2 * 4).map(|index| index as f32).collect();
        assert_eq!(split_columns(&values, 4, 2, 2), [0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0]);
    }
}
