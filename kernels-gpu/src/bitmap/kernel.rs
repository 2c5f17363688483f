//! The entries: set-up, and one branch on the role.

use core::marker::PhantomData;

use hopper_std::global::GlobalArray;
use hopper_std::half::{Bf16, F16, Half};
use hopper_std::kernel;
use hopper_std::ptx::tensor::CachePolicy;
use hopper_std::ptx::wgmma::{Mma, RegisterWords, Registers};
use hopper_std::sm90::{
    BlockScope, Pipeline, RegisterBudget, SharedMemory, Swizzle, TensorMapRef, TileShape, WarpGroup,
};
use hopper_std::thread;

use super::config::{Arguments, Configuration, Smem, XStage, XTile};
use super::consumer::consume;
use super::producer::produce;
use crate::linear::{Dtype, Output, WARPS, Work};

/// How a block splits its registers: one producer warp group, two that multiply.
type Budget = RegisterBudget<40, 232, 2>;

/// Every bitmap kernel. Block.
///
/// # Safety
/// The launch contract of [`Arguments`].
#[inline(always)]
unsafe fn run<
    E: Half + Mma<REGISTERS>,
    const REGISTERS: usize,
    const TOKENS: usize,
    const STEPS: usize,
    const WORDS: usize,
    const STAGES: usize,
>(
    map_x: TensorMapRef<XTile<E, TOKENS>>,
    arguments: Arguments,
) where
    [f32; REGISTERS]: Registers,
    [u32; WORDS]: RegisterWords,
{
    const { assert!(REGISTERS * 2 == TOKENS, "a panel is what the accumulators hold") };
    // SAFETY: the specification asks for this struct's bytes; every thread of the block is here.
    let (warp_group, rings, pipeline) = unsafe {
        let smem = SharedMemory::<Smem<XStage<E, TOKENS, STEPS>, STAGES>>::take();
        let (rings, barriers) = (Smem::rings(smem), Smem::barriers(smem));
        let (warp, lane) = (thread::thread_idx_x() / 32, thread::thread_idx_x() % 32);
        // Each warp its own ring's: threads of one warp would do it one after the other.
        if warp >= 4 && lane == 0 {
            rings.at(warp - 4).init();
        }
        let uninit = Pipeline::<_, STAGES, BlockScope>::init(Smem::stages(smem), barriers, WARPS as u32);
        (WarpGroup::current(), rings, uninit.publish())
    };
    if warp_group.index() == 0 {
        // SAFETY: the producer warp group; its first thread is the one producer.
        unsafe {
            Budget::become_producer();
            if thread::thread_idx_x() == 0 {
                produce::<E, TOKENS, STEPS, STAGES>(&arguments, map_x, pipeline.producer());
            }
        }
    } else {
        // SAFETY: a consumer warp group, as counted at `init`.
        unsafe {
            Budget::become_consumer();
            consume::<E, REGISTERS, TOKENS, STEPS, WORDS, STAGES>(&arguments, warp_group, rings, pipeline.consumer());
        }
    }
}

/// Makes the entries and the list of their configurations.
macro_rules! kernels {
    ($($name:ident $spec:ident: $element:ident, $tokens:literal tokens, $stages:literal stages of $steps:literal;)*) => {
        /// The exported kernels, `bitmap_<type>_n<tokens of a panel>`.
        ///
        /// # Safety
        /// The launch contract of each is that of [`Arguments`](super::Arguments), with the map of its
        /// [`Configuration`](super::Configuration).
        #[allow(clippy::too_many_arguments, clippy::missing_safety_doc)]
        pub mod entries {
            use super::*;

            $(
                #[doc = concat!("Linear layer by bitmap, ", stringify!($element), ", panels of ", $tokens, " tokens.")]
                #[kernel(
                    threads = Budget::THREADS,
                    shared = SharedMemory::<Smem<XStage<$element, $tokens, $steps>, $stages>>::BYTES,
                    min_blocks = 1
                )]
                pub unsafe fn $name(
                    map_x: TensorMapRef<XTile<$element, $tokens>>,
                    masks: GlobalArray<[u32; 4]>,
                    values: *const u8,
                    pieces: GlobalArray<[u32; 4]>,
                    pieces_per_worker: u32,
                    streams: GlobalArray<[u32; 4]>,
                    starts: GlobalArray<u32>,
                    realignments: GlobalArray<u32>,
                    units: u32,
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
                    let arguments =
                        Arguments { masks, values, work, streams, starts, realignments, units, policy, output };
                    // SAFETY: the launch contract is passed on.
                    unsafe {
                        run::<$element, { $tokens / 2 }, $tokens, $steps, { $steps * 16 }, $stages>(map_x, arguments);
                    }
                }
            )*
        }

        /// Every bitmap kernel, and what the host must know to launch it.
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
                    let Arguments { masks, values, work, streams, starts, realignments, units, policy, output } = arguments;
                    let Output { y, leading_dimension, num_outputs, num_tokens, bias, .. } = output;
                    let Output { workspace, counters, slots, row_blocks, .. } = output;
                    // SAFETY: the caller of `simulate` keeps the kernel's contract.
                    unsafe {
                        entries::$name(
                            TensorMapRef::from_raw(map_x),
                            masks,
                            values,
                            work.pieces,
                            work.stride,
                            streams,
                            starts,
                            realignments,
                            units,
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
    bitmap_bf16_n8 BITMAP_BF16_N8: Bf16, 8 tokens, 20 stages of 2;
    bitmap_bf16_n16 BITMAP_BF16_N16: Bf16, 16 tokens, 16 stages of 2;
    bitmap_bf16_n32 BITMAP_BF16_N32: Bf16, 32 tokens, 8 stages of 2;
    bitmap_bf16_n64 BITMAP_BF16_N64: Bf16, 64 tokens, 5 stages of 2;
    bitmap_bf16_n128 BITMAP_BF16_N128: Bf16, 128 tokens, 2 stages of 2;
    bitmap_f16_n8 BITMAP_F16_N8: F16, 8 tokens, 20 stages of 2;
    bitmap_f16_n16 BITMAP_F16_N16: F16, 16 tokens, 16 stages of 2;
    bitmap_f16_n32 BITMAP_F16_N32: F16, 32 tokens, 8 stages of 2;
    bitmap_f16_n64 BITMAP_F16_N64: F16, 64 tokens, 5 stages of 2;
    bitmap_f16_n128 BITMAP_F16_N128: F16, 128 tokens, 2 stages of 2;
}
