//! The entries, and what each thread does.

use hopper_std::global::GlobalArray;
use hopper_std::half::{Bf16, F16};
use hopper_std::hint::opaque;
use hopper_std::kernel;
use hopper_std::thread;

use super::config::{
    Arguments, Columns, Configuration, Dtype, MIN_BLOCKS, MIN_BLOCKS_OF_RUNS, RowKind, THREADS, UNSPLIT_LOG2,
    workspace_stride,
};
use super::element::Element;
use super::epilogue::Target;
use super::reader::{Packed, Place, Reader, Spread};
use super::row::Entries;
use super::run::Run;

/// What a team does.
#[derive(Clone, Copy)]
struct Work<E> {
    entries: Entries<E>,
    destination: Destination,
}

/// Where sums go.
#[derive(Clone, Copy)]
enum Destination {
    /// A row of C.
    Row(u32),
    /// A row of the workspace.
    Part(u32),
}

impl<E: Element> Arguments<E> {
    /// The work of team `item`; `None` where the row is long, so that others do it.
    ///
    /// # Safety
    /// There is such a team.
    #[inline(always)]
    unsafe fn work(&self, item: u32) -> Option<Work<E>> {
        let part_log2 = self.part_log2();
        // SAFETY: the lists are as long as the contract says.
        let (row, part, destination) = unsafe {
            if item < self.num_parts {
                let [row, part] = self.parts.get(item);
                (row, part, Destination::Part(item))
            } else {
                let item = item - self.num_parts;
                let row = if self.order.as_ptr().is_null() { item } else { self.order.get(item) };
                (row, 0, Destination::Row(row))
            }
        };
        // SAFETY: there is one more offset than there are rows.
        let (mut begin, end) = unsafe { (self.row_offsets.get(row), self.row_offsets.get(row + 1)) };
        // A row has at most one entry for each column.
        let mut len = (end - begin) as u32;
        // A part's length less one: all ones.
        let part_mask = u32::MAX >> (UNSPLIT_LOG2 - part_log2);
        if let Destination::Part(_) = destination {
            begin += u64::from(part) << part_log2;
            let left = (end - begin) as u32;
            len = if left - 1 > part_mask { part_mask + 1 } else { left };
        } else if len.saturating_sub(1) > part_mask {
            return None;
        }
        if self.alpha == 0.0 {
            len = 0;
        }
        Some(Work { entries: Entries::new(self, begin, len), destination })
    }
}

/// A team's work times the thread's columns of one chunk, stored. Thread.
///
/// # Safety
/// The launch contract of [`Arguments`]; the work is the team's, and the chunk begins within the matrix.
#[inline(always)]
unsafe fn multiply<E: Element, R: Reader<E, COLS>, const COLS: usize>(
    arguments: &Arguments<E>,
    work: &Work<E>,
    place: Place,
    first: u32,
) {
    if R::column(place, first, 0) >= arguments.num_cols {
        return;
    }
    let reader = R::new(arguments, place, first);
    // SAFETY: the entries are A's.
    let sums = unsafe { work.entries.multiply::<R, COLS>(&reader) };
    // SAFETY: the work is the team's.
    unsafe { store_sums::<E, R, COLS>(arguments, work.destination, place, first, sums) };
}

/// The rows of a run times the thread's columns of one chunk, stored. Thread.
///
/// # Safety
/// The launch contract of [`Arguments`]; the run is the team's, and the chunk begins within the matrix.
#[inline(always)]
unsafe fn multiply_run<E: Element, R: Reader<E, COLS>, const COLS: usize>(
    arguments: &Arguments<E>,
    mut run: Run,
    place: Place,
    first: u32,
) {
    if R::column(place, first, 0) >= arguments.num_cols {
        return;
    }
    let reader = R::new(arguments, place, first);
    while run.row < run.end {
        // SAFETY: the rows are the team's.
        unsafe {
            run.multiply::<E, R, COLS>(arguments, &reader, |row, sums| {
                store_sums::<E, R, COLS>(arguments, Destination::Row(row), place, first, sums);
            });
        }
    }
}

/// Stores a thread's sums of one chunk where they go.
///
/// # Safety
/// The launch contract of [`Arguments`]; the destination is the team's, and the thread's first column is within the matrix.
#[inline(always)]
unsafe fn store_sums<E: Element, R: Reader<E, COLS>, const COLS: usize>(
    arguments: &Arguments<E>,
    destination: Destination,
    place: Place,
    first: u32,
    sums: [f32; COLS],
) {
    let Arguments { num_cols, alpha, beta, c_col_stride: col_stride, .. } = *arguments;
    // NOTE: nothing of it is computed ahead of the loop over entries, which wants the registers.
    let row_of_c = |row: u32| u64::from(opaque(row)).wrapping_mul(arguments.c_row_stride) as usize;
    // SAFETY: C has the type that `output` says, and a row for each of A; the workspace has one for each part.
    unsafe {
        match destination {
            Destination::Part(part) => {
                let part = u64::from(opaque(part));
                let row = arguments.workspace.wrapping_add((part * workspace_stride(num_cols)) as usize);
                let target = Target { row, col_stride: 1, num_cols, alpha: 1.0, beta: 0.0 };
                store::<f32, E, R, COLS>(target, place, first, sums);
            }
            Destination::Row(row) if E::PER_WORD == 2 && arguments.has_input_type() => {
                let row = arguments.c.cast::<E>().wrapping_add(row_of_c(row));
                store::<E, E, R, COLS>(Target { row, col_stride, num_cols, alpha, beta }, place, first, sums);
            }
            Destination::Row(row) => {
                let row = arguments.c.cast::<f32>().wrapping_add(row_of_c(row));
                store::<f32, E, R, COLS>(Target { row, col_stride, num_cols, alpha, beta }, place, first, sums);
            }
        }
    }
}

/// Stores a thread's columns of one chunk.
///
/// # Safety
/// The row may be written, and read unless beta is 0.
#[inline(always)]
unsafe fn store<O: Element, E, R: Reader<E, COLS>, const COLS: usize>(
    target: Target<O>,
    place: Place,
    first: u32,
    sums: [f32; COLS],
) {
    // SAFETY: the caller's promise; all columns of a packed reader are within the matrix, and they are neighbours.
    unsafe {
        if R::PACKED {
            target.store_neighbours(R::column(place, first, 0), sums);
        } else {
            target.store_each(|index| R::column(place, first, index), sums);
        }
    }
}

/// All chunks of this thread.
///
/// # Safety
/// The launch contract of [`Arguments`], with the kind of columns that `R` reads.
#[inline(always)]
unsafe fn run_columns<E: Element, R: Reader<E, COLS>, const RUNS: bool, const COLS: usize>(arguments: &Arguments<E>) {
    let (thread, team_log2) = (thread::thread_idx_x(), arguments.team_log2());
    let team = 1 << team_log2;
    let item = thread::block_idx_x() * (THREADS >> team_log2) + (thread >> team_log2);
    let run_log2 = if RUNS { arguments.run_log2() } else { 0 };
    let run = 1 << run_log2;
    if item >= arguments.num_parts + ((arguments.num_rows + (run - 1)) >> run_log2) {
        return;
    }
    let place = Place { thread: thread & (team - 1), team };
    let chunk_cols = COLS as u32 * team;
    // NOTE: a division, of which the compiler does not know that it is by a power of two, would bring a panic along: a
    // call, and with it a stack.
    let num_chunks = (arguments.num_cols + (chunk_cols - 1)) >> (COLS.trailing_zeros() + team_log2);
    let mut chunk = thread::block_idx_y();
    if RUNS && item >= arguments.num_parts {
        let row = (item - arguments.num_parts) << run_log2;
        let left = arguments.num_rows - row;
        let run = Run { row, end: row + if left < run { left } else { run } };
        while chunk < num_chunks {
            // SAFETY: the caller's promise.
            unsafe { multiply_run::<E, R, COLS>(arguments, run, place, chunk * chunk_cols) };
            chunk += thread::grid_dim_y();
        }
        return;
    }
    // SAFETY: there are so many teams.
    let Some(work) = (unsafe { arguments.work(item) }) else { return };
    while chunk < num_chunks {
        // SAFETY: the caller's promise.
        unsafe { multiply::<E, R, COLS>(arguments, &work, place, chunk * chunk_cols) };
        chunk += thread::grid_dim_y();
    }
}

/// Every CSR kernel. Thread.
///
/// # Safety
/// The launch contract of [`Arguments`].
#[inline(always)]
unsafe fn run<E: Element, const RUNS: bool>(arguments: Arguments<E>) {
    // SAFETY: the caller's promise.
    unsafe {
        if arguments.has_columns(Columns::Packed8) && E::PER_WORD == 2 {
            run_columns::<E, Packed<E>, RUNS, 8>(&arguments);
        } else if arguments.has_columns(Columns::Packed4) {
            run_columns::<E, Packed<E>, RUNS, 4>(&arguments);
        } else if arguments.has_columns(Columns::Packed2) {
            run_columns::<E, Packed<E>, RUNS, 2>(&arguments);
        } else if arguments.has_columns(Columns::Spread4) {
            run_columns::<E, Spread<E, 4>, RUNS, 4>(&arguments);
        } else {
            run_columns::<E, Spread<E, 1>, RUNS, 1>(&arguments);
        }
    }
}

/// Makes the entries and the list of their configurations.
macro_rules! kernels {
    ($($name:ident $spec:ident: $element:ty, $dtype:ident, $rows:ident, $min_blocks:ident;)*) => {
        /// The exported kernels, `csr_<type>`, and `csr_runs_<type>` for short rows.
        ///
        /// # Safety
        /// The launch contract of each is that of [`Arguments`](super::Arguments).
        #[allow(clippy::too_many_arguments, clippy::missing_safety_doc)]
        pub mod entries {
            use super::*;

            $(
                /// C = alpha A B + beta C.
                #[kernel(threads = THREADS, shared = 0, min_blocks = $min_blocks)]
                pub unsafe fn $name(
                    row_offsets: GlobalArray<u64>,
                    col_indices: GlobalArray<u32>,
                    values: GlobalArray<$element>,
                    num_entries: u64,
                    parts: GlobalArray<[u32; 2]>,
                    num_parts: u32,
                    order: GlobalArray<u32>,
                    num_rows: u32,
                    workspace: *mut f32,
                    b: GlobalArray<$element>,
                    b_row_stride: u64,
                    b_col_stride: u64,
                    c: *mut u8,
                    c_row_stride: u64,
                    c_col_stride: u64,
                    num_cols: u32,
                    alpha: f32,
                    beta: f32,
                    ways: u32,
                ) {
                    let arguments = Arguments {
                        row_offsets,
                        col_indices,
                        values,
                        num_entries,
                        parts,
                        num_parts,
                        order,
                        num_rows,
                        workspace,
                        b,
                        b_row_stride,
                        b_col_stride,
                        c,
                        c_row_stride,
                        c_col_stride,
                        num_cols,
                        alpha,
                        beta,
                        ways,
                    };
                    // SAFETY: the launch contract is passed on.
                    unsafe { run::<$element, { matches!(RowKind::$rows, RowKind::Run) }>(arguments) }
                }
            )*
        }

        /// Every CSR kernel, and what the host must know to launch it.
        pub static CONFIGURATIONS: &[Configuration] =
            &[$(Configuration {
                spec: &entries::$spec,
                dtype: Dtype::$dtype,
                rows: RowKind::$rows,
                #[cfg(feature = "sim")]
                simulate: |arguments| {
                    let arguments = arguments.cast::<$element>();
                    let Arguments { row_offsets, col_indices, values, num_entries, parts, num_parts, .. } = arguments;
                    let Arguments { order, num_rows, workspace, b, b_row_stride, b_col_stride, .. } = arguments;
                    let Arguments { c, c_row_stride, c_col_stride, num_cols, alpha, beta, ways, .. } = arguments;
                    // SAFETY: the caller of `simulate` keeps the kernel's contract.
                    unsafe {
                        entries::$name(
                            row_offsets,
                            col_indices,
                            values,
                            num_entries,
                            parts,
                            num_parts,
                            order,
                            num_rows,
                            workspace,
                            b,
                            b_row_stride,
                            b_col_stride,
                            c,
                            c_row_stride,
                            c_col_stride,
                            num_cols,
                            alpha,
                            beta,
                            ways,
                        );
                    }
                },
            },)*];
    };
}

kernels! {
    csr_bf16 CSR_BF16: Bf16, Bf16, Single, MIN_BLOCKS;
    csr_f16 CSR_F16: F16, F16, Single, MIN_BLOCKS;
    csr_f32 CSR_F32: f32, F32, Single, MIN_BLOCKS;
    csr_runs_bf16 CSR_RUNS_BF16: Bf16, Bf16, Run, MIN_BLOCKS_OF_RUNS;
    csr_runs_f16 CSR_RUNS_F16: F16, F16, Run, MIN_BLOCKS_OF_RUNS;
    csr_runs_f32 CSR_RUNS_F32: f32, F32, Run, MIN_BLOCKS_OF_RUNS;
}
