//! The entries: set-up, and one branch on the role.

use core::marker::PhantomData;

use hopper_std::global::GlobalArray;
use hopper_std::half::{Bf16, F16, Half};
use hopper_std::kernel;
use hopper_std::ptx::tensor::CachePolicy;
use hopper_std::ptx::wgmma::{Registers, SparseMma};
use hopper_std::sm90::{
    BlockScope, Pipeline, RegisterBudget, SharedMemory, Swizzle, TensorMapRef, TileShape, WarpGroup,
};
use hopper_std::thread;

use super::config::{Arguments, CONSUMERS, Configuration, Smem, XTile};
use super::consumer::consume;
use super::layout::WARPS;
use super::producer::produce;
use crate::linear::{Dtype, Output, Work};

/// How a block splits its registers: one producer warp group, two that multiply.
type Budget = RegisterBudget<40, 232, { CONSUMERS as u32 }>;

/// Every three-layer kernel. Block.
///
/// # Safety
/// The launch contract of [`Arguments`].
#[inline(always)]
unsafe fn run<E: Half + SparseMma<REGISTERS>, const REGISTERS: usize, const TOKENS: usize, const STAGES: usize>(
    map_x: TensorMapRef<XTile<E, TOKENS>>,
    arguments: Arguments,
) where
    [f32; REGISTERS]: Registers,
{
    const { assert!(REGISTERS * 2 == TOKENS, "a panel is what the accumulators hold") };
    // SAFETY: the specification asks for this struct's bytes; every thread of the block is here.
    let (warp_group, smem, pipeline) = unsafe {
        let smem = SharedMemory::<Smem<E, TOKENS, STAGES>>::take();
        let uninit = Pipeline::<_, STAGES, BlockScope>::init(Smem::stages(smem), Smem::barriers(smem), WARPS as u32);
        (WarpGroup::current(), smem, uninit.publish())
    };
    if warp_group.index() == 0 {
        // SAFETY: the producer warp group; its first thread is the one producer.
        unsafe {
            Budget::become_producer();
            if thread::thread_idx_x() == 0 {
                produce::<E, TOKENS, STAGES>(&arguments, map_x, pipeline.producer());
            }
        }
    } else {
        // SAFETY: a consumer warp group, as counted at `init`.
        unsafe {
            Budget::become_consumer();
            let (second, lifted) = (Smem::second(smem), Smem::lifted(smem));
            consume::<E, REGISTERS, TOKENS, STAGES>(&arguments, warp_group, second, lifted, pipeline.consumer());
        }
    }
}

/// Makes the entries and the list of their configurations.
macro_rules! kernels {
    ($($name:ident $spec:ident: $element:ident, $tokens:literal tokens, $stages:literal stages;)*) => {
        /// The exported kernels, `three_layer_<type>_n<tokens of a panel>`.
        ///
        /// # Safety
        /// The launch contract of each is that of [`Arguments`](super::Arguments), with the map of its
        /// [`Configuration`](super::Configuration).
        #[allow(clippy::too_many_arguments, clippy::missing_safety_doc)]
        pub mod entries {
            use super::*;

            $(
                #[doc = concat!("Linear layer in three layers, ", stringify!($element), ", panels of ", $tokens, " tokens.")]
                #[kernel(
                    threads = Budget::THREADS,
                    shared = SharedMemory::<Smem<$element, $tokens, $stages>>::BYTES,
                    min_blocks = 1
                )]
                pub unsafe fn $name(
                    map_x: TensorMapRef<XTile<$element, $tokens>>,
                    tiles: *const u8,
                    tile_offsets: GlobalArray<u32>,
                    col_tiles: u32,
                    residual_offsets: GlobalArray<u32>,
                    residual: GlobalArray<u32>,
                    x: *const u8,
                    x_leading_dimension: u64,
                    pieces: GlobalArray<[u32; 4]>,
                    pieces_per_worker: u32,
                    policy: CachePolicy,
                    y: *mut u8,
                    leading_dimension: u64,
                    num_outputs: u32,
                    num_tokens: u32,
                    bias: GlobalArray<u16>,
                    workspace: *mut f32,
                    counters: *mut u32,
                    slots: u32,
                    row_blocks: u32,
                ) {
                    let work = Work { pieces, stride: pieces_per_worker };
                    let output = Output {
                        y,
                        leading_dimension,
                        num_outputs,
                        num_tokens,
                        bias,
                        workspace,
                        counters,
                        slots,
                        row_blocks,
                    };
                    let arguments = Arguments {
                        tiles,
                        tile_offsets,
                        col_tiles,
                        residual_offsets,
                        residual,
                        x,
                        x_leading_dimension,
                        work,
                        policy,
                        output,
                    };
                    // SAFETY: the launch contract is passed on.
                    unsafe { run::<$element, { $tokens / 2 }, $tokens, $stages>(map_x, arguments) };
                }
            )*
        }

        /// Every three-layer kernel, and what the host must know to launch it.
        pub static CONFIGURATIONS: &[Configuration] = &[$(
            Configuration {
                spec: &entries::$spec,
                dtype: Dtype::$element,
                tokens: $tokens,
                stages: $stages,
                x_box: <XTile<$element, $tokens> as TileShape>::BOX,
                x_swizzle: <<XTile<$element, $tokens> as TileShape>::Swizzle as Swizzle>::TENSOR_MAP_MODE,
                arguments: PhantomData,
                #[cfg(feature = "sim")]
                simulate: |map_x, arguments| {
                    let Arguments { tiles, tile_offsets, col_tiles, residual_offsets, residual, .. } = arguments;
                    let Arguments { x, x_leading_dimension, work, policy, output, .. } = arguments;
                    let Output { y, leading_dimension, num_outputs, num_tokens, bias, .. } = output;
                    let Output { workspace, counters, slots, row_blocks, .. } = output;
                    // SAFETY: the caller of `simulate` keeps the kernel's contract.
                    unsafe {
                        entries::$name(
                            TensorMapRef::from_raw(map_x),
                            tiles,
                            tile_offsets,
                            col_tiles,
                            residual_offsets,
                            residual,
                            x,
                            x_leading_dimension,
                            work.pieces,
                            work.stride,
                            policy,
                            y,
                            leading_dimension,
                            num_outputs,
                            num_tokens,
                            bias,
                            workspace,
                            counters,
                            slots,
                            row_blocks,
                        );
                    }
                },
            },
        )*];
    };
}

kernels! {
    three_layer_bf16_n8 THREE_LAYER_BF16_N8: Bf16, 8 tokens, 6 stages;
    three_layer_bf16_n16 THREE_LAYER_BF16_N16: Bf16, 16 tokens, 6 stages;
    three_layer_bf16_n32 THREE_LAYER_BF16_N32: Bf16, 32 tokens, 5 stages;
    three_layer_bf16_n64 THREE_LAYER_BF16_N64: Bf16, 64 tokens, 4 stages;
    three_layer_bf16_n128 THREE_LAYER_BF16_N128: Bf16, 128 tokens, 3 stages;
    three_layer_f16_n8 THREE_LAYER_F16_N8: F16, 8 tokens, 6 stages;
    three_layer_f16_n16 THREE_LAYER_F16_N16: F16, 16 tokens, 6 stages;
    three_layer_f16_n32 THREE_LAYER_F16_N32: F16, 32 tokens, 5 stages;
    three_layer_f16_n64 THREE_LAYER_F16_N64: F16, 64 tokens, 4 stages;
    three_layer_f16_n128 THREE_LAYER_F16_N128: F16, 128 tokens, 3 stages;
}
