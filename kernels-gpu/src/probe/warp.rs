//! One instruction of a warp: matrices of 8 x 8 elements, shuffles.

use hopper_std::ptx::matrix::{ldmatrix_x4, ldmatrix_x4_trans, stmatrix_x4, stmatrix_x4_trans};
use hopper_std::ptx::memory::{ld_global_u32, ld_global_v4_u32, st_global_u32, st_global_v4_u32};
use hopper_std::ptx::special::dynamic_shared_address;
use hopper_std::ptx::warp::{movmatrix_trans_b16, shfl_sync_bfly, shfl_sync_down, shfl_sync_idx, shfl_sync_up};
use hopper_std::{KernelSpec, kernel, thread};

use super::{dump, fill, fill_with_pattern};

/// Threads of a block: one warp.
pub const THREADS: u32 = 32;

/// Bytes of shared memory for matrices.
pub const MATRIX_BYTES: u32 = 4096;

/// This lane's element of an array of one word for each lane. Thread.
///
/// # Safety
/// There are 32 words.
#[inline(always)]
unsafe fn of_lane(words: *const u32) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { ld_global_u32(words.wrapping_add(thread::thread_idx_x() as usize))[0] }
}

/// Makes the entries and the list of their specifications.
macro_rules! kernels {
    (
        load { $($load:ident $load_spec:ident: $load_instruction:ident;)* }
        store { $($store:ident $store_spec:ident: $store_instruction:ident;)* }
    ) => {
        /// The exported kernels.
        ///
        /// # Safety
        /// The launch contract of each: arrays have one word for each lane, or four where that is said; `offsets` are
        /// multiples of 16 under [`MATRIX_BYTES`], from the beginning of shared memory on; `bytes` is at most that.
        #[allow(clippy::missing_safety_doc)]
        pub mod entries {
            use super::*;

            $(
                /// Four words for each lane of `bytes` of `operands`, read at the lanes' offsets.
                #[kernel(threads = THREADS, shared = MATRIX_BYTES as usize)]
                pub unsafe fn $load(operands: *const u32, bytes: u32, offsets: *const u32, out: *mut u32) {
                    // SAFETY: the launch contract.
                    unsafe {
                        let shared = dynamic_shared_address();
                        fill(shared, operands, bytes);
                        thread::sync_threads();
                        let words = $load_instruction(shared + of_lane(offsets));
                        st_global_v4_u32(out.wrapping_add(thread::thread_idx_x() as usize * 4), words);
                    }
                }
            )*

            $(
                /// `bytes` of shared memory, filled by a pattern, after four words of each lane were written at the lanes'
                /// offsets.
                #[kernel(threads = THREADS, shared = MATRIX_BYTES as usize)]
                pub unsafe fn $store(words: *const u32, offsets: *const u32, out: *mut u32, bytes: u32) {
                    // SAFETY: the launch contract.
                    unsafe {
                        let shared = dynamic_shared_address();
                        fill_with_pattern(shared, bytes);
                        thread::sync_threads();
                        let words = ld_global_v4_u32(words.wrapping_add(thread::thread_idx_x() as usize * 4));
                        $store_instruction(shared + of_lane(offsets), words);
                        thread::sync_threads();
                        dump(out, shared, bytes);
                    }
                }
            )*

            /// The transposed matrix of one word of each lane.
            #[kernel(threads = THREADS, shared = 0)]
            pub unsafe fn probe_movmatrix(words: *const u32, out: *mut u32) {
                // SAFETY: the launch contract.
                unsafe {
                    let word = movmatrix_trans_b16(of_lane(words));
                    st_global_u32(out.wrapping_add(thread::thread_idx_x() as usize), [word]);
                }
            }

            /// What each of the four shuffles gives, in the order bfly, idx, up, down: four words for each lane. `lanes`
            /// holds each lane's lane operand, under 32.
            #[kernel(threads = THREADS, shared = 0)]
            pub unsafe fn probe_shuffle(words: *const u32, lanes: *const u32, out: *mut u32) {
                // SAFETY: the launch contract.
                unsafe {
                    let (word, lane) = (of_lane(words), of_lane(lanes));
                    let results = [
                        shfl_sync_bfly(word, lane),
                        shfl_sync_idx(word, lane),
                        shfl_sync_up(word, lane),
                        shfl_sync_down(word, lane),
                    ];
                    st_global_v4_u32(out.wrapping_add(thread::thread_idx_x() as usize * 4), results);
                }
            }
        }

        /// The specifications.
        pub static SPECS: &[KernelSpec] = &[
            $(entries::$load_spec,)*
            $(entries::$store_spec,)*
            entries::PROBE_MOVMATRIX,
            entries::PROBE_SHUFFLE,
        ];
    };
}

kernels! {
    load {
        probe_ldmatrix_x4 PROBE_LDMATRIX_X4: ldmatrix_x4;
        probe_ldmatrix_x4_trans PROBE_LDMATRIX_X4_TRANS: ldmatrix_x4_trans;
    }
    store {
        probe_stmatrix_x4 PROBE_STMATRIX_X4: stmatrix_x4;
        probe_stmatrix_x4_trans PROBE_STMATRIX_X4_TRANS: stmatrix_x4_trans;
    }
}
