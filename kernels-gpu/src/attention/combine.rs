//! The rows of O whose keys were split: each is the mean of its parts, weighted by their sums.
//!
//! With parts O_s and log-sum-exps L_s, s = 0 .. n-1:  L = ln sum e^(L_s),  O = sum e^(L_s - L) O_s.
//!
//! A warp does a row, in the order of its parts: the same bits whoever else is in the batch.

use hopper_std::global::GlobalArray;
use hopper_std::half::{Bf16, F16, Half};
use hopper_std::kernel;
use hopper_std::ptx::convert::{ex2_approx_ftz_f32, lg2_approx_ftz_f32, max_f32, rcp_approx_ftz_f32};
use hopper_std::ptx::memory::{ld_global_nc_v2_u32, st_global_u32};
use hopper_std::{KernelSpec, thread};

use super::config::Dtype;

/// Threads of a block: four rows.
const THREADS: u32 = 128;

/// Words of an entry in the list of rows.
pub const WORDS_PER_ROW: usize = 8;

/// One row to be combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowWork {
    /// Part 0 among the partial rows.
    pub first: u32,
    /// From a part to the next, in partial rows.
    pub step: u32,
    /// Parts.
    pub count: u32,
    /// Where the row's log-sum-exp goes.
    pub lse_index: u32,
    /// Where the row of O begins, in elements.
    pub output: u64,
}

impl RowWork {
    /// As the kernel reads it.
    pub const fn to_words(self) -> [u32; WORDS_PER_ROW] {
        [self.first, self.step, self.count, self.lse_index, self.output as u32, (self.output >> 32) as u32, 0, 0]
    }
}

/// The arguments of the kernels that combine, in the order of their parameters.
///
/// | parameter | what it is |
/// | --- | --- |
/// | `rows` | [`RowWork`] for each row |
/// | `num_rows` | how many there are |
/// | `partial` | the parts of O, `width` floats to a row |
/// | `partial_lse` | their log-sum-exps |
/// | `width` | of a partial row: D of the kernel that made it |
/// | `head_dim` | columns of O, even |
/// | `output` | O |
/// | `lse` | log-sum-exps of whole rows, or null |
#[derive(Clone, Copy)]
pub struct CombineArguments {
    /// [`RowWork`], two entries each.
    pub rows: GlobalArray<[u32; 4]>,
    /// Rows.
    pub num_rows: u32,
    /// Parts of O.
    pub partial: GlobalArray<[u32; 2]>,
    /// Log-sum-exps of the parts.
    pub partial_lse: GlobalArray<u32>,
    /// Floats of a partial row.
    pub width: u32,
    /// Columns of O.
    pub head_dim: u32,
    /// O.
    pub output: *mut u8,
    /// Log-sum-exps, or null.
    pub lse: *mut f32,
}

/// What the host must know of a kernel that combines.
#[derive(Clone, Copy, Debug)]
pub struct Combined {
    /// Its launch contract.
    pub spec: &'static KernelSpec,
    /// The type of O.
    pub dtype: Dtype,
    /// Rows of a block.
    pub rows: u32,
    /// Calls the kernel on the CPU, as one thread of a simulated launch. The contract is the kernel's.
    #[cfg(feature = "sim")]
    pub simulate: unsafe fn(arguments: CombineArguments),
}

/// Combines the row of this warp. Warp.
///
/// # Safety
/// The launch contract of [`CombineArguments`].
#[inline(always)]
unsafe fn run<E: Half>(arguments: CombineArguments) {
    let (thread, lane) = (thread::thread_idx_x(), thread::thread_idx_x() % 32);
    let row = thread::block_idx_x() * (THREADS / 32) + thread / 32;
    if row >= arguments.num_rows {
        return;
    }
    // SAFETY: the row is in the list, its parts are there, and so are its columns in O.
    unsafe {
        let [first, step, count, lse_index] = arguments.rows.get(2 * row);
        let [low, high, _, _] = arguments.rows.get(2 * row + 1);
        let lse = |part: u32| f32::from_bits(arguments.partial_lse.get(first + part * step));
        let mut max = f32::NEG_INFINITY;
        let mut part = 0;
        while part < count {
            max = max_f32(max, lse(part));
            part += 1;
        }
        // A row that sees nothing: no difference of infinities.
        let shift = if max == f32::NEG_INFINITY { 0.0 } else { max };
        let weight = |part: u32| ex2_approx_ftz_f32((lse(part) - shift) * core::f32::consts::LOG2_E);
        let mut sum = 0.0;
        let mut part = 0;
        while part < count {
            sum += weight(part);
            part += 1;
        }
        let factor = if sum == 0.0 { 0.0 } else { rcp_approx_ftz_f32(sum) };
        let output = arguments.output.wrapping_add((u64::from(low) | u64::from(high) << 32) as usize * 2);
        let mut column = lane * 2;
        while column < arguments.head_dim {
            let mut pair = [0.0, 0.0];
            let mut part = 0;
            while part < count {
                let at = u64::from(first + part * step) * u64::from(arguments.width / 2) + u64::from(column / 2);
                let [a, b] = ld_global_nc_v2_u32(arguments.partial.skip(at).as_ptr().cast());
                // What a part that saw nothing holds does not count, be it a NaN.
                let weight = weight(part);
                if weight != 0.0 {
                    pair = [pair[0] + weight * f32::from_bits(a), pair[1] + weight * f32::from_bits(b)];
                }
                part += 1;
            }
            let word = E::pack(pair[0] * factor, pair[1] * factor);
            st_global_u32(output.wrapping_add(column as usize * 2).cast(), [word]);
            column += 64;
        }
        if !arguments.lse.is_null() && lane == 0 {
            let value = shift + lg2_approx_ftz_f32(sum) * core::f32::consts::LN_2;
            st_global_u32(arguments.lse.wrapping_add(lse_index as usize).cast(), [value.to_bits()]);
        }
    }
}

/// Makes the entries and the list of their configurations.
macro_rules! kernels {
    ($($name:ident $spec:ident: $element:ident;)*) => {
        /// The exported kernels, `attention_combine_<type>`.
        ///
        /// # Safety
        /// The launch contract of each is that of [`CombineArguments`](super::CombineArguments).
        #[allow(clippy::too_many_arguments, clippy::missing_safety_doc)]
        pub mod combine_entries {
            use super::*;

            $(
                #[doc = concat!("Rows of O from their parts, ", stringify!($element), ".")]
                #[kernel(threads = THREADS, shared = 0)]
                pub unsafe fn $name(
                    rows: GlobalArray<[u32; 4]>,
                    num_rows: u32,
                    partial: GlobalArray<[u32; 2]>,
                    partial_lse: GlobalArray<u32>,
                    width: u32,
                    head_dim: u32,
                    output: *mut u8,
                    lse: *mut f32,
                ) {
                    // SAFETY: the launch contract is passed on.
                    unsafe {
                        run::<$element>(CombineArguments {
                            rows,
                            num_rows,
                            partial,
                            partial_lse,
                            width,
                            head_dim,
                            output,
                            lse,
                        });
                    }
                }
            )*
        }

        /// Every kernel that combines.
        pub static COMBINED: &[Combined] = &[$(
            Combined {
                spec: &combine_entries::$spec,
                dtype: Dtype::$element,
                rows: THREADS / 32,
                #[cfg(feature = "sim")]
                simulate: |arguments| {
                    let CombineArguments { rows, num_rows, partial, partial_lse, width, head_dim, output, lse } = arguments;
                    // SAFETY: the caller of `simulate` keeps the kernel's contract.
                    unsafe {
                        combine_entries::$name(rows, num_rows, partial, partial_lse, width, head_dim, output, lse);
                    }
                },
            },
        )*];
    };
}

kernels! {
    attention_combine_bf16 ATTENTION_COMBINE_BF16: Bf16;
    attention_combine_f16 ATTENTION_COMBINE_F16: F16;
}
