//! The entries: set-up, and one branch on the role.

use hopper_std::global::GlobalArray;
use hopper_std::half::{Bf16, F16};
use hopper_std::kernel;
use hopper_std::ptx::wgmma::{Mma, RegisterWords, Registers};
use hopper_std::sm90::{
    BlockScope, Pipeline, RegisterBudget, SharedMemory, Swizzle128, TensorMapRef, Tile, TileRow, WarpGroup,
};
use hopper_std::thread;

use super::config::{
    Arguments, CHUNK, CONSUMER_ROWS, Configuration, Dtype, KeyTile, List, QueryTile, Range, Serves, Smem, Source,
};
use super::consumer::consume;
use super::producer::{Maps, produce};
use super::turn::{Alternating, Turns, Unordered};

type KernelSmem<
    E,
    const KEYS: usize,
    const CHUNKS: usize,
    const CONSUMERS: usize,
    const QUERY_STAGES: usize,
    const STAGES: usize,
> = Smem<QueryTile<E, CHUNKS>, KeyTile<E, KEYS, CHUNKS>, CONSUMERS, QUERY_STAGES, STAGES>;

/// Every attention kernel. Block.
///
/// # Safety
/// The launch contract of [`Arguments`].
#[inline(always)]
unsafe fn run<
    E: Mma<S> + Mma<O>,
    const S: usize,
    const P: usize,
    const O: usize,
    const KEYS: usize,
    const CHUNKS: usize,
    const CONSUMERS: usize,
    const QUERY_STAGES: usize,
    const STAGES: usize,
    const PRODUCER: u32,
    const CONSUMER: u32,
    const GROUPS: u32,
    const BLOCKS: u32,
    K: Source,
    T: Turns,
>(
    maps: Maps<E, KEYS>,
    arguments: Arguments,
) where
    [f32; S]: Registers,
    [f32; O]: Registers,
    [u32; P]: RegisterWords,
{
    const {
        assert!(S * 2 == KEYS && P * 2 == S && O * 2 <= CHUNKS * CHUNK && GROUPS as usize == CONSUMERS);
    }
    let warps = 4 * CONSUMERS as u32;
    // SAFETY: the specification asks for this struct's bytes; every thread of the block is here.
    let (warp_group, queries, ring) = unsafe {
        let smem = SharedMemory::<KernelSmem<E, KEYS, CHUNKS, CONSUMERS, QUERY_STAGES, STAGES>>::take();
        let queries =
            Pipeline::<_, QUERY_STAGES, BlockScope>::init(Smem::queries(smem), Smem::query_barriers(smem), warps);
        let ring = Pipeline::<_, STAGES, BlockScope>::init(Smem::stages(smem), Smem::barriers(smem), warps);
        (WarpGroup::current(), queries.publish(), ring.publish())
    };
    if warp_group.index() == 0 {
        // SAFETY: the producer warp group; its first thread is the one producer.
        unsafe {
            RegisterBudget::<PRODUCER, CONSUMER, GROUPS, BLOCKS>::become_producer();
            if thread::thread_idx_x() == 0 {
                produce::<E, KEYS, CHUNKS, CONSUMERS, QUERY_STAGES, STAGES, K>(
                    &arguments,
                    &maps,
                    queries.producer(),
                    ring.producer(),
                );
            }
        }
    } else {
        // SAFETY: a consumer warp group, as counted at `init`.
        unsafe {
            RegisterBudget::<PRODUCER, CONSUMER, GROUPS, BLOCKS>::become_consumer();
            consume::<E, S, P, O, KEYS, CHUNKS, CONSUMERS, QUERY_STAGES, STAGES, K, T>(
                &arguments,
                warp_group,
                maps.o,
                queries.consumer(),
                ring.consumer(),
            );
        }
    }
}

/// Makes the entries and the list of their configurations.
macro_rules! kernels {
    ($(
        $name:ident $spec:ident: $element:ident, D $dim:literal in $chunks:literal, $consumers:literal consumers, $turns:ident,
        keys $keys:literal, stages $query_stages:literal + $stages:literal, registers $producer:literal / $consumer:literal,
        $blocks:literal blocks, $serves:ident of $source:ident;
    )*) => {
        /// The exported kernels, `attention_<type>_d<D>`; `_masked` where rows that do not see every key have one of their own.
        ///
        /// # Safety
        /// The launch contract of each is that of [`Arguments`](super::Arguments), with the maps of its
        /// [`Configuration`](super::Configuration).
        #[allow(clippy::too_many_arguments, clippy::missing_safety_doc)]
        pub mod entries {
            use super::*;

            $(
                #[doc = concat!("Attention, ", stringify!($element), ", D = ", $dim, ", ", $keys, " keys at once.")]
                #[kernel(
                    threads = RegisterBudget::<$producer, $consumer, $consumers>::THREADS,
                    shared = SharedMemory::<
                        KernelSmem<$element, $keys, $chunks, $consumers, $query_stages, $stages>,
                    >::BYTES,
                    min_blocks = $blocks
                )]
                pub unsafe fn $name(
                    map_q: TensorMapRef<Tile<$element, CONSUMER_ROWS, CHUNK, Swizzle128>>,
                    map_o: TensorMapRef<Tile<$element, CONSUMER_ROWS, CHUNK, Swizzle128>>,
                    map_k: TensorMapRef<Tile<$element, $keys, CHUNK, Swizzle128>>,
                    map_v: TensorMapRef<Tile<$element, $keys, CHUNK, Swizzle128>>,
                    map_key: TensorMapRef<TileRow<$element, CHUNK, Swizzle128>>,
                    map_value: TensorMapRef<TileRow<$element, CHUNK, Swizzle128>>,
                    tiles: GlobalArray<[u32; 4]>,
                    tile_offsets: GlobalArray<u32>,
                    lse: *mut f32,
                    scale: f32,
                    softcap: f32,
                    left: i32,
                    right: i32,
                    diagonal_step: i32,
                    blocks: GlobalArray<u32>,
                    columns: GlobalArray<u32>,
                    partial: *mut f32,
                    query_shift: i32,
                    key_shift: i32,
                ) {
                    let maps = Maps { q: map_q, o: map_o, k: map_k, v: map_v, key: map_key, value: map_value };
                    let arguments = Arguments {
                        tiles,
                        tile_offsets,
                        lse,
                        scale,
                        softcap,
                        left,
                        right,
                        diagonal_step,
                        blocks,
                        columns,
                        partial,
                        query_shift,
                        key_shift,
                    };
                    // SAFETY: the launch contract is passed on.
                    unsafe {
                        run::<
                            $element,
                            { $keys / 2 },
                            { $keys / 4 },
                            { $dim / 2 },
                            $keys,
                            $chunks,
                            $consumers,
                            $query_stages,
                            $stages,
                            $producer,
                            $consumer,
                            $consumers,
                            $blocks,
                            $source,
                            $turns,
                        >(maps, arguments);
                    }
                }
            )*
        }

        /// Every attention kernel, and what the host must know to launch it.
        pub static CONFIGURATIONS: &[Configuration] = &[$(
            Configuration {
                spec: &entries::$spec,
                dtype: Dtype::$element,
                head_dim: $dim,
                rows: $consumers * CONSUMER_ROWS,
                keys: $keys,
                serves: Serves::$serves,
                #[cfg(feature = "sim")]
                simulate: |[q, o, k, v, key, value], arguments| {
                    let Arguments { tiles, tile_offsets, lse, scale, softcap, .. } = arguments;
                    let Arguments { left, right, diagonal_step, blocks, columns, partial, .. } = arguments;
                    let Arguments { query_shift, key_shift, .. } = arguments;
                    // SAFETY: the caller of `simulate` keeps the kernel's contract.
                    unsafe {
                        entries::$name(
                            TensorMapRef::from_raw(q),
                            TensorMapRef::from_raw(o),
                            TensorMapRef::from_raw(k),
                            TensorMapRef::from_raw(v),
                            TensorMapRef::from_raw(key),
                            TensorMapRef::from_raw(value),
                            tiles,
                            tile_offsets,
                            lse,
                            scale,
                            softcap,
                            left,
                            right,
                            diagonal_step,
                            blocks,
                            columns,
                            partial,
                            query_shift,
                            key_shift,
                        );
                    }
                },
            },
        )*];
    };
}

kernels! {
    attention_bf16_d64 ATTENTION_BF16_D64: Bf16, D 64 in 1, 3 consumers, Unordered, keys 128, stages 2 + 3, registers 32 / 160, 1 blocks, Either of Range;
    attention_bf16_d64_few_rows ATTENTION_BF16_D64_FEW_ROWS: Bf16, D 64 in 1, 1 consumers, Unordered, keys 64, stages 2 + 12, registers 24 / 232, 2 blocks, FewRows of Range;
    attention_bf16_d64_blocks64 ATTENTION_BF16_D64_BLOCKS64: Bf16, D 64 in 1, 1 consumers, Unordered, keys 64, stages 2 + 12, registers 24 / 232, 2 blocks, Blocks of List;
    attention_bf16_d64_blocks128 ATTENTION_BF16_D64_BLOCKS128: Bf16, D 64 in 1, 2 consumers, Unordered, keys 128, stages 2 + 6, registers 24 / 240, 1 blocks, Blocks of List;
    attention_bf16_d96 ATTENTION_BF16_D96: Bf16, D 96 in 2, 2 consumers, Alternating, keys 128, stages 2 + 4, registers 24 / 240, 1 blocks, Either of Range;
    attention_bf16_d96_few_rows ATTENTION_BF16_D96_FEW_ROWS: Bf16, D 96 in 2, 1 consumers, Unordered, keys 64, stages 2 + 5, registers 24 / 232, 2 blocks, FewRows of Range;
    attention_bf16_d128 ATTENTION_BF16_D128: Bf16, D 128 in 2, 3 consumers, Unordered, keys 80, stages 2 + 5, registers 32 / 160, 1 blocks, Either of Range;
    attention_bf16_d128_masked ATTENTION_BF16_D128_MASKED: Bf16, D 128 in 2, 2 consumers, Unordered, keys 128, stages 2 + 4, registers 24 / 240, 1 blocks, Masked of Range;
    attention_bf16_d128_few_rows ATTENTION_BF16_D128_FEW_ROWS: Bf16, D 128 in 2, 1 consumers, Unordered, keys 64, stages 2 + 5, registers 24 / 232, 2 blocks, FewRows of Range;
    attention_bf16_d128_blocks64 ATTENTION_BF16_D128_BLOCKS64: Bf16, D 128 in 2, 1 consumers, Unordered, keys 64, stages 2 + 5, registers 24 / 232, 2 blocks, Blocks of List;
    attention_bf16_d128_blocks128 ATTENTION_BF16_D128_BLOCKS128: Bf16, D 128 in 2, 2 consumers, Alternating, keys 128, stages 2 + 4, registers 24 / 240, 1 blocks, Blocks of List;
    attention_bf16_d192 ATTENTION_BF16_D192: Bf16, D 192 in 3, 2 consumers, Unordered, keys 112, stages 1 + 4, registers 24 / 240, 1 blocks, Either of Range;
    attention_bf16_d192_few_rows ATTENTION_BF16_D192_FEW_ROWS: Bf16, D 192 in 3, 1 consumers, Unordered, keys 64, stages 2 + 7, registers 24 / 248, 1 blocks, FewRows of Range;
    attention_bf16_d256 ATTENTION_BF16_D256: Bf16, D 256 in 4, 2 consumers, Alternating, keys 96, stages 1 + 3, registers 24 / 240, 1 blocks, Either of Range;
    attention_bf16_d256_few_rows ATTENTION_BF16_D256_FEW_ROWS: Bf16, D 256 in 4, 1 consumers, Unordered, keys 64, stages 2 + 5, registers 24 / 248, 1 blocks, FewRows of Range;
    attention_f16_d64 ATTENTION_F16_D64: F16, D 64 in 1, 3 consumers, Unordered, keys 128, stages 2 + 3, registers 32 / 160, 1 blocks, Either of Range;
    attention_f16_d64_few_rows ATTENTION_F16_D64_FEW_ROWS: F16, D 64 in 1, 1 consumers, Unordered, keys 64, stages 2 + 12, registers 24 / 232, 2 blocks, FewRows of Range;
    attention_f16_d64_blocks64 ATTENTION_F16_D64_BLOCKS64: F16, D 64 in 1, 1 consumers, Unordered, keys 64, stages 2 + 12, registers 24 / 232, 2 blocks, Blocks of List;
    attention_f16_d64_blocks128 ATTENTION_F16_D64_BLOCKS128: F16, D 64 in 1, 2 consumers, Unordered, keys 128, stages 2 + 6, registers 24 / 240, 1 blocks, Blocks of List;
    attention_f16_d96 ATTENTION_F16_D96: F16, D 96 in 2, 2 consumers, Alternating, keys 128, stages 2 + 4, registers 24 / 240, 1 blocks, Either of Range;
    attention_f16_d96_few_rows ATTENTION_F16_D96_FEW_ROWS: F16, D 96 in 2, 1 consumers, Unordered, keys 64, stages 2 + 5, registers 24 / 232, 2 blocks, FewRows of Range;
    attention_f16_d128 ATTENTION_F16_D128: F16, D 128 in 2, 3 consumers, Unordered, keys 80, stages 2 + 5, registers 32 / 160, 1 blocks, Either of Range;
    attention_f16_d128_masked ATTENTION_F16_D128_MASKED: F16, D 128 in 2, 2 consumers, Unordered, keys 128, stages 2 + 4, registers 24 / 240, 1 blocks, Masked of Range;
    attention_f16_d128_few_rows ATTENTION_F16_D128_FEW_ROWS: F16, D 128 in 2, 1 consumers, Unordered, keys 64, stages 2 + 5, registers 24 / 232, 2 blocks, FewRows of Range;
    attention_f16_d128_blocks64 ATTENTION_F16_D128_BLOCKS64: F16, D 128 in 2, 1 consumers, Unordered, keys 64, stages 2 + 5, registers 24 / 232, 2 blocks, Blocks of List;
    attention_f16_d128_blocks128 ATTENTION_F16_D128_BLOCKS128: F16, D 128 in 2, 2 consumers, Alternating, keys 128, stages 2 + 4, registers 24 / 240, 1 blocks, Blocks of List;
    attention_f16_d192 ATTENTION_F16_D192: F16, D 192 in 3, 2 consumers, Unordered, keys 112, stages 1 + 4, registers 24 / 240, 1 blocks, Either of Range;
    attention_f16_d192_few_rows ATTENTION_F16_D192_FEW_ROWS: F16, D 192 in 3, 1 consumers, Unordered, keys 64, stages 2 + 7, registers 24 / 248, 1 blocks, FewRows of Range;
    attention_f16_d256 ATTENTION_F16_D256: F16, D 256 in 4, 2 consumers, Alternating, keys 96, stages 1 + 3, registers 24 / 240, 1 blocks, Either of Range;
    attention_f16_d256_few_rows ATTENTION_F16_D256_FEW_ROWS: F16, D 256 in 4, 1 consumers, Unordered, keys 64, stages 2 + 5, registers 24 / 248, 1 blocks, FewRows of Range;
}
