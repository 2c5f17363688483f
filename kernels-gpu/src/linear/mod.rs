//! What the kernels of linear layers share: Y = X W^T + bias, its work and its output.
//!
//! X is N x K (tokens, features), W is M x K as a checkpoint has it, Y is N x M; all row-major. The kernels compute Y^T = W X^T, since
//! W is what has many rows: a block has [`BLOCK_ROWS`] rows of W, a warp [`WARP_ROWS`] of them, and all tokens of a panel.
//!
//! ```text
//! units of 256 columns    row block 0        row block 1        row block 2
//!                        |-------------- ----|---- --------- ---|---
//! worker                        0              1          2           each has as many units as any other, give or take one
//! pieces                 |  0/0         | 0/1 | 1/0 | 1/1     | 1/2 |
//! ```
//!
//! Workers take equal runs of units, so a row block may be the work of several, each of which has a *part* of its sums. A row block
//! with one part is stored at once. Else each warp puts its part into the workspace and counts itself; the one that comes last adds
//! all parts up in their order: the same bits, whoever comes last.

mod output;

use core::marker::PhantomData;

pub use output::{Output, finish};

use hopper_std::KernelSpec;
use hopper_std::global::GlobalArray;

/// Rows of W that a block works on.
pub const BLOCK_ROWS: usize = 128;

/// Rows of W that a warp works on, a strip.
pub const WARP_ROWS: usize = 16;

/// Warps that multiply.
pub const WARPS: usize = BLOCK_ROWS / WARP_ROWS;

/// Columns of W that are not split further.
pub const UNIT_COLS: usize = 256;

/// Columns of a stage: a unit is several.
pub const STEP_COLS: usize = 64;

/// Steps of a unit.
pub const UNIT_STEPS: usize = UNIT_COLS / STEP_COLS;

/// Words of a piece in the list.
pub const WORDS_PER_PIECE: usize = 8;

/// The element type of W, X and Y.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    /// bfloat16.
    Bf16,
    /// IEEE binary16.
    F16,
}

/// What the host must know of a kernel that takes a tensor map of X and `Arguments`.
#[derive(Clone, Copy, Debug)]
pub struct Configuration<Arguments> {
    /// Its launch contract.
    pub spec: &'static KernelSpec,
    /// The type of W, X and Y.
    pub dtype: Dtype,
    /// Tokens of a panel.
    pub tokens: usize,
    /// Stages of the ring.
    pub stages: usize,
    /// The box of X's map.
    pub x_box: [u32; 2],
    /// The swizzle of X's map, as `cuTensorMapEncodeTiled` numbers it.
    pub x_swizzle: u32,
    /// Calls the kernel on the CPU, as one thread of a simulated launch. The contract is the kernel's.
    #[cfg(feature = "sim")]
    pub simulate: unsafe fn(map_x: *const u8, arguments: Arguments),
    /// What the kernel takes.
    pub arguments: PhantomData<fn(Arguments)>,
}

/// A run of units of one row block, which one worker multiplies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The row block.
    pub row_block: u32,
    /// Its first unit.
    pub begin: u32,
    /// One past its last.
    pub end: u32,
    /// Which of the row block's parts this is.
    pub part: u32,
    /// How many parts the row block has.
    pub num_parts: u32,
    /// The slot of the row block's part 0 in the workspace, where there are several.
    pub first_slot: u32,
    /// Pieces of the same worker behind this one.
    pub behind: u32,
}

impl Piece {
    /// As the kernel reads it.
    pub const fn to_words(self) -> [u32; WORDS_PER_PIECE] {
        [self.row_block, self.begin, self.end, self.part, self.num_parts, self.first_slot, self.behind, 0]
    }
}

/// The list of pieces: those of worker i begin at `i * stride`. Each has one at least.
///
/// So a worker finds its first piece, and what else is listed by pieces, without a look at another list before.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// [`Piece`], two entries each.
    pub pieces: GlobalArray<[u32; 4]>,
    /// Places from worker to worker.
    pub stride: u32,
}

impl Work {
    /// Where the pieces of `worker` begin.
    #[inline(always)]
    pub const fn first(&self, worker: u32) -> u32 {
        worker * self.stride
    }

    /// Piece `index`.
    ///
    /// # Safety
    /// The list has it.
    #[inline(always)]
    pub unsafe fn piece(&self, index: u32) -> Piece {
        // SAFETY: the caller's promise.
        let ([row_block, begin, end, part], [num_parts, first_slot, behind, _]) =
            unsafe { (self.pieces.get(2 * index), self.pieces.get(2 * index + 1)) };
        Piece { row_block, begin, end, part, num_parts, first_slot, behind }
    }
}
