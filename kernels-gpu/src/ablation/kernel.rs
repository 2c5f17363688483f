//! The entries.

use hopper_std::global::GlobalArray;
use hopper_std::half::Bf16;
use hopper_std::kernel;
use hopper_std::ptx::tensor::CachePolicy;
use hopper_std::ptx::wgmma::{Mma, Registers};
use hopper_std::sm90::{BlockScope, Pipeline, SharedMemory, Swizzle, Swizzle128, TensorMapRef, TileShape, WarpGroup};
use hopper_std::thread;

use super::by_hand::{self, Cores, TensorCores};
use super::config::{Arguments, BLOCK_COLS, BLOCK_ROWS, BlockOfA, Columns, Configuration, KernelSmem, PanelOfB};
use super::consumer::{consume, fill_and_consume};
use crate::bcsr::config::{Budget, CONSUMER_WARPS};
use crate::bcsr::producer::{Maps, produce};
use crate::bcsr::{self, BLayout, Dtype};
use crate::store::Output;

/// The copy engine, asked by one of the threads that multiply. Block.
///
/// # Safety
/// The launch contract of [`Arguments`].
#[inline(always)]
unsafe fn run_without_roles<const N: usize, const REGISTERS: usize, const STAGING_COLS: usize>(
    maps: Maps<BlockOfA, PanelOfB<N>>,
    arguments: Arguments,
) where
    Bf16: Mma<REGISTERS>,
    [f32; REGISTERS]: Registers,
{
    type Smem<const N: usize, const STAGING_COLS: usize> = KernelSmem<N, 1, STAGING_COLS>;
    // SAFETY: the specification asks for this struct's bytes; every thread of the block is here, a consumer, and one of them the
    // producer.
    unsafe {
        let smem = SharedMemory::<Smem<N, STAGING_COLS>>::take();
        let (stages, barriers) = (Smem::<N, STAGING_COLS>::stages(smem), Smem::<N, STAGING_COLS>::barriers(smem));
        let ring = Pipeline::<_, 1, BlockScope>::init(stages, barriers, CONSUMER_WARPS).publish().halves();
        let warp_group = WarpGroup::current();
        let staging = Smem::<N, STAGING_COLS>::staging(smem).at(warp_group.index());
        fill_and_consume::<N, REGISTERS, STAGING_COLS>(&arguments, &maps, warp_group, staging, ring);
    }
}

/// A producer and two consumers. Block.
///
/// # Safety
/// The launch contract of [`Arguments`].
#[inline(always)]
unsafe fn run_with_roles<
    const N: usize,
    const REGISTERS: usize,
    const STORED: usize,
    const STAGES: usize,
    const STAGING_COLS: usize,
>(
    maps: Maps<BlockOfA, PanelOfB<N>>,
    arguments: Arguments,
) where
    Bf16: Mma<REGISTERS>,
    [f32; REGISTERS]: Registers,
    [f32; STORED]: Registers,
{
    // SAFETY: the specification asks for this struct's bytes; every thread of the block is here.
    let (warp_group, staging, pipeline) = unsafe {
        let smem = SharedMemory::<KernelSmem<N, STAGES, STAGING_COLS>>::take();
        let stages = KernelSmem::<N, STAGES, STAGING_COLS>::stages(smem);
        let barriers = KernelSmem::<N, STAGES, STAGING_COLS>::barriers(smem);
        let uninit = Pipeline::<_, STAGES, BlockScope>::init(stages, barriers, CONSUMER_WARPS);
        (WarpGroup::current(), KernelSmem::<N, STAGES, STAGING_COLS>::staging(smem), uninit.publish())
    };
    // SAFETY: the producer warp group, whose first thread is the one producer, or a consumer as counted at `init`.
    unsafe {
        if warp_group.index() == 0 {
            Budget::become_producer();
            if thread::thread_idx_x() == 0 {
                produce::<Columns<N>, REGISTERS, 1, 1, STAGES>(&arguments.bcsr, &maps, pipeline.producer());
            }
        } else {
            Budget::become_consumer();
            let consumer = warp_group.index() - 1;
            let (staging, ring) = (staging.at(consumer), pipeline.consumer());
            consume::<N, REGISTERS, STORED, STAGES, STAGING_COLS>(&arguments, (warp_group, consumer), staging, ring);
        }
    }
}

/// Threads of a block.
macro_rules! threads {
    (roles) => {
        Budget::THREADS
    };
    ($other:ident) => {
        by_hand::THREADS
    };
}

/// What a kernel does.
macro_rules! body {
    (cores, $n:literal, $stored:literal, $stages:literal, $staging:literal, $maps:ident, $arguments:ident) => {
        by_hand::run::<Cores, $n, { $n / 2 }, { $n / 32 }, $staging>($arguments)
    };
    (wgmma, $n:literal, $stored:literal, $stages:literal, $staging:literal, $maps:ident, $arguments:ident) => {
        by_hand::run::<TensorCores, $n, { $n / 2 }, { $n / 32 }, $staging>($arguments)
    };
    (tma, $n:literal, $stored:literal, $stages:literal, $staging:literal, $maps:ident, $arguments:ident) => {
        run_without_roles::<$n, { $n / 2 }, $staging>($maps, $arguments)
    };
    (roles, $n:literal, $stored:literal, $stages:literal, $staging:literal, $maps:ident, $arguments:ident) => {
        run_with_roles::<$n, { $n / 2 }, $stored, $stages, $staging>($maps, $arguments)
    };
}

/// Makes the entries and the list of their configurations.
macro_rules! kernels {
    ($(
        $name:ident $spec:ident: $kind:ident, $n:literal columns, $stages:literal stages, stored $stored:literal,
        staging $staging:literal;
    )*) => {
        /// The exported kernels, `ablation_<what is added>`.
        ///
        /// # Safety
        /// The launch contract of each is that of [`Arguments`](super::Arguments), with the maps of its
        /// [`Configuration`](super::Configuration).
        #[allow(clippy::too_many_arguments, clippy::missing_safety_doc)]
        pub mod entries {
            use super::*;

            $(
                #[doc = concat!("BCSR SpMM, bf16, tiles of ", $n, " columns, ", $stages, " stages.")]
                #[kernel(
                    threads = threads!($kind),
                    shared = SharedMemory::<KernelSmem<$n, $stages, $staging>>::BYTES
                )]
                pub unsafe fn $name(
                    map_a: TensorMapRef<BlockOfA>,
                    map_b: TensorMapRef<PanelOfB<$n>>,
                    blocks: GlobalArray<[u32; 2]>,
                    tiles: GlobalArray<[u32; 4]>,
                    tile_offsets: GlobalArray<u32>,
                    c: *mut u8,
                    leading_dimension: u64,
                    num_rows: u32,
                    num_cols: u32,
                    alpha: f32,
                    beta: f32,
                    output: u32,
                    policy_a: CachePolicy,
                    policy_b: CachePolicy,
                    values: *const u8,
                    b: *const u8,
                    b_leading_dimension: u64,
                    num_inner: u32,
                ) {
                    let bcsr = bcsr::Arguments {
                        blocks,
                        tiles,
                        tile_offsets,
                        output: Output {
                            c,
                            leading_dimension,
                            num_rows,
                            num_cols,
                            alpha,
                            beta,
                            kind: output,
                            row_order: GlobalArray::null(),
                            col_order: GlobalArray::null(),
                        },
                        policy_a,
                        policy_b,
                    };
                    let arguments = Arguments { bcsr, values, b, b_leading_dimension, num_inner };
                    let _maps = Maps { a: map_a, b: map_b };
                    // SAFETY: the launch contract is passed on.
                    unsafe { body!($kind, $n, $stored, $stages, $staging, _maps, arguments) }
                }
            )*
        }

        /// Every kernel, each with one part more than those before, then those with other widths of tiles.
        pub static CONFIGURATIONS: &[Configuration] = &[$(
            Configuration {
                bcsr: bcsr::Configuration {
                    spec: &entries::$spec,
                    dtype: Dtype::Bf16,
                    block_rows: BLOCK_ROWS,
                    block_cols: BLOCK_COLS,
                    b_layout: BLayout::Col,
                    tile_n: $n,
                    group: 1,
                    panels: 1,
                    stages: $stages,
                    staging_cols: $staging,
                    a_box: BlockOfA::BOX,
                    a_swizzle: Swizzle128::TENSOR_MAP_MODE,
                    b_box: PanelOfB::<$n>::BOX,
                    b_swizzle: Swizzle128::TENSOR_MAP_MODE,
                    #[cfg(feature = "sim")]
                    simulate: |_, _, _| unreachable!("the kernel has more arguments"),
                },
                #[cfg(feature = "sim")]
                simulate: |map_a, map_b, arguments| {
                    let Arguments { bcsr, values, b, b_leading_dimension, num_inner } = arguments;
                    let bcsr::Arguments { blocks, tiles, tile_offsets, output, policy_a, policy_b } = bcsr;
                    let Output { c, leading_dimension, num_rows, num_cols, alpha, beta, kind, .. } = output;
                    // SAFETY: the caller of `simulate` keeps the kernel's contract.
                    unsafe {
                        entries::$name(
                            TensorMapRef::from_raw(map_a),
                            TensorMapRef::from_raw(map_b),
                            blocks,
                            tiles,
                            tile_offsets,
                            c,
                            leading_dimension,
                            num_rows,
                            num_cols,
                            alpha,
                            beta,
                            kind,
                            policy_a,
                            policy_b,
                            values,
                            b,
                            b_leading_dimension,
                            num_inner,
                        );
                    }
                },
            },
        )*];
    };
}

kernels! {
    ablation_cores ABLATION_CORES: cores, 128 columns, 1 stages, stored 64, staging 64;
    ablation_wgmma ABLATION_WGMMA: wgmma, 128 columns, 1 stages, stored 64, staging 64;
    ablation_tma ABLATION_TMA: tma, 128 columns, 1 stages, stored 64, staging 64;
    ablation_depth1 ABLATION_DEPTH1: roles, 128 columns, 1 stages, stored 64, staging 64;
    ablation_depth2 ABLATION_DEPTH2: roles, 128 columns, 2 stages, stored 64, staging 64;
    ablation_depth3 ABLATION_DEPTH3: roles, 128 columns, 3 stages, stored 64, staging 64;
    ablation_depth4 ABLATION_DEPTH4: roles, 128 columns, 4 stages, stored 64, staging 64;
    ablation_depth5 ABLATION_DEPTH5: roles, 128 columns, 5 stages, stored 64, staging 64;
    ablation_depth6 ABLATION_DEPTH6: roles, 128 columns, 6 stages, stored 64, staging 64;
    ablation_n8 ABLATION_N8: roles, 8 columns, 4 stages, stored 8, staging 16;
    ablation_n16 ABLATION_N16: roles, 16 columns, 4 stages, stored 8, staging 16;
    ablation_n32 ABLATION_N32: roles, 32 columns, 4 stages, stored 16, staging 32;
    ablation_n64 ABLATION_N64: roles, 64 columns, 4 stages, stored 32, staging 64;
    ablation_n256 ABLATION_N256: roles, 256 columns, 4 stages, stored 128, staging 64;
}
