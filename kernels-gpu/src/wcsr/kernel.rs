//! The entries: set-up, and one branch on the role.

use hopper_std::global::GlobalArray;
use hopper_std::half::{Bf16, F16};
use hopper_std::kernel;
use hopper_std::ptx::tensor::CachePolicy;
use hopper_std::ptx::wgmma::Registers;
use hopper_std::sm90::{
    BlockScope, Pipeline, RegisterBudget, SharedMemory, Swizzle, TensorMapRef, TileShape, WarpGroup,
};
use hopper_std::thread;

use super::config::{
    Arguments, CHUNK, CONSUMER_ROWS, Config, Configuration, Dtype, EIGHT, EIGHTS_PER_PANEL, MOST_WINDOWS, Operands,
    Panels, Rows, Smem,
};
use super::consumer::consume;
use super::gather::gather;
use super::narrow::consume_narrow;
use super::producer::{Maps, produce};
use crate::store::Output;

/// Lines of one copy of V, for windows of `window_rows` rows: as many panels of a stage as a box holds.
const fn lines(window_rows: usize, stage_panels: usize) -> usize {
    let all = window_rows * stage_panels;
    if all > 256 { 256 } else { all }
}

/// Whether windows are the columns of a product, and columns of B its rows.
const fn is_narrow(window_rows: usize) -> bool {
    window_rows < CONSUMER_ROWS
}

/// Registers of the accumulator of a thread: half the columns of a consumer's product.
const fn registers(window_rows: usize, tile_n: usize) -> usize {
    if is_narrow(window_rows) { window_rows / 2 } else { tile_n / 2 }
}

type KernelSmem<
    E,
    const LINES: usize,
    const CHUNKS: usize,
    const COPIES: usize,
    const EIGHTS: usize,
    const STAGES: usize,
    const STAGING_COLS: usize,
    const CONSUMERS: usize,
> = Smem<Operands<E, LINES, CHUNKS, COPIES, EIGHTS>, STAGES, STAGING_COLS, CONSUMERS>;

/// Every WCSR kernel. Block.
///
/// # Safety
/// The launch contract of [`Arguments`].
#[inline(always)]
unsafe fn run<
    C: Config<REGISTERS>,
    const REGISTERS: usize,
    const WINDOW_ROWS: usize,
    const TILE_N: usize,
    const LINES: usize,
    const CHUNKS: usize,
    const COPIES: usize,
    const EIGHTS: usize,
    const STAGES: usize,
    const STAGING_COLS: usize,
    const CONSUMERS: usize,
    const GROUP: usize,
    const LAG: u32,
    const PRODUCER: u32,
    const CONSUMER: u32,
    const WARP_GROUPS: u32,
    const BLOCKS: u32,
>(
    maps: Maps<Panels<C::Element, LINES>, Rows<C::Element, CHUNKS>>,
    arguments: Arguments,
) where
    [f32; REGISTERS]: Registers,
{
    const {
        let (cols, rows) = if is_narrow(WINDOW_ROWS) { (WINDOW_ROWS, TILE_N) } else { (TILE_N, WINDOW_ROWS) };
        assert!(REGISTERS * 2 == cols && CHUNKS * CHUNK == TILE_N, "the tile is what the accumulators hold");
        assert!(
            CONSUMERS * CONSUMER_ROWS == rows && WARP_GROUPS as usize == CONSUMERS,
            "64 rows or columns a consumer"
        );
    }
    // SAFETY: the specification asks for this struct's bytes; every thread of the block is here.
    let (warp_group, staging, pipeline) = unsafe {
        let smem = SharedMemory::<
            KernelSmem<C::Element, LINES, CHUNKS, COPIES, EIGHTS, STAGES, STAGING_COLS, CONSUMERS>,
        >::take();
        let warps = 4 * CONSUMERS as u32;
        let gatherers = if GROUP == EIGHT { 0 } else { 4 };
        let (stages, barriers) = (Smem::stages(smem), Smem::barriers(smem));
        let uninit = Pipeline::<_, STAGES, BlockScope>::init_gathered(stages, barriers, warps, gatherers);
        (WarpGroup::current(), Smem::staging(smem), uninit.publish())
    };
    if warp_group.index() == 0 {
        // SAFETY: the producer warp group: all of it gathers, or its first thread is the one producer.
        unsafe {
            RegisterBudget::<PRODUCER, CONSUMER, WARP_GROUPS, BLOCKS>::become_producer();
            if GROUP != EIGHT {
                let ring = pipeline.gatherer::<LAG>();
                gather::<C::Element, WINDOW_ROWS, TILE_N, LINES, CHUNKS, COPIES, EIGHTS, STAGES, LAG>(
                    &arguments, &maps, ring,
                );
            } else if thread::thread_idx_x() == 0 {
                let ring = pipeline.producer();
                produce::<_, _, WINDOW_ROWS, TILE_N, COPIES, EIGHTS, STAGES>(&arguments, &maps, ring);
            }
        }
    } else {
        // SAFETY: a consumer warp group, as counted at `init`.
        unsafe {
            RegisterBudget::<PRODUCER, CONSUMER, WARP_GROUPS, BLOCKS>::become_consumer();
            let staging = staging.at(warp_group.index() - 1);
            let ring = pipeline.consumer();
            if is_narrow(WINDOW_ROWS) {
                consume_narrow::<C, REGISTERS, WINDOW_ROWS, LINES, CHUNKS, COPIES, EIGHTS, STAGES, STAGING_COLS>(
                    &arguments, warp_group, staging, ring,
                );
            } else {
                consume::<C, REGISTERS, WINDOW_ROWS, LINES, CHUNKS, COPIES, EIGHTS, STAGES, STAGING_COLS>(
                    &arguments, warp_group, staging, ring,
                );
            }
        }
    }
}

/// Makes the entries and the list of their configurations.
macro_rules! kernels {
    ($(
        $name:ident $spec:ident: $element:ident, windows of $rows:literal x $group:literal, $tile_n:literal columns, $panels:literal panels x
        $stages:literal stages, staging $staging:literal, registers $producer:literal / $consumer:literal x $consumers:literal,
        $blocks:literal blocks;
    )*) => {
        /// The exported kernels, `wcsr_<type>_<H>x<group>_n<TN>`.
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

                impl Config<{ registers($rows, $tile_n) }> for $name {
                    type Element = $element;
                }

                #[doc = concat!("WCSR SpMM, ", stringify!($element), ", windows of ", $rows, " rows, groups of ", $group, ".")]
                #[kernel(
                    threads = RegisterBudget::<$producer, $consumer, $consumers, $blocks>::THREADS,
                    shared = SharedMemory::<
                        KernelSmem<
                            $element,
                            { lines($rows, $panels) },
                            { $tile_n / CHUNK },
                            { $rows * $panels / lines($rows, $panels) },
                            { $panels * EIGHTS_PER_PANEL },
                            $stages,
                            $staging,
                            $consumers,
                        >,
                    >::BYTES,
                    min_blocks = $blocks
                )]
                pub unsafe fn $name(
                    map_v: TensorMapRef<Panels<$element, { lines($rows, $panels) }>>,
                    map_b: TensorMapRef<Rows<$element, { $tile_n / CHUNK }>>,
                    groups: GlobalArray<u32>,
                    tiles: GlobalArray<[u32; 4]>,
                    tile_offsets: GlobalArray<u32>,
                    workspace: *mut f32,
                    c: *mut u8,
                    leading_dimension: u64,
                    num_rows: u32,
                    num_cols: u32,
                    alpha: f32,
                    beta: f32,
                    output: u32,
                    rows: GlobalArray<u32>,
                    policy_v: CachePolicy,
                    b: *const u8,
                    b_leading_dimension: u64,
                    num_inner: u32,
                ) {
                    let arguments = Arguments {
                        groups,
                        tiles,
                        tile_offsets,
                        workspace,
                        output: Output {
                            c,
                            leading_dimension,
                            num_rows,
                            num_cols,
                            alpha,
                            beta,
                            kind: output,
                            row_order: rows,
                            col_order: GlobalArray::null(),
                        },
                        policy_v,
                        b,
                        b_leading_dimension,
                        num_inner,
                    };
                    // SAFETY: the launch contract is passed on.
                    unsafe {
                        run::<
                            $name,
                            { registers($rows, $tile_n) },
                            $rows,
                            $tile_n,
                            { lines($rows, $panels) },
                            { $tile_n / CHUNK },
                            { $rows * $panels / lines($rows, $panels) },
                            { $panels * EIGHTS_PER_PANEL },
                            $stages,
                            $staging,
                            $consumers,
                            $group,
                            { $stages - 2 },
                            $producer,
                            $consumer,
                            $consumers,
                            $blocks,
                        >(Maps { v: map_v, b: map_b }, arguments);
                    }
                }
            )*
        }

        /// Every WCSR kernel, and what the host must know to launch it.
        pub static CONFIGURATIONS: &[Configuration] = &[$(
            Configuration {
                spec: &entries::$spec,
                dtype: Dtype::$element,
                window_rows: $rows,
                group: $group,
                tile_n: $tile_n,
                stage_panels: $panels,
                stages: $stages,
                most_windows: if is_narrow($rows) { MOST_WINDOWS } else { 1 },
                blocks: $blocks,
                v_box: <Panels<$element, { lines($rows, $panels) }> as TileShape>::BOX,
                v_swizzle: <<Panels<$element, { lines($rows, $panels) }> as TileShape>::Swizzle as Swizzle>::TENSOR_MAP_MODE,
                b_box: {
                    let [cols, rows] = <Rows<$element, { $tile_n / CHUNK }> as TileShape>::BOX;
                    [cols, rows, <Rows<$element, { $tile_n / CHUNK }> as TileShape>::BOX_DEPTH]
                },
                b_swizzle: <<Rows<$element, { $tile_n / CHUNK }> as TileShape>::Swizzle as Swizzle>::TENSOR_MAP_MODE,
                #[cfg(feature = "sim")]
                simulate: |map_v, map_b, arguments| {
                    let Arguments { groups, tiles, tile_offsets, workspace, output, policy_v, .. } = arguments;
                    let Arguments { b, b_leading_dimension, num_inner, .. } = arguments;
                    let Output { c, leading_dimension, num_rows, num_cols, alpha, beta, kind, row_order, .. } = output;
                    // SAFETY: the caller of `simulate` keeps the kernel's contract.
                    unsafe {
                        entries::$name(
                            TensorMapRef::from_raw(map_v),
                            TensorMapRef::from_raw(map_b),
                            groups,
                            tiles,
                            tile_offsets,
                            workspace,
                            c,
                            leading_dimension,
                            num_rows,
                            num_cols,
                            alpha,
                            beta,
                            kind,
                            row_order,
                            policy_v,
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
    wcsr_bf16_64x8_n64 WCSR_BF16_64X8_N64: Bf16, windows of 64 x 8, 64 columns, 4 panels x 6 stages, staging 64, registers 40 / 216 x 1, 2 blocks;
    wcsr_bf16_64x8_n128 WCSR_BF16_64X8_N128: Bf16, windows of 64 x 8, 128 columns, 4 panels x 4 stages, staging 64, registers 40 / 216 x 1, 2 blocks;
    wcsr_bf16_128x8_n64 WCSR_BF16_128X8_N64: Bf16, windows of 128 x 8, 64 columns, 4 panels x 8 stages, staging 64, registers 40 / 232 x 2, 1 blocks;
    wcsr_bf16_128x8_n128 WCSR_BF16_128X8_N128: Bf16, windows of 128 x 8, 128 columns, 4 panels x 6 stages, staging 64, registers 40 / 232 x 2, 1 blocks;
    wcsr_bf16_128x8_n256 WCSR_BF16_128X8_N256: Bf16, windows of 128 x 8, 256 columns, 4 panels x 4 stages, staging 64, registers 40 / 232 x 2, 1 blocks;
    wcsr_bf16_64x1_n64 WCSR_BF16_64X1_N64: Bf16, windows of 64 x 1, 64 columns, 4 panels x 6 stages, staging 64, registers 56 / 200 x 1, 2 blocks;
    wcsr_bf16_64x1_n128 WCSR_BF16_64X1_N128: Bf16, windows of 64 x 1, 128 columns, 4 panels x 4 stages, staging 64, registers 56 / 200 x 1, 2 blocks;
    wcsr_bf16_128x1_n64 WCSR_BF16_128X1_N64: Bf16, windows of 128 x 1, 64 columns, 4 panels x 8 stages, staging 64, registers 56 / 224 x 2, 1 blocks;
    wcsr_bf16_128x1_n128 WCSR_BF16_128X1_N128: Bf16, windows of 128 x 1, 128 columns, 4 panels x 6 stages, staging 64, registers 56 / 224 x 2, 1 blocks;
    wcsr_bf16_128x1_n256 WCSR_BF16_128X1_N256: Bf16, windows of 128 x 1, 256 columns, 4 panels x 4 stages, staging 64, registers 56 / 224 x 2, 1 blocks;
    wcsr_f16_64x8_n64 WCSR_F16_64X8_N64: F16, windows of 64 x 8, 64 columns, 4 panels x 6 stages, staging 64, registers 40 / 216 x 1, 2 blocks;
    wcsr_f16_64x8_n128 WCSR_F16_64X8_N128: F16, windows of 64 x 8, 128 columns, 4 panels x 4 stages, staging 64, registers 40 / 216 x 1, 2 blocks;
    wcsr_f16_128x8_n64 WCSR_F16_128X8_N64: F16, windows of 128 x 8, 64 columns, 4 panels x 8 stages, staging 64, registers 40 / 232 x 2, 1 blocks;
    wcsr_f16_128x8_n128 WCSR_F16_128X8_N128: F16, windows of 128 x 8, 128 columns, 4 panels x 6 stages, staging 64, registers 40 / 232 x 2, 1 blocks;
    wcsr_f16_128x8_n256 WCSR_F16_128X8_N256: F16, windows of 128 x 8, 256 columns, 4 panels x 4 stages, staging 64, registers 40 / 232 x 2, 1 blocks;
    wcsr_f16_64x1_n64 WCSR_F16_64X1_N64: F16, windows of 64 x 1, 64 columns, 4 panels x 6 stages, staging 64, registers 56 / 200 x 1, 2 blocks;
    wcsr_f16_64x1_n128 WCSR_F16_64X1_N128: F16, windows of 64 x 1, 128 columns, 4 panels x 4 stages, staging 64, registers 56 / 200 x 1, 2 blocks;
    wcsr_f16_128x1_n64 WCSR_F16_128X1_N64: F16, windows of 128 x 1, 64 columns, 4 panels x 8 stages, staging 64, registers 56 / 224 x 2, 1 blocks;
    wcsr_f16_128x1_n128 WCSR_F16_128X1_N128: F16, windows of 128 x 1, 128 columns, 4 panels x 6 stages, staging 64, registers 56 / 224 x 2, 1 blocks;
    wcsr_f16_128x1_n256 WCSR_F16_128X1_N256: F16, windows of 128 x 1, 256 columns, 4 panels x 4 stages, staging 64, registers 56 / 224 x 2, 1 blocks;
    wcsr_bf16_8x8_n64 WCSR_BF16_8X8_N64: Bf16, windows of 8 x 8, 64 columns, 4 panels x 5 stages, staging 16, registers 40 / 88 x 1, 4 blocks;
    wcsr_bf16_8x8_n128 WCSR_BF16_8X8_N128: Bf16, windows of 8 x 8, 128 columns, 4 panels x 6 stages, staging 16, registers 40 / 96 x 2, 2 blocks;
    wcsr_bf16_16x8_n64 WCSR_BF16_16X8_N64: Bf16, windows of 16 x 8, 64 columns, 4 panels x 5 stages, staging 16, registers 40 / 88 x 1, 4 blocks;
    wcsr_bf16_16x8_n128 WCSR_BF16_16X8_N128: Bf16, windows of 16 x 8, 128 columns, 4 panels x 6 stages, staging 16, registers 40 / 96 x 2, 2 blocks;
    wcsr_bf16_8x1_n64 WCSR_BF16_8X1_N64: Bf16, windows of 8 x 1, 64 columns, 4 panels x 5 stages, staging 16, registers 56 / 72 x 1, 4 blocks;
    wcsr_bf16_8x1_n128 WCSR_BF16_8X1_N128: Bf16, windows of 8 x 1, 128 columns, 4 panels x 6 stages, staging 16, registers 56 / 88 x 2, 2 blocks;
    wcsr_bf16_16x1_n64 WCSR_BF16_16X1_N64: Bf16, windows of 16 x 1, 64 columns, 4 panels x 5 stages, staging 16, registers 56 / 72 x 1, 4 blocks;
    wcsr_bf16_16x1_n128 WCSR_BF16_16X1_N128: Bf16, windows of 16 x 1, 128 columns, 4 panels x 6 stages, staging 16, registers 56 / 88 x 2, 2 blocks;
    wcsr_f16_8x8_n64 WCSR_F16_8X8_N64: F16, windows of 8 x 8, 64 columns, 4 panels x 5 stages, staging 16, registers 40 / 88 x 1, 4 blocks;
    wcsr_f16_8x8_n128 WCSR_F16_8X8_N128: F16, windows of 8 x 8, 128 columns, 4 panels x 6 stages, staging 16, registers 40 / 96 x 2, 2 blocks;
    wcsr_f16_16x8_n64 WCSR_F16_16X8_N64: F16, windows of 16 x 8, 64 columns, 4 panels x 5 stages, staging 16, registers 40 / 88 x 1, 4 blocks;
    wcsr_f16_16x8_n128 WCSR_F16_16X8_N128: F16, windows of 16 x 8, 128 columns, 4 panels x 6 stages, staging 16, registers 40 / 96 x 2, 2 blocks;
    wcsr_f16_8x1_n64 WCSR_F16_8X1_N64: F16, windows of 8 x 1, 64 columns, 4 panels x 5 stages, staging 16, registers 56 / 72 x 1, 4 blocks;
    wcsr_f16_8x1_n128 WCSR_F16_8X1_N128: F16, windows of 8 x 1, 128 columns, 4 panels x 6 stages, staging 16, registers 56 / 88 x 2, 2 blocks;
    wcsr_f16_16x1_n64 WCSR_F16_16X1_N64: F16, windows of 16 x 1, 64 columns, 4 panels x 5 stages, staging 16, registers 56 / 72 x 1, 4 blocks;
    wcsr_f16_16x1_n128 WCSR_F16_16X1_N128: F16, windows of 16 x 1, 128 columns, 4 panels x 6 stages, staging 16, registers 56 / 88 x 2, 2 blocks;
}
