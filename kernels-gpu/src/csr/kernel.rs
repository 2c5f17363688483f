//! The entries, and what each thread does.

use hopper_std::global::GlobalArray;
use hopper_std::half::{Bf16, F16};
use hopper_std::kernel;
use hopper_std::ptx::convert::fma_rn_f32;
use hopper_std::ptx::memory::{st_global_u32, st_global_v2_u32, st_global_v4_u32};
use hopper_std::thread;

use super::config::{Arguments, Columns, Configuration, Dtype, Element, MIN_BLOCKS, OutputKind, THREADS};
use super::reader::{Packed, Place, Reader, Spread};

/// Entries whose loads are in flight together.
const UNROLL: usize = 4;

/// The entries of one row of A.
#[derive(Clone, Copy)]
struct Row<E> {
    col_indices: GlobalArray<u32>,
    values: GlobalArray<E>,
    len: u32,
}

impl<E> Arguments<E> {
    /// The entries of row `row`: none with alpha = 0, so that A and B are not read.
    ///
    /// # Safety
    /// `row` is under M.
    #[inline(always)]
    unsafe fn row(&self, row: u32) -> Row<E>
    where
        E: Copy,
    {
        let (mut begin, mut len) = (0, 0);
        if self.alpha != 0.0 {
            // SAFETY: there is one more offset than there are rows.
            let end = unsafe {
                begin = self.row_offsets.get(row);
                self.row_offsets.get(row + 1)
            };
            // A row has at most one entry for each column.
            len = (end - begin) as u32;
        }
        // SAFETY: the offsets are positions in both arrays.
        unsafe { Row { col_indices: self.col_indices.skip(begin), values: self.values.skip(begin), len } }
    }
}

/// The products of `UNROLLED` entries from `entry` on, added to `sums` one entry after the other; their loads come first.
///
/// # Safety
/// The row has these entries.
#[inline(always)]
unsafe fn add_entries<E: Element, R: Reader<E, COLS>, const COLS: usize, const UNROLLED: usize>(
    row: &Row<E>,
    reader: &R,
    entry: u32,
    sums: &mut [f32; COLS],
) {
    let mut values = [0.0; UNROLLED];
    let mut columns = [0; UNROLLED];
    let mut index = 0;
    while index < UNROLLED {
        // SAFETY: the caller's promise.
        unsafe {
            let at = entry + index as u32;
            columns[index] = row.col_indices.get(at);
            values[index] = E::load_constant(row.values.as_ptr().wrapping_add(at as usize));
        }
        index += 1;
    }
    let mut elements = [[0.0; COLS]; UNROLLED];
    let mut index = 0;
    while index < UNROLLED {
        // SAFETY: column indices of A are rows of B.
        elements[index] = unsafe { reader.read(columns[index]) };
        index += 1;
    }
    let mut index = 0;
    while index < UNROLLED {
        let mut col = 0;
        while col < COLS {
            // SAFETY: arithmetic has no preconditions.
            sums[col] = unsafe { fma_rn_f32(values[index], elements[index][col], sums[col]) };
            col += 1;
        }
        index += 1;
    }
}

/// One row of A times the thread's columns of one chunk, stored. Thread.
///
/// # Safety
/// The launch contract of [`Arguments`]; `row` is row `row_index` of A, and the chunk begins within the matrix.
#[inline(always)]
unsafe fn multiply<E: Element, R: Reader<E, COLS>, const COLS: usize>(
    arguments: &Arguments<E>,
    row: &Row<E>,
    row_index: u32,
    place: Place,
    first: u32,
) {
    if R::column(place, first, 0) >= arguments.num_cols {
        return;
    }
    let reader = R::new(arguments, place, first);
    let mut sums = [0.0; COLS];
    let mut entry = 0;
    // SAFETY: the entries are the row's.
    unsafe {
        while row.len - entry >= UNROLL as u32 {
            add_entries::<E, R, COLS, UNROLL>(row, &reader, entry, &mut sums);
            entry += UNROLL as u32;
        }
        while entry < row.len {
            add_entries::<E, R, COLS, 1>(row, &reader, entry, &mut sums);
            entry += 1;
        }
    }
    // SAFETY: the caller's promise; C has the type that `output` says.
    unsafe {
        if arguments.output == OutputKind::Float as u32 {
            store::<f32, E, R, COLS>(arguments, row_index, place, first, sums);
        } else {
            store::<E, E, R, COLS>(arguments, row_index, place, first, sums);
        }
    }
}

/// Stores alpha times the sums, plus beta times what was there. Beta = 0 does not read C.
///
/// # Safety
/// C is as [`Arguments`] says, of type `O`.
#[inline(always)]
unsafe fn store<O: Element, E: Element, R: Reader<E, COLS>, const COLS: usize>(
    arguments: &Arguments<E>,
    row_index: u32,
    place: Place,
    first: u32,
    sums: [f32; COLS],
) {
    let row = arguments.c.cast::<O>().wrapping_add((u64::from(row_index) * arguments.c_row_stride) as usize);
    let at = |index: usize| {
        let column = u64::from(R::column(place, first, index as u32));
        row.wrapping_add((column * arguments.c_col_stride) as usize)
    };
    let bytes = COLS / O::PER_WORD * 4;
    let is_aligned = (at(0) as usize).is_multiple_of(if bytes < 16 { bytes } else { 16 });
    if R::PACKED && arguments.beta == 0.0 && arguments.c_col_stride == 1 && is_aligned {
        // SAFETY: all columns of a packed reader are within C, and they are neighbours; the address is aligned.
        unsafe { store_packed::<O, COLS>(at(0).cast(), sums.map(|sum| arguments.alpha * sum)) };
        return;
    }
    let mut index = 0;
    while index < COLS {
        if R::column(place, first, index as u32) < arguments.num_cols {
            let mut value = arguments.alpha * sums[index];
            // SAFETY: the row and the column are within C.
            unsafe {
                if arguments.beta != 0.0 {
                    value += arguments.beta * O::load(at(index));
                }
                O::store(at(index), value);
            }
        }
        index += 1;
    }
}

/// Stores neighbours by as few stores as there can be.
///
/// # Safety
/// They are within C; the address is aligned to their size, or to 16 bytes where that is more.
#[inline(always)]
unsafe fn store_packed<O: Element, const COLS: usize>(address: *mut u32, values: [f32; COLS]) {
    let mut words = [0; 8];
    let mut index = 0;
    while index < COLS {
        let second = if O::PER_WORD == 2 { values[index + 1] } else { 0.0 };
        words[index / O::PER_WORD] = O::pack(values[index], second);
        index += O::PER_WORD;
    }
    let [a, b, c, d, e, f, g, h] = words;
    // SAFETY: the caller's promise.
    unsafe {
        match COLS / O::PER_WORD {
            1 => st_global_u32(address, [a]),
            2 => st_global_v2_u32(address, [a, b]),
            4 => st_global_v4_u32(address, [a, b, c, d]),
            _ => {
                st_global_v4_u32(address, [a, b, c, d]);
                st_global_v4_u32(address.wrapping_add(4), [e, f, g, h]);
            }
        }
    }
}

/// All chunks of this thread.
///
/// # Safety
/// The launch contract of [`Arguments`], with the kind of columns that `R` reads.
#[inline(always)]
unsafe fn run_columns<E: Element, R: Reader<E, COLS>, const COLS: usize>(arguments: &Arguments<E>) {
    let (thread, team_log2) = (thread::thread_idx_x(), arguments.team_log2);
    let team = 1 << team_log2;
    let row_index = thread::block_idx_x() * (THREADS >> team_log2) + (thread >> team_log2);
    if row_index >= arguments.num_rows {
        return;
    }
    // SAFETY: the row is one of A's.
    let row = unsafe { arguments.row(row_index) };
    let place = Place { thread: thread & (team - 1), team };
    let chunk_cols = COLS as u32 * team;
    // NOTE: a division, of which the compiler does not know that it is by a power of two, would bring a panic along: a
    // call, and with it a stack.
    let num_chunks = (arguments.num_cols + (chunk_cols - 1)) >> (COLS.trailing_zeros() + team_log2);
    let mut chunk = thread::block_idx_y();
    while chunk < num_chunks {
        // SAFETY: the caller's promise.
        unsafe { multiply::<E, R, COLS>(arguments, &row, row_index, place, chunk * chunk_cols) };
        chunk += thread::grid_dim_y();
    }
}

/// Every CSR kernel. Thread.
///
/// # Safety
/// The launch contract of [`Arguments`].
#[inline(always)]
unsafe fn run<E: Element>(arguments: Arguments<E>) {
    let columns = arguments.columns;
    // SAFETY: the caller's promise.
    unsafe {
        if columns == Columns::Packed8 as u32 && E::PER_WORD == 2 {
            run_columns::<E, Packed<E>, 8>(&arguments);
        } else if columns == Columns::Packed4 as u32 {
            run_columns::<E, Packed<E>, 4>(&arguments);
        } else if columns == Columns::Packed2 as u32 {
            run_columns::<E, Packed<E>, 2>(&arguments);
        } else if columns == Columns::Spread4 as u32 {
            run_columns::<E, Spread<E, 4>, 4>(&arguments);
        } else {
            run_columns::<E, Spread<E, 1>, 1>(&arguments);
        }
    }
}

/// Makes the entries and the list of their configurations.
macro_rules! kernels {
    ($($name:ident $spec:ident: $element:ty, $dtype:ident;)*) => {
        /// The exported kernels, `csr_<type>`.
        ///
        /// # Safety
        /// The launch contract of each is that of [`Arguments`](super::Arguments).
        #[allow(clippy::too_many_arguments, clippy::missing_safety_doc)]
        pub mod entries {
            use super::*;

            $(
                /// C = alpha A B + beta C.
                #[kernel(threads = THREADS, shared = 0, min_blocks = MIN_BLOCKS)]
                pub unsafe fn $name(
                    row_offsets: GlobalArray<u64>,
                    col_indices: GlobalArray<u32>,
                    values: GlobalArray<$element>,
                    b: GlobalArray<$element>,
                    b_row_stride: u64,
                    b_col_stride: u64,
                    c: *mut u8,
                    c_row_stride: u64,
                    c_col_stride: u64,
                    num_rows: u32,
                    num_cols: u32,
                    alpha: f32,
                    beta: f32,
                    output: u32,
                    columns: u32,
                    team_log2: u32,
                ) {
                    let arguments = Arguments {
                        row_offsets,
                        col_indices,
                        values,
                        b,
                        b_row_stride,
                        b_col_stride,
                        c,
                        c_row_stride,
                        c_col_stride,
                        num_rows,
                        num_cols,
                        alpha,
                        beta,
                        output,
                        columns,
                        team_log2,
                    };
                    // SAFETY: the launch contract is passed on.
                    unsafe { run(arguments) }
                }
            )*
        }

        /// Every CSR kernel, and what the host must know to launch it.
        pub static CONFIGURATIONS: &[Configuration] =
            &[$(Configuration {
                spec: &entries::$spec,
                dtype: Dtype::$dtype,
                #[cfg(feature = "sim")]
                simulate: |arguments| {
                    let arguments = arguments.cast::<$element>();
                    let Arguments { row_offsets, col_indices, values, b, b_row_stride, b_col_stride, .. } = arguments;
                    let Arguments { c, c_row_stride, c_col_stride, num_rows, num_cols, alpha, beta, .. } = arguments;
                    // SAFETY: the caller of `simulate` keeps the kernel's contract.
                    unsafe {
                        entries::$name(
                            row_offsets,
                            col_indices,
                            values,
                            b,
                            b_row_stride,
                            b_col_stride,
                            c,
                            c_row_stride,
                            c_col_stride,
                            num_rows,
                            num_cols,
                            alpha,
                            beta,
                            arguments.output,
                            arguments.columns,
                            arguments.team_log2,
                        );
                    }
                },
            },)*];
    };
}

kernels! {
    csr_bf16 CSR_BF16: Bf16, Bf16;
    csr_f16 CSR_F16: F16, F16;
    csr_f32 CSR_F32: f32, F32;
}
