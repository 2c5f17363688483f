//! The windows whose columns were split: C is the sum of their parts, in order.
//!
//! A thread does one element: it loads the sums of eight parts together and adds them one after the other, the same bits on every
//! run. Few windows are split, into up to some hundred parts: blocks along y share a tile's elements, so that a device has work
//! where there is but one.

use hopper_std::global::GlobalArray;
use hopper_std::half::{Bf16, F16, Half};
use hopper_std::kernel;
use hopper_std::{KernelSpec, thread};

use super::config::Dtype;
use crate::store::{Output, OutputKind, ordered, store_one};

/// Threads of a block.
const THREADS: u32 = 256;

/// Parts whose sums are loaded together.
const BATCH: usize = 8;

/// Blocks along y: each thread does one element of a tile.
pub const fn num_slices(window_rows: u32, tile_n: u32) -> u32 {
    (window_rows * tile_n).div_ceil(THREADS)
}

/// One tile to be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitWork {
    /// The window.
    pub window: u32,
    /// TN columns of C.
    pub panel: u32,
    /// Its first slot of the workspace.
    pub first: u32,
    /// Its slots.
    pub count: u32,
}

impl SplitWork {
    /// As the words that the kernel reads.
    pub const fn to_words(self) -> [u32; 4] {
        [self.window, self.panel, self.first, self.count]
    }
}

/// The arguments of the kernels that combine, in the order of their parameters.
///
/// | parameter | what it is |
/// | --- | --- |
/// | `splits` | [`SplitWork`] for each block along x |
/// | `workspace` | sums, H x TN floats for each slot |
/// | `window_rows`, `tile_n` | H and TN of the kernel that made them; TN is a power of two |
/// | `c` .. `rows` | as [`Arguments`](super::Arguments) |
///
/// The grid has [`num_slices`] blocks along y.
#[derive(Clone, Copy)]
pub struct CombineArguments {
    /// Tiles.
    pub splits: GlobalArray<[u32; 4]>,
    /// Sums.
    pub workspace: GlobalArray<u32>,
    /// H.
    pub window_rows: u32,
    /// TN.
    pub tile_n: u32,
    /// C, and what it becomes.
    pub output: Output,
}

/// What the host must know of a kernel that combines.
#[derive(Clone, Copy, Debug)]
pub struct Combined {
    /// Its launch contract.
    pub spec: &'static KernelSpec,
    /// The type of A and B, and of C where it is not f32.
    pub dtype: Dtype,
    /// Calls the kernel on the CPU, as one thread of a simulated launch. The contract is the kernel's.
    #[cfg(feature = "sim")]
    pub simulate: unsafe fn(arguments: CombineArguments),
}

/// Combines this block's elements of its tile. Block.
///
/// # Safety
/// The launch contract of [`CombineArguments`].
#[inline(always)]
unsafe fn run<E: Half>(arguments: CombineArguments) {
    let CombineArguments { window_rows, tile_n, output, .. } = arguments;
    // SAFETY: the grid has blocks for each entry.
    let [window, panel, first, count] = unsafe { arguments.splits.get(thread::block_idx_x()) };
    let (tile, shift) = (window_rows * tile_n, tile_n.trailing_zeros());
    let index = thread::block_idx_y() * THREADS + thread::thread_idx_x();
    let (row, col) = (window * window_rows + (index >> shift), panel * tile_n + (index & (tile_n - 1)));
    if index >= tile || row >= output.num_rows || col >= output.num_cols {
        return;
    }
    // SAFETY: the slots are in the workspace.
    let sums = unsafe { arguments.workspace.skip(u64::from(first) * u64::from(tile)) };
    let (mut sum, mut part) = (0.0, 0);
    while part < count {
        let mut batch = [0; BATCH];
        let mut ahead = 0;
        while ahead < BATCH {
            let slot = part + ahead as u32;
            if slot < count {
                // SAFETY: as above; the kernel before wrote it.
                batch[ahead] = unsafe { sums.skip(u64::from(slot) * u64::from(tile)).get(index) };
            }
            ahead += 1;
        }
        let mut done = 0;
        while done < BATCH {
            if part + (done as u32) < count {
                sum += f32::from_bits(batch[done]);
            }
            done += 1;
        }
        part += BATCH as u32;
    }
    // SAFETY: an order has a place for each row.
    let row = unsafe { ordered(output.row_order, row) };
    let (line, at) = if OutputKind::is_cols(output.kind) { (col, row) } else { (row, col) };
    let at = (u64::from(line) * output.leading_dimension + u64::from(at)) as usize;
    // SAFETY: the element is within C.
    unsafe { store_one::<E>(&output, at, sum) };
}

/// Makes the entries and the list of their configurations.
macro_rules! kernels {
    ($($name:ident $spec:ident: $element:ident;)*) => {
        /// The exported kernels, `wcsr_combine_<type>`.
        ///
        /// # Safety
        /// The launch contract of each is that of [`CombineArguments`](super::CombineArguments).
        #[allow(clippy::too_many_arguments, clippy::missing_safety_doc)]
        pub mod combine_entries {
            use super::*;

            $(
                #[doc = concat!("Tiles of C from their parts, ", stringify!($element), ".")]
                #[kernel(threads = THREADS, shared = 0)]
                pub unsafe fn $name(
                    splits: GlobalArray<[u32; 4]>,
                    workspace: GlobalArray<u32>,
                    window_rows: u32,
                    tile_n: u32,
                    c: *mut u8,
                    leading_dimension: u64,
                    num_rows: u32,
                    num_cols: u32,
                    alpha: f32,
                    beta: f32,
                    output: u32,
                    rows: GlobalArray<u32>,
                ) {
                    let arguments = CombineArguments {
                        splits,
                        workspace,
                        window_rows,
                        tile_n,
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
                    };
                    // SAFETY: the launch contract is passed on.
                    unsafe { run::<$element>(arguments) }
                }
            )*
        }

        /// Every kernel that combines.
        pub static COMBINED: &[Combined] = &[$(
            Combined {
                spec: &combine_entries::$spec,
                dtype: Dtype::$element,
                #[cfg(feature = "sim")]
                simulate: |arguments| {
                    let CombineArguments { splits, workspace, window_rows, tile_n, output } = arguments;
                    let Output { c, leading_dimension, num_rows, num_cols, alpha, beta, kind, row_order, .. } = output;
                    // SAFETY: the caller of `simulate` keeps the kernel's contract.
                    unsafe {
                        combine_entries::$name(
                            splits,
                            workspace,
                            window_rows,
                            tile_n,
                            c,
                            leading_dimension,
                            num_rows,
                            num_cols,
                            alpha,
                            beta,
                            kind,
                            row_order,
                        );
                    }
                },
            },
        )*];
    };
}

kernels! {
    wcsr_combine_bf16 WCSR_COMBINE_BF16: Bf16;
    wcsr_combine_f16 WCSR_COMBINE_F16: F16;
}
