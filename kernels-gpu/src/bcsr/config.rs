//! What a BCSR kernel is made of: operand tiles, stages, shared memory, arguments.

use hopper_std::ptx::tensor::CachePolicy;
use hopper_std::ptx::wgmma::Mma;
use hopper_std::sm90::{
    EmptySlot, KMajor, Major, MnMajor, PipelineBarriers, RegisterBudget, Scope, Shared, Swizzle, Swizzle128,
    TensorMapRef, Tile, TileShape,
};
use hopper_std::{KernelSpec, SharedLayout};

use crate::store::{Output, Staging};

/// Registers a thread: 40 for the producer, 232 for each of two consumers.
pub type Budget = RegisterBudget<40, 232, 2>;

/// Consumer warps of a block.
pub const CONSUMER_WARPS: u32 = 8;

/// Elements of K in one stage.
pub const STAGE_K: usize = 64;

/// One kernel: element type, operand tiles, cluster. `REGISTERS` of accumulator a thread: half the columns that one
/// consumer computes.
pub trait Config<const REGISTERS: usize>: 'static {
    /// The type of A and B.
    type Element: Mma<REGISTERS>;
    /// A block of A: BR x BC, K-major.
    type A: ABlock;
    /// The columns of B that one consumer reads.
    type B: Panel;
    /// One block, or a cluster that shares A.
    type Scope: Scope;
}

/// A block of A in shared memory.
pub trait ABlock: TileShape + Sized {
    /// As the left operand, from row `first_row` on.
    fn operand(tile: Shared<Self>, first_row: u32) -> KMajor;
}

impl<E: 'static, const ROWS: usize, const COLS: usize, S: Swizzle> ABlock for Tile<E, ROWS, COLS, S> {
    #[inline(always)]
    fn operand(tile: Shared<Self>, first_row: u32) -> KMajor {
        tile.k_major(first_row)
    }
}

/// A panel of B in shared memory: BC of K, and the columns of one consumer.
pub trait Panel: Sized {
    /// What one copy brings.
    type Tile: TileShape;
    /// How the tensor cores read it.
    type Operand: Major;
    /// Columns of B.
    const COLS: usize;

    /// Starts the copies of the panel at `at`, row and column of B, with a preference for what L2 keeps.
    ///
    /// # Safety
    /// `panel` is part of the slot's stage and no other copy fills it. Thread.
    unsafe fn load<St, S: Scope>(
        slot: &EmptySlot<St, S>,
        panel: Shared<Self>,
        map: TensorMapRef<Self::Tile>,
        at: [i32; 2],
        policy: CachePolicy,
    );

    /// As the right operand.
    fn operand(panel: Shared<Self>) -> Self::Operand;
}

/// Row-major B: lines of K, in chunks of 64 columns. The map's dimensions are (N, K).
impl<E: 'static, const ROWS: usize, const CHUNKS: usize> Panel for [Tile<E, ROWS, 64, Swizzle128>; CHUNKS] {
    type Tile = Tile<E, ROWS, 64, Swizzle128>;
    type Operand = MnMajor;
    const COLS: usize = 64 * CHUNKS;

    #[inline(always)]
    unsafe fn load<St, S: Scope>(
        slot: &EmptySlot<St, S>,
        panel: Shared<Self>,
        map: TensorMapRef<Self::Tile>,
        [k, n]: [i32; 2],
        policy: CachePolicy,
    ) {
        let mut chunk = 0;
        while chunk < CHUNKS as u32 {
            // SAFETY: each chunk is a part of the panel; the rest is the caller's promise.
            unsafe { slot.load_2d_hinted(panel.at(chunk), map, [n + (chunk * 64) as i32, k], policy) };
            chunk += 1;
        }
    }

    #[inline(always)]
    fn operand(panel: Shared<Self>) -> MnMajor {
        panel.mn_major()
    }
}

/// Column-major B: lines of N, each BC of K. The map's dimensions are (K, N).
impl<E: 'static, const COLS: usize, const BC: usize, S: Swizzle> Panel for Tile<E, COLS, BC, S> {
    type Tile = Self;
    type Operand = KMajor;
    const COLS: usize = COLS;

    #[inline(always)]
    unsafe fn load<St, Sc: Scope>(
        slot: &EmptySlot<St, Sc>,
        panel: Shared<Self>,
        map: TensorMapRef<Self>,
        [k, n]: [i32; 2],
        policy: CachePolicy,
    ) {
        // SAFETY: the caller's promise.
        unsafe { slot.load_2d_hinted(panel, map, [k, n], policy) }
    }

    #[inline(always)]
    fn operand(panel: Shared<Self>) -> KMajor {
        panel.k_major(0)
    }
}

/// What one block of A is multiplied with: itself, and a panel of B for each consumer that has its own.
#[repr(C)]
#[derive(SharedLayout)]
pub struct Operands<A, B, const PANELS: usize> {
    /// The block of A.
    pub a: A,
    /// Its rows of B.
    pub b: [B; PANELS],
}

/// One stage: the blocks that make up 64 of K.
pub type Stage<A, B, const PANELS: usize, const GROUP: usize> = [Operands<A, B, PANELS>; GROUP];

/// All of a kernel's shared memory.
#[repr(C, align(1024))]
#[derive(SharedLayout)]
pub struct Smem<S, const STAGES: usize, const STAGING_COLS: usize> {
    /// The ring.
    pub stages: [S; STAGES],
    /// A part for each consumer.
    pub staging: [Staging<STAGING_COLS>; 2],
    /// Its barriers.
    pub barriers: PipelineBarriers<STAGES>,
}

/// Words of an entry in the list of blocks: the block's index in the values, and its block column.
pub const WORDS_PER_BLOCK: usize = 2;

/// Words of an entry in the list of tiles.
pub const WORDS_PER_TILE: usize = 4;

/// One tile of C: an entry in the list that the host makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileWork {
    /// The row block.
    pub row_block: u32,
    /// The panel: TN columns of one block, or of each block of a cluster.
    pub panel: u32,
    /// Its first stage: `begin * GROUP` is its first entry in the list of blocks.
    pub begin: u32,
    /// One past its last stage.
    pub end: u32,
}

impl TileWork {
    /// As the words that the kernel reads.
    #[inline(always)]
    pub const fn to_words(self) -> [u32; WORDS_PER_TILE] {
        [self.row_block, self.panel, self.begin, self.end]
    }

    /// From the words that the host wrote.
    #[inline(always)]
    pub const fn from_words([row_block, panel, begin, end]: [u32; WORDS_PER_TILE]) -> Self {
        Self { row_block, panel, begin, end }
    }
}

impl Arguments {
    /// Tile `index` of the list. With alpha = 0 it has no stages: A and B are not read.
    ///
    /// # Safety
    /// `index` is within the list.
    #[inline(always)]
    pub(crate) unsafe fn tile(&self, index: u32) -> TileWork {
        // SAFETY: the caller's promise.
        let mut tile = TileWork::from_words(unsafe { self.tiles.get(index) });
        if self.output.alpha == 0.0 {
            tile.end = tile.begin;
        }
        tile
    }
}

/// The arguments of every BCSR kernel, in the order of its parameters.
///
/// | parameter | what it is |
/// | --- | --- |
/// | `map_a` | blocks of A: dimensions (BC, BR, number of blocks), box (BC, BR / cluster, 1) |
/// | `map_b` | B: dimensions (N, K) row-major, (K, N) column-major; box of `Panel::Tile` |
/// | `blocks` | `[block index, block column]` for each block, padded to whole stages in each row block |
/// | `tiles` | [`TileWork`] for each tile, by worker |
/// | `tile_offsets` | where each worker's tiles begin; one more than there are workers |
/// | `c` | C |
/// | `leading_dimension` | of C: from line to line, in elements |
/// | `num_rows`, `num_cols` | M and N |
/// | `alpha`, `beta` | scalars |
/// | `output` | [`OutputKind`](crate::store::OutputKind) |
/// | `policy_a`, `policy_b` | what L2 should keep: [`CachePolicy`] |
///
/// A worker is a block, or a cluster of blocks.
#[derive(Clone, Copy)]
pub struct Arguments {
    /// Entries of the list of blocks.
    pub blocks: hopper_std::global::GlobalArray<[u32; 2]>,
    /// Entries of the list of tiles.
    pub tiles: hopper_std::global::GlobalArray<[u32; 4]>,
    /// Where each worker's tiles begin.
    pub tile_offsets: hopper_std::global::GlobalArray<u32>,
    /// C, and what it becomes.
    pub output: Output,
    /// For copies of A.
    pub policy_a: CachePolicy,
    /// For copies of B.
    pub policy_b: CachePolicy,
}

/// The element type of A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    /// bfloat16.
    Bf16,
    /// IEEE binary16.
    F16,
}

/// The layout of B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BLayout {
    /// Rows are contiguous.
    Row,
    /// Columns are contiguous.
    Col,
}

/// What the host must know of one exported kernel.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// Its launch contract.
    pub spec: &'static KernelSpec,
    /// The type of A and B.
    pub dtype: Dtype,
    /// BR.
    pub block_rows: usize,
    /// BC.
    pub block_cols: usize,
    /// The layout of B.
    pub b_layout: BLayout,
    /// TN: columns of C in a block's tile.
    pub tile_n: usize,
    /// Blocks of A in a stage.
    pub group: usize,
    /// Parts of a tile's columns that the producer fills one after the other: one for each consumer that has its own.
    pub panels: usize,
    /// Stages of the ring.
    pub stages: usize,
    /// Columns that a consumer stages at once before it stores them.
    pub staging_cols: usize,
    /// The box of the map of A: BC, BR / cluster.
    pub a_box: [u32; 2],
    /// The swizzle of A, as `CUtensorMapSwizzle`.
    pub a_swizzle: u32,
    /// The box of the map of B, the contiguous dimension first.
    pub b_box: [u32; 2],
    /// The swizzle of B, as `CUtensorMapSwizzle`.
    pub b_swizzle: u32,
    /// Calls the kernel on the CPU, as one thread of a simulated launch, with the addresses of the maps of A and B. The
    /// contract is the kernel's.
    #[cfg(feature = "sim")]
    pub simulate: unsafe fn(map_a: *const u8, map_b: *const u8, arguments: Arguments),
}
