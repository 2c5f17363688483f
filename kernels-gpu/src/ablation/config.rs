//! What the kernels have in common: operand tiles, arguments.

use hopper_std::half::Bf16;
use hopper_std::ptx::wgmma::Mma;
use hopper_std::sm90::{BlockScope, Swizzle128, Tile};

use crate::bcsr::config::{Config, Smem, Stage};
use crate::bcsr::{self};

/// Rows of a block of A.
pub const BLOCK_ROWS: usize = 128;

/// Columns of a block of A: K of a stage.
pub const BLOCK_COLS: usize = 64;

/// A block of A.
pub type BlockOfA = Tile<Bf16, BLOCK_ROWS, BLOCK_COLS, Swizzle128>;

/// A panel of B: `N` of its columns, which are lines.
pub type PanelOfB<const N: usize> = Tile<Bf16, N, BLOCK_COLS, Swizzle128>;

/// One stage.
pub type Operands<const N: usize> = Stage<BlockOfA, PanelOfB<N>, 1, 1>;

/// All of a kernel's shared memory. Kernels without a ring leave its barriers alone.
pub type KernelSmem<const N: usize, const STAGES: usize, const STAGING_COLS: usize> =
    Smem<Operands<N>, STAGES, STAGING_COLS>;

/// The operands of tiles of `N` columns.
pub enum Columns<const N: usize> {}

impl<const N: usize, const REGISTERS: usize> Config<REGISTERS> for Columns<N>
where
    Bf16: Mma<REGISTERS>,
{
    type Element = Bf16;
    type A = BlockOfA;
    type B = PanelOfB<N>;
    type Scope = BlockScope;
}

/// The arguments of every kernel: those of [`bcsr::Arguments`] in the same order, with both maps, and behind them
///
/// | parameter | what it is |
/// | --- | --- |
/// | `values` | the blocks of A, each row-major; aligned to 16 bytes |
/// | `b` | B, column-major; base and lines aligned to 16 bytes |
/// | `b_leading_dimension` | from column to column of B, in elements |
/// | `num_inner` | K |
///
/// which the kernels without the copy engine read instead of the maps.
#[derive(Clone, Copy)]
pub struct Arguments {
    /// Lists, output, policies.
    pub bcsr: bcsr::Arguments,
    /// Blocks of A.
    pub values: *const u8,
    /// B.
    pub b: *const u8,
    /// From column to column of B, in elements.
    pub b_leading_dimension: u64,
    /// K.
    pub num_inner: u32,
}

/// What the host must know of one exported kernel.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// As of a BCSR kernel. Its `simulate` is not to be called: the kernel has more arguments.
    pub bcsr: bcsr::Configuration,
    /// Calls the kernel on the CPU, as one thread of a simulated launch, with the addresses of the maps of A and B. The
    /// contract is the kernel's.
    #[cfg(feature = "sim")]
    pub simulate: unsafe fn(map_a: *const u8, map_b: *const u8, arguments: Arguments),
}
