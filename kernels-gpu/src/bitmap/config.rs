//! What a bitmap kernel is made of: operand tiles, shared memory, arguments.

use hopper_std::SharedLayout;
use hopper_std::global::GlobalArray;
use hopper_std::ptx::tensor::CachePolicy;
use hopper_std::sm90::{PipelineBarriers, Swizzle128, Tile, WarpRing};

use crate::linear::{self, Output, STEP_COLS, WARPS, Work};

/// Groups of a warp's ring: how far ahead its values are copied, and how far its lanes may be apart.
pub const RING_GROUPS: usize = 16;

/// Entries of the list of streams for each piece.
pub const STREAMS_PER_PIECE: usize = WARPS;

/// Entries of the list of starts for each piece.
pub const STARTS_PER_PIECE: usize = WARPS * 32;

/// 64 columns of a panel of X: tokens by features.
pub type XTile<E, const TOKENS: usize> = Tile<E, TOKENS, STEP_COLS, Swizzle128>;

/// A stage of X: `STEPS` times 64 columns.
pub type XStage<E, const TOKENS: usize, const STEPS: usize> = [XTile<E, TOKENS>; STEPS];

/// All of a kernel's shared memory.
#[repr(C, align(1024))]
#[derive(SharedLayout)]
pub struct Smem<X, const STAGES: usize> {
    /// X.
    pub stages: [X; STAGES],
    /// The values of each warp's rows.
    pub rings: [WarpRing<RING_GROUPS>; WARPS],
    /// The barriers of X.
    pub barriers: PipelineBarriers<STAGES>,
}

/// The values that a warp reads for a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// The first group of values.
    pub first_group: u32,
    /// How many groups.
    pub num_groups: u32,
    /// The place in the list of realignments of the first one behind the piece's first unit.
    pub first_realignment: u32,
}

impl Stream {
    /// As the kernel reads it.
    pub const fn to_words(self) -> [u32; 4] {
        [self.first_group, self.num_groups, self.first_realignment, 0]
    }
}

/// The arguments of every bitmap kernel beside its tensor map, in the order of its parameters.
///
/// The launch has one block for each worker (x) and each panel of tokens (y).
///
/// | parameter | what it is |
/// | --- | --- |
/// | `map_x` | X, N x K: boxes of [`STEP_COLS`] columns and the panel's tokens |
/// | `masks` | for each strip of 16 rows, each unit and each lane four words, 64 columns each |
/// | `values` | groups of 8 rows of 32 words, 16-byte aligned |
/// | `work` | pieces, as many places for each worker |
/// | `streams` | for each piece and each warp a [`Stream`] |
/// | `starts` | for each piece, each warp and each lane where its stream begins, in bits from the first group |
/// | `realignments` | for each strip the units at whose beginning lanes are realigned, then `u32::MAX` |
/// | `units` | units of a strip |
/// | `policy` | what L2 does with the values |
/// | `output` | where sums go |
///
/// Strips are padded to whole row blocks. The positions of a warp's lanes during a unit and the [`WINDOW`](hopper_std::sm90::WINDOW)
/// rows behind them lie within [`RING_GROUPS`] groups, of which each piece's list has all.
#[derive(Clone, Copy, Debug)]
pub struct Arguments {
    /// Masks.
    pub masks: GlobalArray<[u32; 4]>,
    /// Values.
    pub values: *const u8,
    /// Pieces.
    pub work: Work,
    /// [`Stream`]s.
    pub streams: GlobalArray<[u32; 4]>,
    /// Where lanes begin.
    pub starts: GlobalArray<u32>,
    /// Where lanes are realigned.
    pub realignments: GlobalArray<u32>,
    /// Units of a strip.
    pub units: u32,
    /// What L2 does with the values.
    pub policy: CachePolicy,
    /// Where sums go.
    pub output: Output,
}

impl Arguments {
    /// The stream of a piece and a warp.
    ///
    /// # Safety
    /// The list has the piece.
    #[inline(always)]
    pub unsafe fn stream(&self, piece: u32, warp: u32) -> Stream {
        // SAFETY: the caller's promise.
        let [first_group, num_groups, first_realignment, _] =
            unsafe { self.streams.get(piece * STREAMS_PER_PIECE as u32 + warp) };
        Stream { first_group, num_groups, first_realignment }
    }
}

/// What the host must know of a bitmap kernel.
pub type Configuration = linear::Configuration<Arguments>;
