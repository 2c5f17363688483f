//! What a WCSR kernel is made of: operand tiles, stages, shared memory, arguments.

use hopper_std::global::GlobalArray;
use hopper_std::ptx::tensor::CachePolicy;
use hopper_std::ptx::wgmma::Mma;
use hopper_std::sm90::{PipelineBarriers, Swizzle32, Swizzle128, Tile};
use hopper_std::{KernelSpec, SharedLayout};

use crate::store::{Output, Staging};

/// Stored columns of a panel of V: K of one WGMMA.
pub const PANEL_COLS: usize = 16;

/// Rows of B that lie together in shared memory: an atom of the swizzle, and the columns of a group that one copy brings.
pub const EIGHT: usize = 8;

/// Eights of a panel.
pub const EIGHTS_PER_PANEL: usize = PANEL_COLS / EIGHT;

/// Rows of V that one consumer warp group works on; the windows of narrower ones are narrow.
pub const CONSUMER_ROWS: usize = 64;

/// Columns of a chunk of B: 128 bytes.
pub const CHUNK: usize = 64;

/// One kernel: element type and geometry. `REGISTERS` of accumulator a thread: half the columns of a tile, of narrow windows half
/// their rows.
pub trait Config<const REGISTERS: usize>: 'static {
    /// The type of A and B.
    type Element: Mma<REGISTERS>;
}

/// Panels of V that one copy brings: `LINES` lines of 16 stored columns, the rows of one panel after those of another.
pub type Panels<E, const LINES: usize> = Tile<E, LINES, PANEL_COLS, Swizzle32>;

/// Eight rows of B, in chunks of 64 columns.
pub type Rows<E, const CHUNKS: usize> = [Tile<E, EIGHT, CHUNK, Swizzle128>; CHUNKS];

/// One stage: `COPIES` copies of V, and the rows of B that belong to its panels, by eights.
#[repr(C)]
#[derive(SharedLayout)]
pub struct Stage<V, B, const COPIES: usize, const EIGHTS: usize> {
    /// Panels of V.
    pub v: [V; COPIES],
    /// Their rows of B.
    pub b: [B; EIGHTS],
}

/// The stage of a kernel whose elements are `E`.
pub type Operands<E, const LINES: usize, const CHUNKS: usize, const COPIES: usize, const EIGHTS: usize> =
    Stage<Panels<E, LINES>, Rows<E, CHUNKS>, COPIES, EIGHTS>;

/// All of a kernel's shared memory.
#[repr(C, align(1024))]
#[derive(SharedLayout)]
pub struct Smem<S, const STAGES: usize, const STAGING_COLS: usize, const CONSUMERS: usize> {
    /// The ring.
    pub stages: [S; STAGES],
    /// A part for each consumer.
    pub staging: [Staging<STAGING_COLS>; CONSUMERS],
    /// Its barriers.
    pub barriers: PipelineBarriers<STAGES>,
}

/// Words of an entry in the list of tiles.
pub const WORDS_PER_TILE: usize = 8;

/// The slot of a tile that is stored to C.
pub const STORED: u32 = u32::MAX;

/// Windows of an entry, at most: one where they have 64 rows and more.
pub const MOST_WINDOWS: u32 = 8;

/// Panels of each window of an entry that has more than one, at most.
pub const MOST_PANELS: u32 = 255;

/// An entry in the list that the host makes: a window's columns, or a part of them, times a panel of B. Of narrow windows it may
/// be several that follow one another, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileWork {
    /// The first window.
    pub window: u32,
    /// TN columns of B and C.
    pub panel: u32,
    /// Its first panel of V.
    pub begin: u32,
    /// One past its last panel of V.
    pub end: u32,
    /// Where in the workspace its sums go, in tiles of H x TN; [`STORED`] for C.
    pub slot: u32,
    /// Windows, 1 to [`MOST_WINDOWS`]; 1 where the slot is not [`STORED`].
    pub windows: u32,
    /// With more than one window the panels of each, at most [`MOST_PANELS`]: a byte for each, the first window's the lowest.
    pub widths: u64,
}

impl TileWork {
    /// As the words that the kernel reads.
    #[inline(always)]
    pub const fn to_words(self) -> [u32; WORDS_PER_TILE] {
        let Self { window, panel, begin, end, slot, windows, widths } = self;
        [window, panel, begin, end, slot, windows, widths as u32, (widths >> 32) as u32]
    }

    /// Panels of the stage that begins with panel `at`, of at most `stage_panels`.
    #[inline(always)]
    pub(super) const fn panels_of_stage(&self, at: u32, stage_panels: u32) -> u32 {
        let left = self.end - at;
        if left < stage_panels { left } else { stage_panels }
    }
}

/// The arguments of every WCSR kernel, in the order of its parameters.
///
/// | parameter | what it is |
/// | --- | --- |
/// | `map_v` | values of A: dimensions (16, H times the number of panels), box (16, lines of a copy) |
/// | `map_b` | B: dimensions (64, K, chunks of 64 columns), box (64, 8, chunks of a tile) |
/// | `groups` | the groups of each panel, two to a panel with groups of 8, 16 with groups of 1; those that pad lie beyond K |
/// | `tiles` | [`TileWork`] for each tile, by worker, two entries each |
/// | `tile_offsets` | where each worker's tiles begin; one more than there are workers |
/// | `workspace` | sums of tiles of split windows, H x TN floats for each slot |
/// | `c` | C |
/// | `leading_dimension` | of C: from line to line, in elements |
/// | `num_rows`, `num_cols` | M and N |
/// | `alpha`, `beta` | scalars; of split windows the combining kernel's |
/// | `output` | [`OutputKind`](crate::store::OutputKind) |
/// | `rows` | the row of C that each row of A's windows is, M of them, a permutation; null where it is that of the same number |
/// | `policy_v` | what L2 should keep of A: [`CachePolicy`] |
/// | `b` | B |
/// | `b_leading_dimension` | from row to row of B, in elements |
/// | `num_inner` | K |
///
/// A worker is a block.
#[derive(Clone, Copy)]
pub struct Arguments {
    /// Groups of the panels.
    pub groups: GlobalArray<u32>,
    /// Entries of the list of tiles.
    pub tiles: GlobalArray<[u32; 4]>,
    /// Where each worker's tiles begin.
    pub tile_offsets: GlobalArray<u32>,
    /// Sums of split windows.
    pub workspace: *mut f32,
    /// C, and what it becomes.
    pub output: Output,
    /// For copies of A.
    pub policy_v: CachePolicy,
    /// B.
    pub b: *const u8,
    /// From row to row of B, in elements.
    pub b_leading_dimension: u64,
    /// K.
    pub num_inner: u32,
}

impl Arguments {
    /// Where the sums of slot `slot` of the workspace go, in tiles of `window_rows` x `tile_n`.
    #[inline(always)]
    pub(super) const fn sums(&self, slot: u32, window_rows: usize, tile_n: usize) -> Output {
        let array = self.workspace.wrapping_add(slot as usize * window_rows * tile_n);
        Output::sums(array, window_rows as u32, tile_n as u32)
    }

    /// Tile `index` of the list. With alpha = 0 it has no panels: A and B are not read.
    ///
    /// # Safety
    /// `index` is within the list.
    #[inline(always)]
    pub(super) unsafe fn tile(&self, index: u32) -> TileWork {
        // SAFETY: the caller's promise.
        let ([window, panel, begin, mut end], [slot, windows, low, high]) =
            unsafe { (self.tiles.get(2 * index), self.tiles.get(2 * index + 1)) };
        if self.output.alpha == 0.0 {
            end = begin;
        }
        TileWork { window, panel, begin, end, slot, windows, widths: u64::from(low) | u64::from(high) << 32 }
    }
}

/// The element type of A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    /// bfloat16.
    Bf16,
    /// IEEE binary16.
    F16,
}

/// What the host must know of one exported kernel.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// Its launch contract.
    pub spec: &'static KernelSpec,
    /// The type of A and B.
    pub dtype: Dtype,
    /// H.
    pub window_rows: usize,
    /// Columns of a group: 8 or 1.
    pub group: usize,
    /// TN: columns of C in a tile.
    pub tile_n: usize,
    /// Panels of V in a stage.
    pub stage_panels: usize,
    /// Stages of the ring.
    pub stages: usize,
    /// Windows of an entry of the list, at most.
    pub most_windows: u32,
    /// Blocks that share a multiprocessor.
    pub blocks: u32,
    /// The box of the map of V.
    pub v_box: [u32; 2],
    /// The swizzle of V, as `CUtensorMapSwizzle`.
    pub v_swizzle: u32,
    /// The box of the map of B, the contiguous dimension first.
    pub b_box: [u32; 3],
    /// The swizzle of B, as `CUtensorMapSwizzle`.
    pub b_swizzle: u32,
    /// Calls the kernel on the CPU, as one thread of a simulated launch, with the addresses of the maps of V and B. The
    /// contract is the kernel's.
    #[cfg(feature = "sim")]
    pub simulate: unsafe fn(map_v: *const u8, map_b: *const u8, arguments: Arguments),
}
