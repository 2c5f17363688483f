//! What a launch is given, the same on a device and in the simulator: arrays, tensor maps, arguments.

use std::borrow::Cow;

use kernels_gpu::wcsr::{
    Arguments, COMBINED, CachePolicy, CombineArguments, Combined, Configuration, PANEL_COLS, TileWork, WORDS_PER_TILE,
    num_slices,
};

use super::{KERNEL, WcsrPlan, kernel_dtype};
use crate::element::Element;
use crate::formats::WcsrView;
use crate::ops::dense_launch::{LINE_BYTES, is_aligned, output, output_in_order, swizzle};
use crate::ops::{Operand, Placed, PlanError, Refusal};
use crate::tensor_map::{DevicePtr, L2Promotion, TensorElement, TensorMapSpec};

/// A chunk of a row of B: a tensor copy reads whole ones.
const CHUNK_BYTES: usize = 128;

/// Where the plan's lists lie.
#[derive(Clone, Copy)]
pub(super) struct Lists {
    pub(super) groups: DevicePtr,
    pub(super) tiles: DevicePtr,
    pub(super) tile_offsets: DevicePtr,
    pub(super) splits: DevicePtr,
    /// The row of each place, where the plan is for rows in an order.
    pub(super) rows: Option<DevicePtr>,
}

impl WcsrPlan {
    /// Whether `a` is what was planned for.
    pub(super) fn check_sparse<T: Element>(&self, a: &WcsrView<'_, T>) -> Result<(), PlanError> {
        self.problem.check_sparse(a)?;
        if a.num_panels() != self.num_panels || a.order.is_some() != self.is_ordered {
            return Err(PlanError::NotPlanned { operand: Operand::A });
        }
        Ok(())
    }

    /// What the length of B's lines must be a multiple of, in bytes: tensor copies of groups read whole chunks.
    pub(super) fn line_bytes(&self) -> usize {
        if self.configuration.group == 1 { LINE_BYTES } else { CHUNK_BYTES }
    }

    /// The values of A. Never empty: where there is none, the tensor map has something to point to, which is not read.
    pub(super) fn values<'a, T: Element>(&self, a: &WcsrView<'a, T>) -> Cow<'a, [T]> {
        if a.values.is_empty() {
            Cow::Owned(vec![T::ZERO; self.problem.window.panel_elements()])
        } else {
            Cow::Borrowed(a.values)
        }
    }

    /// Whether the kernel can read B where it is: aligned lines, and for tensor copies of groups whole chunks.
    pub(super) fn reads_in_place(&self, b: Placed) -> bool {
        let bytes = b.shape.num_cols * b.dtype.size_bytes();
        is_aligned(b) && (self.configuration.group == 1 || bytes.is_multiple_of(CHUNK_BYTES))
    }

    /// The list of tiles, as the kernel reads it.
    pub(super) fn tiles(&self) -> Vec<[u32; WORDS_PER_TILE]> {
        self.schedule.dealt.tiles.iter().copied().map(TileWork::to_words).collect()
    }

    /// The list of what is combined, as the kernel reads it.
    pub(super) fn splits(&self) -> Vec<[u32; 4]> {
        self.schedule.splits.iter().map(|split| split.to_words()).collect()
    }

    /// The kernel that combines.
    pub(super) fn combined(&self) -> Result<&'static Combined, PlanError> {
        let dtype = kernel_dtype(self.problem.dtype);
        COMBINED.iter().find(|combined| Some(combined.dtype) == dtype).ok_or(PlanError::Refused(Refusal::Dtype {
            kernel: KERNEL,
            dtype: self.problem.dtype,
            offered: "bf16 and f16",
        }))
    }

    /// The tensor map of A, whose values lie at `values`.
    pub(super) fn v_map<T: Element>(&self, values: DevicePtr) -> TensorMapSpec<2> {
        let configuration = self.configuration;
        let (size, lines) = (size_of::<T>() as u64, (self.num_panels.max(1) * configuration.window_rows) as u64);
        TensorMapSpec {
            element: TensorElement::from(T::DTYPE),
            address: values,
            dims: [PANEL_COLS as u64, lines],
            strides_bytes: [size, PANEL_COLS as u64 * size],
            box_dims: configuration.v_box,
            element_strides: [1; 2],
            swizzle: swizzle(configuration.v_swizzle),
            l2_promotion: L2Promotion::Bytes256,
        }
    }

    /// The tensor map of B: columns of a chunk, rows, chunks.
    pub(super) fn b_map<T: Element>(&self, values: DevicePtr, b: Placed) -> TensorMapSpec<3> {
        let configuration = self.configuration;
        let (size, chunk) = (size_of::<T>() as u64, CHUNK_BYTES as u64);
        let spec = TensorMapSpec {
            element: TensorElement::from(T::DTYPE),
            address: b.address,
            dims: [chunk / size, b.shape.num_rows as u64, (b.shape.num_cols as u64 * size).div_ceil(chunk)],
            strides_bytes: [size, b.shape.leading_dimension as u64 * size, chunk],
            box_dims: configuration.b_box,
            element_strides: [1; 3],
            swizzle: swizzle(configuration.b_swizzle),
            l2_promotion: L2Promotion::Bytes256,
        };
        if configuration.group == 1 || spec.dims.contains(&0) {
            // Single columns are no tensor copies; with K = 0 there is none, and B is never read. The map must still be one.
            return TensorMapSpec { address: values, dims: [1; 3], strides_bytes: [size, chunk, chunk], ..spec };
        }
        spec
    }

    /// All arguments of the kernel but the maps.
    pub(super) fn arguments(
        &self,
        lists: Lists,
        workspace: DevicePtr,
        (alpha, beta): (f32, f32),
        b: Placed,
        c: Placed,
    ) -> Arguments {
        // Where A is read once for all of B, keeping it would only drive B out of L2.
        let once = self.problem.num_cols <= self.configuration.tile_n;
        // SAFETY: nothing is read here; that the lists live and stay as they are is a promise of whoever launches.
        unsafe {
            Arguments {
                groups: lists.groups.array(),
                tiles: lists.tiles.array(),
                tile_offsets: lists.tile_offsets.array(),
                workspace: workspace.as_mut_ptr(),
                output: match lists.rows {
                    Some(rows) => output_in_order(c, alpha, beta, rows.array()),
                    None => output(c, alpha, beta),
                },
                policy_v: if once { CachePolicy::EVICT_FIRST } else { CachePolicy::EVICT_NORMAL },
                b: b.address.as_mut_ptr(),
                b_leading_dimension: b.shape.leading_dimension as u64,
                num_inner: b.shape.num_rows as u32,
            }
        }
    }

    /// The grid of the kernel that combines.
    pub(super) fn combine_grid(&self) -> (u32, u32) {
        let Configuration { window_rows, tile_n, .. } = *self.configuration;
        (self.num_splits() as u32, num_slices(window_rows as u32, tile_n as u32))
    }

    /// All arguments of the kernel that combines.
    pub(super) fn combine_arguments(&self, lists: Lists, workspace: DevicePtr, of: &Arguments) -> CombineArguments {
        // SAFETY: as above.
        unsafe {
            CombineArguments {
                splits: lists.splits.array(),
                workspace: workspace.array(),
                window_rows: self.configuration.window_rows as u32,
                tile_n: self.configuration.tile_n as u32,
                output: of.output,
            }
        }
    }
}
