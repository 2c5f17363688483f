//! The entries: set-up, and one branch on the role.

use hopper_std::global::GlobalArray;
use hopper_std::half::{Bf16, F16};
use hopper_std::kernel;
use hopper_std::ptx::wgmma::{Mma, RegisterWords, Registers};
use hopper_std::sm90::{
    BlockScope, ClusterScope, Pipeline, RegisterBudget, Scope, SharedMemory, Swizzle128, TensorMapRef, Tile, WarpGroup,
};
use hopper_std::thread;

use super::config::{Arguments, CHUNK, CONSUMER_ROWS, Configuration, Dtype, KeyTile, QueryTile, Smem};
use super::consumer::consume;
use super::producer::{Maps, produce};

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
    const TURNS: bool,
    const QUERY_STAGES: usize,
    const STAGES: usize,
    const PRODUCER: u32,
    const CONSUMER: u32,
    const GROUPS: u32,
    C: Scope,
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
        let ring = Pipeline::<_, STAGES, C>::init(Smem::stages(smem), Smem::barriers(smem), warps);
        (WarpGroup::current(), queries.publish(), ring.publish())
    };
    if warp_group.index() == 0 {
        // SAFETY: the producer warp group; its first thread is the one producer.
        unsafe {
            RegisterBudget::<PRODUCER, CONSUMER, GROUPS>::become_producer();
            if thread::thread_idx_x() == 0 {
                produce(&arguments, &maps, queries.producer(), ring.producer());
            }
        }
    } else {
        // SAFETY: a consumer warp group, as counted at `init`.
        unsafe {
            RegisterBudget::<PRODUCER, CONSUMER, GROUPS>::become_consumer();
            consume::<E, S, P, O, KEYS, CHUNKS, CONSUMERS, TURNS, QUERY_STAGES, STAGES, C>(
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
        $name:ident $spec:ident: $element:ident, D $dim:literal in $chunks:literal, $consumers:literal consumers, turns $turns:literal,
        keys $keys:literal, stages $query_stages:literal + $stages:literal, registers $producer:literal / $consumer:literal,
        masked $masked:literal, $scope:ty;
    )*) => {
        /// The exported kernels, `attention_<type>_d<D>`, for rows that see every key, and `_masked` for others.
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
                    cluster = <$scope as Scope>::BLOCKS
                )]
                pub unsafe fn $name(
                    map_q: TensorMapRef<Tile<$element, CONSUMER_ROWS, CHUNK, Swizzle128>>,
                    map_o: TensorMapRef<Tile<$element, CONSUMER_ROWS, CHUNK, Swizzle128>>,
                    map_k: TensorMapRef<Tile<$element, $keys, CHUNK, Swizzle128>>,
                    map_v: TensorMapRef<Tile<$element, $keys, CHUNK, Swizzle128>>,
                    tiles: GlobalArray<[u32; 4]>,
                    tile_offsets: GlobalArray<u32>,
                    lse: *mut f32,
                    scale: f32,
                    softcap: f32,
                    left: i32,
                    right: i32,
                ) {
                    let maps = Maps { q: map_q, o: map_o, k: map_k, v: map_v };
                    let arguments = Arguments { tiles, tile_offsets, lse, scale, softcap, left, right };
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
                            $turns,
                            $query_stages,
                            $stages,
                            $producer,
                            $consumer,
                            $consumers,
                            $scope,
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
                rows: $consumers * CONSUMER_ROWS * <$scope as Scope>::BLOCKS as usize,
                keys: $keys,
                masked: $masked,
                #[cfg(feature = "sim")]
                simulate: |[q, o, k, v], arguments| {
                    let Arguments { tiles, tile_offsets, lse, scale, softcap, left, right } = arguments;
                    // SAFETY: the caller of `simulate` keeps the kernel's contract.
                    unsafe {
                        entries::$name(
                            TensorMapRef::from_raw(q),
                            TensorMapRef::from_raw(o),
                            TensorMapRef::from_raw(k),
                            TensorMapRef::from_raw(v),
                            tiles,
                            tile_offsets,
                            lse,
                            scale,
                            softcap,
                            left,
                            right,
                        );
                    }
                },
            },
        )*];
    };
}

kernels! {
    attention_bf16_d128 ATTENTION_BF16_D128: Bf16, D 128 in 2, 2 consumers, turns true, keys 176, stages 1 + 4, registers 24 / 240, masked false, BlockScope;
    attention_bf16_d128_x ATTENTION_BF16_D128_X: Bf16, D 128 in 2, 2 consumers, turns true, keys 176, stages 2 + 3, registers 24 / 240, masked false, BlockScope;
    attention_bf16_d128_160 ATTENTION_BF16_D128_160: Bf16, D 128 in 2, 2 consumers, turns true, keys 160, stages 2 + 4, registers 24 / 240, masked true, BlockScope;
    attention_bf16_d128_160c ATTENTION_BF16_D128_160C: Bf16, D 128 in 2, 2 consumers, turns true, keys 160, stages 2 + 4, registers 24 / 240, masked true, ClusterScope<2>;
    attention_bf16_d128_m ATTENTION_BF16_D128_M: Bf16, D 128 in 2, 2 consumers, turns true, keys 128, stages 2 + 4, registers 24 / 240, masked true, BlockScope;
    attention_bf16_d128_mn ATTENTION_BF16_D128_MN: Bf16, D 128 in 2, 2 consumers, turns false, keys 128, stages 2 + 4, registers 24 / 240, masked true, BlockScope;
    attention_bf16_d64 ATTENTION_BF16_D64: Bf16, D 64 in 1, 3 consumers, turns false, keys 128, stages 1 + 4, registers 32 / 160, masked true, BlockScope;
    attention_bf16_d64_112 ATTENTION_BF16_D64_112: Bf16, D 64 in 1, 3 consumers, turns false, keys 112, stages 2 + 6, registers 32 / 160, masked true, BlockScope;
    attention_bf16_d256 ATTENTION_BF16_D256: Bf16, D 256 in 4, 2 consumers, turns false, keys 80, stages 1 + 4, registers 24 / 240, masked true, BlockScope;
    attention_bf16_d256_96 ATTENTION_BF16_D256_96: Bf16, D 256 in 4, 2 consumers, turns false, keys 96, stages 1 + 3, registers 24 / 240, masked true, BlockScope;
    attention_bf16_d256_c96 ATTENTION_BF16_D256_C96: Bf16, D 256 in 4, 2 consumers, turns false, keys 96, stages 1 + 3, registers 24 / 240, masked true, ClusterScope<2>;
}
