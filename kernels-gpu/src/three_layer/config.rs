//! What a three-layer kernel is made of: stages, shared memory, arguments.

use hopper_std::SharedLayout;
use hopper_std::global::GlobalArray;
use hopper_std::ptx::tensor::CachePolicy;
use hopper_std::sm90::{PipelineBarriers, Swizzle128, Tile};

use super::layout::{HEADER_AT, MOST_WORDS, ROW_VALUES, TILE_COLS, TILE_ROWS, WARP_ROWS, WARPS};
use crate::linear::{self, Output, Work};

/// Columns of one box of X.
pub const BOX_COLS: usize = 64;

/// Boxes of X in a stage.
pub const BOXES: usize = TILE_COLS / BOX_COLS;

/// Consumer warp groups: each multiplies 64 rows of a tile.
pub const CONSUMERS: usize = TILE_ROWS / CONSUMER_ROWS;

/// Rows of a consumer.
pub const CONSUMER_ROWS: usize = 64;

/// Values of a layer, two of each group of four columns.
pub type Values<E> = Tile<E, TILE_ROWS, ROW_VALUES, Swizzle128>;

/// 64 columns of a panel of X: tokens by features.
pub type XTile<E, const TOKENS: usize> = Tile<E, TOKENS, BOX_COLS, Swizzle128>;

/// A tile of W, as it lies in global memory.
#[repr(C)]
#[derive(SharedLayout)]
pub struct WTile<E> {
    /// Values of the first layer, surplus in its free slots.
    pub values: Values<E>,
    /// Two words for each lane of each warp.
    pub metadata: [[[u32; 2]; 32]; WARPS],
    /// Header and distances; a tile may have fewer words.
    pub entries: [u32; MOST_WORDS - HEADER_AT],
}

/// One stage: 128 columns.
#[repr(C)]
#[derive(SharedLayout)]
pub struct Stage<E, const TOKENS: usize> {
    /// Columns of X.
    pub x: [XTile<E, TOKENS>; BOXES],
    /// The tile of W.
    pub w: WTile<E>,
}

/// Values that a warp has taken out of its free slots.
#[repr(C, align(16))]
pub struct Lifted {
    values: [u16; WARP_ROWS * ROW_VALUES],
}

/// All of a kernel's shared memory.
#[repr(C, align(1024))]
#[derive(SharedLayout)]
pub struct Smem<E, const TOKENS: usize, const STAGES: usize> {
    /// The ring.
    pub stages: [Stage<E, TOKENS>; STAGES],
    /// The second layers of a stage, of the next one and of the one before; zeros where nothing is put.
    pub second: [Values<E>; 3],
    /// For each warp.
    pub lifted: [Lifted; WARPS],
    /// The ring's barriers.
    pub barriers: PipelineBarriers<STAGES>,
}

hopper_std::named_barriers! {
    /// Where warps meet, beside the barrier of the block.
    pub enum Meeting {
        /// All consumers: the second layer is complete.
        SecondLayer = 1: 128 * CONSUMERS as u32,
    }
}

/// The arguments of every three-layer kernel beside its tensor map, in the order of its parameters.
///
/// The launch has one block for each worker (x) and each panel of tokens (y).
///
/// | parameter | what it is |
/// | --- | --- |
/// | `map_x` | X, N x K: boxes of `BOX_COLS` columns and the panel's tokens |
/// | `tiles` | the tiles' words, 16-byte aligned |
/// | `tile_offsets` | where tiles begin, in units of 16 bytes, those of a row block one after the other; and where the last one ends |
/// | `col_tiles` | tiles of a row block |
/// | `residual_offsets` | where the residual of each row begins, for each [`RESIDUAL_COLS`](super::layout::RESIDUAL_COLS) columns |
/// | `residual` | column and value of each element |
/// | `x`, `x_leading_dimension` | X, for the residual |
/// | `pieces`, `pieces_per_worker` | [`Work`] |
/// | `policy` | what L2 does with the tiles |
/// | `y` and all that follow | [`Output`] |
///
/// The words of a tile are as [`layout`](super::layout) says.
#[derive(Clone, Copy, Debug)]
pub struct Arguments {
    /// Tiles of W.
    pub tiles: *const u8,
    /// Where they begin.
    pub tile_offsets: GlobalArray<u32>,
    /// Tiles of a row block.
    pub col_tiles: u32,
    /// Where the residual of each row begins.
    pub residual_offsets: GlobalArray<u32>,
    /// The residual.
    pub residual: GlobalArray<u32>,
    /// X.
    pub x: *const u8,
    /// Elements from a token's row of X to the next one's.
    pub x_leading_dimension: u64,
    /// Pieces.
    pub work: Work,
    /// What L2 does with the tiles.
    pub policy: CachePolicy,
    /// Where sums go.
    pub output: Output,
}

/// What the host must know of a three-layer kernel.
pub type Configuration = linear::Configuration<Arguments>;
