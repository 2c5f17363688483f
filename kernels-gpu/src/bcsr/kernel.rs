//! The entries: set-up, and one branch on the role.

use hopper_std::global::GlobalArray;
use hopper_std::half::{Bf16, F16};
use hopper_std::kernel;
use hopper_std::ptx::tensor::CachePolicy;
use hopper_std::ptx::wgmma::Registers;
use hopper_std::sm90::{
    BlockScope, ClusterScope, Pipeline, Scope, SharedMemory, Swizzle, Swizzle32, Swizzle64, Swizzle128, TensorMapRef,
    Tile, TileShape, WarpGroup,
};
use hopper_std::thread;

use super::config::{
    Arguments, BLayout, Budget, CONSUMER_WARPS, Config, Configuration, Dtype, Panel, STAGE_K, Smem, Stage,
};
use super::consumer::consume;
use super::producer::{Maps, produce};
use crate::store::Output;

type KernelSmem<
    C,
    const REGISTERS: usize,
    const PANELS: usize,
    const GROUP: usize,
    const STAGES: usize,
    const STAGING_COLS: usize,
> = Smem<Stage<<C as Config<REGISTERS>>::A, <C as Config<REGISTERS>>::B, PANELS, GROUP>, STAGES, STAGING_COLS>;

/// Every BCSR kernel. Block.
///
/// # Safety
/// The launch contract of [`Arguments`].
#[inline(always)]
unsafe fn run<
    C: Config<REGISTERS>,
    const REGISTERS: usize,
    const PANELS: usize,
    const GROUP: usize,
    const STAGES: usize,
    const STAGING_COLS: usize,
>(
    maps: Maps<C::A, <C::B as Panel>::Tile>,
    arguments: Arguments,
) where
    [f32; REGISTERS]: Registers,
{
    // SAFETY: the specification asks for this struct's bytes; every thread of the block (and cluster) is here.
    let (warp_group, staging, pipeline) = unsafe {
        let smem = SharedMemory::<KernelSmem<C, REGISTERS, PANELS, GROUP, STAGES, STAGING_COLS>>::take();
        let uninit = Pipeline::<_, STAGES, C::Scope>::init(Smem::stages(smem), Smem::barriers(smem), CONSUMER_WARPS);
        (WarpGroup::current(), Smem::staging(smem), uninit.publish())
    };
    if warp_group.index() == 0 {
        // SAFETY: the producer warp group; its first thread is the one producer.
        unsafe {
            Budget::become_producer();
            if thread::thread_idx_x() == 0 {
                produce::<C, REGISTERS, PANELS, GROUP, STAGES>(&arguments, &maps, pipeline.producer());
            }
        }
    } else {
        // SAFETY: a consumer warp group, as counted at `init`.
        unsafe {
            Budget::become_consumer();
            let staging = staging.at(warp_group.index() - 1);
            let ring = pipeline.consumer();
            consume::<C, REGISTERS, PANELS, GROUP, STAGES, STAGING_COLS>(&arguments, warp_group, staging, ring);
        }
    }
}

/// The swizzle whose span is one line of a block: 16, 32 or 64 elements of 16 bits.
macro_rules! line {
    (16) => {
        Swizzle32
    };
    (32) => {
        Swizzle64
    };
    (64) => {
        Swizzle128
    };
}

/// The panel of one consumer: chunks of 64 columns of row-major B, or lines of K of column-major B.
macro_rules! panel {
    (Row, $element:ident, $block_cols:tt, $columns:literal) => {
        [Tile<$element, $block_cols, 64, Swizzle128>; $columns / 64]
    };
    (Col, $element:ident, $block_cols:tt, $columns:literal) => {
        Tile<$element, $columns, $block_cols, line!($block_cols)>
    };
}

/// Makes the entries and the list of their configurations.
macro_rules! kernels {
    ($(
        $name:ident $spec:ident: $element:ident, $rows:literal x $block_cols:tt, B $layout:ident,
        $panels:literal panels of $columns:literal, $stages:literal stages, staging $staging:literal, $scope:ty;
    )*) => {
        /// The exported kernels, `bcsr_<type>_<BR>x<BC>_<layout of B>_n<TN>`; `_c2` where a cluster shares A.
        ///
        /// # Safety
        /// The launch contract of each is that of [`Arguments`](super::Arguments), with the maps of its
        /// [`Configuration`](super::Configuration).
        #[allow(clippy::too_many_arguments, clippy::missing_safety_doc)]
        pub mod entries {
            use super::*;

            $(
                #[doc = concat!("Configuration of [`fn@", stringify!($name), "`].")]
                #[allow(non_camel_case_types)]
                pub enum $name {}

                impl Config<{ $columns / 2 }> for $name {
                    type Element = $element;
                    type A = Tile<$element, $rows, $block_cols, line!($block_cols)>;
                    type B = panel!($layout, $element, $block_cols, $columns);
                    type Scope = $scope;
                }

                #[doc = concat!("BCSR SpMM, ", stringify!($element), ", blocks ", $rows, "x", $block_cols, ".")]
                #[kernel(
                    threads = Budget::THREADS,
                    shared = SharedMemory::<
                        KernelSmem<$name, { $columns / 2 }, $panels, { STAGE_K / $block_cols }, $stages, $staging>,
                    >::BYTES,
                    cluster = <$scope as Scope>::BLOCKS
                )]
                pub unsafe fn $name(
                    map_a: TensorMapRef<Tile<$element, $rows, $block_cols, line!($block_cols)>>,
                    map_b: TensorMapRef<<panel!($layout, $element, $block_cols, $columns) as Panel>::Tile>,
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
                ) {
                    let arguments = Arguments {
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
                    // SAFETY: the launch contract is passed on.
                    unsafe {
                        run::<$name, { $columns / 2 }, $panels, { STAGE_K / $block_cols }, $stages, $staging>(
                            Maps { a: map_a, b: map_b },
                            arguments,
                        );
                    }
                }
            )*
        }

        /// Every BCSR kernel, and what the host must know to launch it.
        pub static CONFIGURATIONS: &[Configuration] = &[$(
            Configuration {
                spec: &entries::$spec,
                dtype: Dtype::$element,
                block_rows: $rows,
                block_cols: $block_cols,
                b_layout: BLayout::$layout,
                tile_n: $columns * $panels,
                group: STAGE_K / $block_cols,
                panels: $panels,
                stages: $stages,
                staging_cols: $staging,
                a_box: [$block_cols, $rows / <$scope as Scope>::BLOCKS],
                a_swizzle: <line!($block_cols) as Swizzle>::TENSOR_MAP_MODE,
                b_box: <<panel!($layout, $element, $block_cols, $columns) as Panel>::Tile as TileShape>::BOX,
                b_swizzle: <<<panel!($layout, $element, $block_cols, $columns) as Panel>::Tile as TileShape>::Swizzle
                    as Swizzle>::TENSOR_MAP_MODE,
                #[cfg(feature = "sim")]
                simulate: |map_a, map_b, arguments| {
                    let Arguments { blocks, tiles, tile_offsets, output, policy_a, policy_b } = arguments;
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
                        );
                    }
                },
            },
        )*];
    };
}

kernels! {
    bcsr_bf16_128x64_row_n256 BCSR_BF16_128X64_ROW_N256: Bf16, 128 x 64, B Row, 1 panels of 256, 4 stages, staging 128, BlockScope;
    bcsr_bf16_128x64_row_n256_c2 BCSR_BF16_128X64_ROW_N256_C2: Bf16, 128 x 64, B Row, 1 panels of 256, 4 stages, staging 128, ClusterScope<2>;
    bcsr_bf16_128x64_row_n64 BCSR_BF16_128X64_ROW_N64: Bf16, 128 x 64, B Row, 1 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_bf16_128x64_col_n256 BCSR_BF16_128X64_COL_N256: Bf16, 128 x 64, B Col, 1 panels of 256, 4 stages, staging 128, BlockScope;
    bcsr_bf16_128x64_col_n256_c2 BCSR_BF16_128X64_COL_N256_C2: Bf16, 128 x 64, B Col, 1 panels of 256, 4 stages, staging 128, ClusterScope<2>;
    bcsr_bf16_128x64_col_n64 BCSR_BF16_128X64_COL_N64: Bf16, 128 x 64, B Col, 1 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_bf16_128x32_row_n256 BCSR_BF16_128X32_ROW_N256: Bf16, 128 x 32, B Row, 1 panels of 256, 4 stages, staging 128, BlockScope;
    bcsr_bf16_128x32_row_n64 BCSR_BF16_128X32_ROW_N64: Bf16, 128 x 32, B Row, 1 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_bf16_128x32_col_n256 BCSR_BF16_128X32_COL_N256: Bf16, 128 x 32, B Col, 1 panels of 256, 4 stages, staging 128, BlockScope;
    bcsr_bf16_128x32_col_n64 BCSR_BF16_128X32_COL_N64: Bf16, 128 x 32, B Col, 1 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_bf16_128x16_row_n256 BCSR_BF16_128X16_ROW_N256: Bf16, 128 x 16, B Row, 1 panels of 256, 4 stages, staging 128, BlockScope;
    bcsr_bf16_128x16_row_n64 BCSR_BF16_128X16_ROW_N64: Bf16, 128 x 16, B Row, 1 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_bf16_128x16_col_n256 BCSR_BF16_128X16_COL_N256: Bf16, 128 x 16, B Col, 1 panels of 256, 4 stages, staging 128, BlockScope;
    bcsr_bf16_128x16_col_n64 BCSR_BF16_128X16_COL_N64: Bf16, 128 x 16, B Col, 1 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_bf16_64x64_row_n512 BCSR_BF16_64X64_ROW_N512: Bf16, 64 x 64, B Row, 2 panels of 256, 3 stages, staging 32, BlockScope;
    bcsr_bf16_64x64_row_n128 BCSR_BF16_64X64_ROW_N128: Bf16, 64 x 64, B Row, 2 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_bf16_64x64_col_n512 BCSR_BF16_64X64_COL_N512: Bf16, 64 x 64, B Col, 2 panels of 256, 3 stages, staging 32, BlockScope;
    bcsr_bf16_64x64_col_n128 BCSR_BF16_64X64_COL_N128: Bf16, 64 x 64, B Col, 2 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_bf16_64x32_row_n512 BCSR_BF16_64X32_ROW_N512: Bf16, 64 x 32, B Row, 2 panels of 256, 3 stages, staging 32, BlockScope;
    bcsr_bf16_64x32_row_n128 BCSR_BF16_64X32_ROW_N128: Bf16, 64 x 32, B Row, 2 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_bf16_64x32_col_n512 BCSR_BF16_64X32_COL_N512: Bf16, 64 x 32, B Col, 2 panels of 256, 3 stages, staging 32, BlockScope;
    bcsr_bf16_64x32_col_n128 BCSR_BF16_64X32_COL_N128: Bf16, 64 x 32, B Col, 2 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_bf16_64x16_row_n512 BCSR_BF16_64X16_ROW_N512: Bf16, 64 x 16, B Row, 2 panels of 256, 3 stages, staging 32, BlockScope;
    bcsr_bf16_64x16_row_n128 BCSR_BF16_64X16_ROW_N128: Bf16, 64 x 16, B Row, 2 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_bf16_64x16_col_n512 BCSR_BF16_64X16_COL_N512: Bf16, 64 x 16, B Col, 2 panels of 256, 3 stages, staging 32, BlockScope;
    bcsr_bf16_64x16_col_n128 BCSR_BF16_64X16_COL_N128: Bf16, 64 x 16, B Col, 2 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_f16_128x64_row_n256 BCSR_F16_128X64_ROW_N256: F16, 128 x 64, B Row, 1 panels of 256, 4 stages, staging 128, BlockScope;
    bcsr_f16_128x64_row_n256_c2 BCSR_F16_128X64_ROW_N256_C2: F16, 128 x 64, B Row, 1 panels of 256, 4 stages, staging 128, ClusterScope<2>;
    bcsr_f16_128x64_row_n64 BCSR_F16_128X64_ROW_N64: F16, 128 x 64, B Row, 1 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_f16_128x64_col_n256 BCSR_F16_128X64_COL_N256: F16, 128 x 64, B Col, 1 panels of 256, 4 stages, staging 128, BlockScope;
    bcsr_f16_128x64_col_n256_c2 BCSR_F16_128X64_COL_N256_C2: F16, 128 x 64, B Col, 1 panels of 256, 4 stages, staging 128, ClusterScope<2>;
    bcsr_f16_128x64_col_n64 BCSR_F16_128X64_COL_N64: F16, 128 x 64, B Col, 1 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_f16_128x32_row_n256 BCSR_F16_128X32_ROW_N256: F16, 128 x 32, B Row, 1 panels of 256, 4 stages, staging 128, BlockScope;
    bcsr_f16_128x32_row_n64 BCSR_F16_128X32_ROW_N64: F16, 128 x 32, B Row, 1 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_f16_128x32_col_n256 BCSR_F16_128X32_COL_N256: F16, 128 x 32, B Col, 1 panels of 256, 4 stages, staging 128, BlockScope;
    bcsr_f16_128x32_col_n64 BCSR_F16_128X32_COL_N64: F16, 128 x 32, B Col, 1 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_f16_128x16_row_n256 BCSR_F16_128X16_ROW_N256: F16, 128 x 16, B Row, 1 panels of 256, 4 stages, staging 128, BlockScope;
    bcsr_f16_128x16_row_n64 BCSR_F16_128X16_ROW_N64: F16, 128 x 16, B Row, 1 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_f16_128x16_col_n256 BCSR_F16_128X16_COL_N256: F16, 128 x 16, B Col, 1 panels of 256, 4 stages, staging 128, BlockScope;
    bcsr_f16_128x16_col_n64 BCSR_F16_128X16_COL_N64: F16, 128 x 16, B Col, 1 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_f16_64x64_row_n512 BCSR_F16_64X64_ROW_N512: F16, 64 x 64, B Row, 2 panels of 256, 3 stages, staging 32, BlockScope;
    bcsr_f16_64x64_row_n128 BCSR_F16_64X64_ROW_N128: F16, 64 x 64, B Row, 2 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_f16_64x64_col_n512 BCSR_F16_64X64_COL_N512: F16, 64 x 64, B Col, 2 panels of 256, 3 stages, staging 32, BlockScope;
    bcsr_f16_64x64_col_n128 BCSR_F16_64X64_COL_N128: F16, 64 x 64, B Col, 2 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_f16_64x32_row_n512 BCSR_F16_64X32_ROW_N512: F16, 64 x 32, B Row, 2 panels of 256, 3 stages, staging 32, BlockScope;
    bcsr_f16_64x32_row_n128 BCSR_F16_64X32_ROW_N128: F16, 64 x 32, B Row, 2 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_f16_64x32_col_n512 BCSR_F16_64X32_COL_N512: F16, 64 x 32, B Col, 2 panels of 256, 3 stages, staging 32, BlockScope;
    bcsr_f16_64x32_col_n128 BCSR_F16_64X32_COL_N128: F16, 64 x 32, B Col, 2 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_f16_64x16_row_n512 BCSR_F16_64X16_ROW_N512: F16, 64 x 16, B Row, 2 panels of 256, 3 stages, staging 32, BlockScope;
    bcsr_f16_64x16_row_n128 BCSR_F16_64X16_ROW_N128: F16, 64 x 16, B Row, 2 panels of 64, 8 stages, staging 64, BlockScope;
    bcsr_f16_64x16_col_n512 BCSR_F16_64X16_COL_N512: F16, 64 x 16, B Col, 2 panels of 256, 3 stages, staging 32, BlockScope;
    bcsr_f16_64x16_col_n128 BCSR_F16_64X16_COL_N128: F16, 64 x 16, B Col, 2 panels of 64, 8 stages, staging 64, BlockScope;
}
