//! Long rows from the sums of their parts: up to [`FAN_IN`] rows of the workspace become one more, or a row of C.
//!
//! ```text
//! for (item, four columns J) in parallel:
//!     s = 0
//!     for part in first .. first + count:     # in this order
//!         s += workspace[part, J]
//!     workspace[destination, J] = s           # or, in the last pass over a row:
//!     C[destination, J] = alpha * s + beta * C[destination, J]
//! ```
//!
//! A row of more parts takes several passes, each a launch: a tree that depends on the length of the row alone.

use hopper_std::half::{Bf16, F16};
use hopper_std::kernel;
use hopper_std::ptx::memory::ld_global_v4_u32;
use hopper_std::{KernelSpec, global::GlobalArray, thread};

use super::config::{Dtype, MIN_BLOCKS, THREADS, workspace_stride};
use super::element::Element;
use super::epilogue::Target;

/// The most rows of the workspace that one item adds up.
pub const FAN_IN: u32 = 64;

/// Columns of a thread.
pub const COMBINED_COLUMNS: u32 = 4;

const COLS: usize = COMBINED_COLUMNS as usize;

/// Rows of the workspace whose loads are in flight together.
const UNROLL: u32 = 8;

/// Rows of the workspace that become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CombineWork {
    /// The first of them.
    pub first: u32,
    /// How many there are, at least one.
    pub count: u32,
    /// What they become.
    pub destination: CombineDestination,
}

/// What a sum of rows of the workspace becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CombineDestination {
    /// A row of the workspace, for a later pass.
    Workspace(u32),
    /// A row of C.
    Row(u32),
}

impl CombineWork {
    /// As the kernel reads it.
    pub const fn to_words(self) -> [u32; 4] {
        match self.destination {
            CombineDestination::Workspace(row) => [self.first, self.count, row, 0],
            CombineDestination::Row(row) => [self.first, self.count, row, 1],
        }
    }
}

/// The arguments of the kernel that combines, in the order of its parameters.
///
/// | parameter | what it is |
/// | --- | --- |
/// | `items` | [`CombineWork`] for each item |
/// | `num_items` | how many there are |
/// | `workspace` | rows of [`workspace_stride`] floats; aligned to 16 bytes |
/// | `c` | C |
/// | `c_row_stride`, `c_col_stride` | from row to row and from column to column of C, in elements |
/// | `num_cols` | N |
/// | `alpha`, `beta` | scalars; with beta = 0 C is not read |
/// | `dtype` | the type of C: a [`Dtype`] |
/// | `team_log2` | [`Geometry::team_log2`](super::Geometry::team_log2) |
///
/// The grid is that of a [`Geometry`](super::Geometry) for `num_items` items and packed columns, [`COMBINED_COLUMNS`] to a
/// thread.
#[derive(Clone, Copy)]
pub struct CombineArguments {
    /// [`CombineWork`].
    pub items: GlobalArray<[u32; 4]>,
    /// How many there are.
    pub num_items: u32,
    /// Sums of parts.
    pub workspace: *mut f32,
    /// C.
    pub c: *mut u8,
    /// From row to row of C, in elements.
    pub c_row_stride: u64,
    /// From column to column of C, in elements.
    pub c_col_stride: u64,
    /// N.
    pub num_cols: u32,
    /// Factor of the sums.
    pub alpha: f32,
    /// Factor of what C held.
    pub beta: f32,
    /// The type of C.
    pub dtype: u32,
    /// The logarithm of the team's size.
    pub team_log2: u32,
}

/// What the host must know of the kernel that combines.
#[derive(Clone, Copy, Debug)]
pub struct Combined {
    /// Its launch contract.
    pub spec: &'static KernelSpec,
    /// Calls the kernel on the CPU, as one thread of a simulated launch. The contract is the kernel's.
    #[cfg(feature = "sim")]
    pub simulate: unsafe fn(arguments: CombineArguments),
}

/// The sum of `count` rows of the workspace in the four columns at `address`.
///
/// # Safety
/// The rows are there, and aligned to 16 bytes.
#[inline(always)]
unsafe fn add_up(address: *const f32, count: u32, stride: u64) -> [f32; COLS] {
    let row = |index: u32| address.wrapping_add((u64::from(index) * stride) as usize).cast();
    let mut sums = [0.0; COLS];
    let mut add = |words: [u32; COLS]| {
        let mut col = 0;
        while col < COLS {
            sums[col] += f32::from_bits(words[col]);
            col += 1;
        }
    };
    let mut part = 0;
    while count - part >= UNROLL {
        let mut words = [[0; COLS]; UNROLL as usize];
        let mut index = 0;
        while index < UNROLL {
            // SAFETY: the caller's promise.
            words[index as usize] = unsafe { ld_global_v4_u32(row(part + index)) };
            index += 1;
        }
        let mut index = 0;
        while index < UNROLL {
            add(words[index as usize]);
            index += 1;
        }
        part += UNROLL;
    }
    while part < count {
        // SAFETY: as above.
        add(unsafe { ld_global_v4_u32(row(part)) });
        part += 1;
    }
    sums
}

/// All columns of this thread.
///
/// # Safety
/// The launch contract of [`CombineArguments`].
#[inline(always)]
unsafe fn run(arguments: CombineArguments) {
    let CombineArguments { workspace, num_cols, alpha, beta, c_col_stride: col_stride, team_log2, .. } = arguments;
    let thread = thread::thread_idx_x();
    let item = thread::block_idx_x() * (THREADS >> team_log2) + (thread >> team_log2);
    if item >= arguments.num_items {
        return;
    }
    // SAFETY: the item is in the list.
    let [first, count, destination, is_last] = unsafe { arguments.items.get(item) };
    let stride = workspace_stride(num_cols);
    let place = (thread & ((1 << team_log2) - 1)) * COMBINED_COLUMNS;
    let chunk_cols = COMBINED_COLUMNS << team_log2;
    let num_chunks = (num_cols + (chunk_cols - 1)) >> (COMBINED_COLUMNS.trailing_zeros() + team_log2);
    let mut chunk = thread::block_idx_y();
    while chunk < num_chunks {
        let column = chunk * chunk_cols + place;
        chunk += thread::grid_dim_y();
        if column >= num_cols {
            continue;
        }
        let address = workspace.wrapping_add((u64::from(first) * stride + u64::from(column)) as usize);
        // SAFETY: these rows of the workspace are there; behind the last column they go on up to a multiple of four.
        let sums = unsafe { add_up(address, count, stride) };
        let row_of_c = u64::from(destination).wrapping_mul(arguments.c_row_stride) as usize;
        // SAFETY: the destination is a row of C, which has the type that `dtype` says, or of the workspace.
        unsafe {
            if is_last == 0 {
                let row = workspace.wrapping_add((u64::from(destination) * stride) as usize);
                store(Target { row, col_stride: 1, num_cols, alpha: 1.0, beta: 0.0 }, column, sums);
            } else if arguments.dtype == Dtype::Bf16 as u32 {
                let row = arguments.c.cast::<Bf16>().wrapping_add(row_of_c);
                store(Target { row, col_stride, num_cols, alpha, beta }, column, sums);
            } else if arguments.dtype == Dtype::F16 as u32 {
                let row = arguments.c.cast::<F16>().wrapping_add(row_of_c);
                store(Target { row, col_stride, num_cols, alpha, beta }, column, sums);
            } else {
                let row = arguments.c.cast::<f32>().wrapping_add(row_of_c);
                store(Target { row, col_stride, num_cols, alpha, beta }, column, sums);
            }
        }
    }
}

/// Stores four columns, or those of them that there are.
///
/// # Safety
/// The row may be written, and read unless beta is 0.
#[inline(always)]
unsafe fn store<O: Element>(target: Target<O>, column: u32, sums: [f32; COLS]) {
    // SAFETY: the caller's promise.
    unsafe {
        if target.num_cols - column >= COMBINED_COLUMNS {
            target.store_neighbours(column, sums);
        } else {
            target.store_each(|index| column + index, sums);
        }
    }
}

/// The exported kernel.
///
/// # Safety
/// The launch contract is that of [`CombineArguments`].
#[allow(clippy::too_many_arguments, clippy::missing_safety_doc)]
pub mod combine_entries {
    use super::*;

    /// Rows of the workspace added up.
    #[kernel(threads = THREADS, shared = 0, min_blocks = MIN_BLOCKS)]
    pub unsafe fn csr_combine(
        items: GlobalArray<[u32; 4]>,
        num_items: u32,
        workspace: *mut f32,
        c: *mut u8,
        c_row_stride: u64,
        c_col_stride: u64,
        num_cols: u32,
        alpha: f32,
        beta: f32,
        dtype: u32,
        team_log2: u32,
    ) {
        // SAFETY: the launch contract is passed on.
        unsafe {
            run(CombineArguments {
                items,
                num_items,
                workspace,
                c,
                c_row_stride,
                c_col_stride,
                num_cols,
                alpha,
                beta,
                dtype,
                team_log2,
            });
        }
    }
}

/// The kernel that combines, for every type of C.
pub static COMBINED: Combined = Combined {
    spec: &combine_entries::CSR_COMBINE,
    #[cfg(feature = "sim")]
    simulate: |arguments| {
        let CombineArguments { items, num_items, workspace, c, c_row_stride, c_col_stride, .. } = arguments;
        let CombineArguments { num_cols, alpha, beta, dtype, team_log2, .. } = arguments;
        // SAFETY: the caller of `simulate` keeps the kernel's contract.
        unsafe {
            combine_entries::csr_combine(
                items,
                num_items,
                workspace,
                c,
                c_row_stride,
                c_col_stride,
                num_cols,
                alpha,
                beta,
                dtype,
                team_log2,
            );
        }
    },
};
