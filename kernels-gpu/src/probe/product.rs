//! One product of a warp group: D = A B, or A B + D.

use hopper_std::half::{Bf16, F16};
use hopper_std::ptx::memory::{ld_global_u32, ld_global_v4_u32, st_global_u32};
use hopper_std::ptx::special::dynamic_shared_address;
use hopper_std::ptx::wgmma::{Mma, Registers, SparseMma, wgmma_commit_group, wgmma_fence, wgmma_wait_group};
use hopper_std::sm90::{KMajor, MnMajor};
use hopper_std::{KernelSpec, kernel, seq, thread};

use super::{SHARED_BYTES, fill, publish};

/// Threads of a block: one warp group.
pub const THREADS: u32 = 128;

/// A descriptor whose start counts from the beginning of dynamic shared memory, as the instruction takes it. Thread.
#[inline(always)]
fn descriptor(relative: u64) -> u64 {
    // SAFETY: reading an address has no preconditions.
    relative + u64::from(unsafe { dynamic_shared_address() } >> 4)
}

/// Fills, loads D, runs `$issue` on it, and stores D. Register `r` of thread t is `d[t * registers + r]`.
macro_rules! product {
    ($registers:literal, $operands:ident, $bytes:ident, $d:ident, |$accumulator:ident| $issue:expr) => {
        fill(dynamic_shared_address(), $operands, $bytes);
        publish();
        let own = $d.wrapping_add(thread::thread_idx_x() as usize * $registers);
        // NOTE: an array expression would become a loop over memory.
        let mut registers: [f32; $registers] = core::mem::zeroed();
        seq!(I in 0..$registers {
            registers[I] = f32::from_bits(ld_global_u32(own.wrapping_add(I))[0]);
        });
        registers.tie();
        wgmma_fence();
        let $accumulator = &mut registers;
        $issue;
        wgmma_commit_group();
        wgmma_wait_group::<0>();
        registers.tie();
        seq!(I in 0..$registers {
            st_global_u32(own.wrapping_add(I), [registers[I].to_bits()]);
        });
    };
}

/// Makes the entries and the list of their specifications.
macro_rules! kernels {
    (
        shared { $($shared:ident $shared_spec:ident: $shared_type:ident, $shared_n:tt, $a:ident, $b:ident;)* }
        registers { $($left:ident $left_spec:ident: $left_type:ident, $left_n:tt, $left_b:ident;)* }
        sparse { $($sparse:ident $sparse_spec:ident: $sparse_type:ident, $sparse_n:tt, $selector:literal, $sparse_b:ident;)* }
    ) => {
        /// The exported kernels: `probe_wgmma_<type>_n<N>_<major of A><major of B>`, with A in registers
        /// `.._r<major of B>`, sparse `probe_wgmma_sparse_<type>_n64_s<selector>_<major of B>`. Majors are k and m.
        ///
        /// # Safety
        /// The launch contract of each: `bytes`, at most [`SHARED_BYTES`], can be read at `operands`; descriptors, which
        /// count from the beginning of shared memory, name operands within them; `d` has N / 2 words for each of 128
        /// threads, which are read (and count where `scale_d` is not 0) and written.
        #[allow(clippy::missing_safety_doc)]
        pub mod entries {
            use super::*;

            $(
                #[doc = concat!("m64n", $shared_n, "k16 of ", stringify!($shared_type), ", both operands in shared memory.")]
                #[kernel(threads = THREADS, shared = SHARED_BYTES as usize)]
                pub unsafe fn $shared(operands: *const u32, bytes: u32, scale_d: u32, a: u64, b: u64, d: *mut u32) {
                    // SAFETY: the launch contract; all four warps are here.
                    unsafe {
                        registers_of!($shared_n, product, operands, bytes, d, |accumulator| {
                            $shared_type::mma_shared::<$a, $b>(accumulator, descriptor(a), descriptor(b), scale_d)
                        });
                    }
                }
            )*

            $(
                #[doc = concat!("m64n", $left_n, "k16 of ", stringify!($left_type), ", four words of A in each thread's registers.")]
                #[kernel(threads = THREADS, shared = SHARED_BYTES as usize)]
                pub unsafe fn $left(operands: *const u32, bytes: u32, scale_d: u32, a: *const u32, b: u64, d: *mut u32) {
                    // SAFETY: the launch contract; all four warps are here.
                    unsafe {
                        let a = ld_global_v4_u32(a.wrapping_add(thread::thread_idx_x() as usize * 4));
                        registers_of!($left_n, product, operands, bytes, d, |accumulator| {
                            $left_type::mma_registers::<$left_b>(accumulator, a, descriptor(b), scale_d)
                        });
                    }
                }
            )*

            $(
                #[doc = concat!("m64n", $sparse_n, "k32 of ", stringify!($sparse_type), ", A sparse, one word of metadata for each thread.")]
                #[kernel(threads = THREADS, shared = SHARED_BYTES as usize)]
                pub unsafe fn $sparse(
                    operands: *const u32,
                    bytes: u32,
                    scale_d: u32,
                    a: u64,
                    b: u64,
                    metadata: *const u32,
                    d: *mut u32,
                ) {
                    // SAFETY: the launch contract; all four warps are here.
                    unsafe {
                        let [metadata] = ld_global_u32(metadata.wrapping_add(thread::thread_idx_x() as usize));
                        registers_of!($sparse_n, product, operands, bytes, d, |accumulator| {
                            $sparse_type::mma_shared_sparse::<$sparse_b, $selector>(
                                accumulator,
                                descriptor(a),
                                descriptor(b),
                                metadata,
                                scale_d,
                            )
                        });
                    }
                }
            )*
        }

        /// The specifications.
        pub static SPECS: &[KernelSpec] = &[
            $(entries::$shared_spec,)*
            $(entries::$left_spec,)*
            $(entries::$sparse_spec,)*
        ];
    };
}

/// N / 2 as a literal, handed to `$then`.
macro_rules! registers_of {
    (8, $then:ident, $($rest:tt)*) => { $then!(4, $($rest)*) };
    (16, $then:ident, $($rest:tt)*) => { $then!(8, $($rest)*) };
    (64, $then:ident, $($rest:tt)*) => { $then!(32, $($rest)*) };
    (256, $then:ident, $($rest:tt)*) => { $then!(128, $($rest)*) };
}

kernels! {
    shared {
        probe_wgmma_bf16_n8_kk PROBE_WGMMA_BF16_N8_KK: Bf16, 8, KMajor, KMajor;
        probe_wgmma_bf16_n8_km PROBE_WGMMA_BF16_N8_KM: Bf16, 8, KMajor, MnMajor;
        probe_wgmma_bf16_n8_mk PROBE_WGMMA_BF16_N8_MK: Bf16, 8, MnMajor, KMajor;
        probe_wgmma_bf16_n16_mk PROBE_WGMMA_BF16_N16_MK: Bf16, 16, MnMajor, KMajor;
        probe_wgmma_bf16_n64_kk PROBE_WGMMA_BF16_N64_KK: Bf16, 64, KMajor, KMajor;
        probe_wgmma_bf16_n64_km PROBE_WGMMA_BF16_N64_KM: Bf16, 64, KMajor, MnMajor;
        probe_wgmma_bf16_n64_mk PROBE_WGMMA_BF16_N64_MK: Bf16, 64, MnMajor, KMajor;
        probe_wgmma_bf16_n256_kk PROBE_WGMMA_BF16_N256_KK: Bf16, 256, KMajor, KMajor;
        probe_wgmma_bf16_n256_km PROBE_WGMMA_BF16_N256_KM: Bf16, 256, KMajor, MnMajor;
        probe_wgmma_bf16_n256_mk PROBE_WGMMA_BF16_N256_MK: Bf16, 256, MnMajor, KMajor;
        probe_wgmma_f16_n8_kk PROBE_WGMMA_F16_N8_KK: F16, 8, KMajor, KMajor;
        probe_wgmma_f16_n8_km PROBE_WGMMA_F16_N8_KM: F16, 8, KMajor, MnMajor;
        probe_wgmma_f16_n8_mk PROBE_WGMMA_F16_N8_MK: F16, 8, MnMajor, KMajor;
        probe_wgmma_f16_n16_mk PROBE_WGMMA_F16_N16_MK: F16, 16, MnMajor, KMajor;
        probe_wgmma_f16_n64_kk PROBE_WGMMA_F16_N64_KK: F16, 64, KMajor, KMajor;
        probe_wgmma_f16_n64_km PROBE_WGMMA_F16_N64_KM: F16, 64, KMajor, MnMajor;
        probe_wgmma_f16_n64_mk PROBE_WGMMA_F16_N64_MK: F16, 64, MnMajor, KMajor;
        probe_wgmma_f16_n256_kk PROBE_WGMMA_F16_N256_KK: F16, 256, KMajor, KMajor;
        probe_wgmma_f16_n256_km PROBE_WGMMA_F16_N256_KM: F16, 256, KMajor, MnMajor;
        probe_wgmma_f16_n256_mk PROBE_WGMMA_F16_N256_MK: F16, 256, MnMajor, KMajor;
    }
    registers {
        probe_wgmma_bf16_n64_rk PROBE_WGMMA_BF16_N64_RK: Bf16, 64, KMajor;
        probe_wgmma_bf16_n64_rm PROBE_WGMMA_BF16_N64_RM: Bf16, 64, MnMajor;
        probe_wgmma_f16_n64_rk PROBE_WGMMA_F16_N64_RK: F16, 64, KMajor;
        probe_wgmma_f16_n64_rm PROBE_WGMMA_F16_N64_RM: F16, 64, MnMajor;
    }
    sparse {
        probe_wgmma_sparse_bf16_n64_s0_k PROBE_WGMMA_SPARSE_BF16_N64_S0_K: Bf16, 64, 0, KMajor;
        probe_wgmma_sparse_bf16_n64_s0_m PROBE_WGMMA_SPARSE_BF16_N64_S0_M: Bf16, 64, 0, MnMajor;
        probe_wgmma_sparse_bf16_n64_s1_k PROBE_WGMMA_SPARSE_BF16_N64_S1_K: Bf16, 64, 1, KMajor;
        probe_wgmma_sparse_bf16_n64_s1_m PROBE_WGMMA_SPARSE_BF16_N64_S1_M: Bf16, 64, 1, MnMajor;
        probe_wgmma_sparse_f16_n64_s0_k PROBE_WGMMA_SPARSE_F16_N64_S0_K: F16, 64, 0, KMajor;
        probe_wgmma_sparse_f16_n64_s0_m PROBE_WGMMA_SPARSE_F16_N64_S0_M: F16, 64, 0, MnMajor;
        probe_wgmma_sparse_f16_n64_s1_k PROBE_WGMMA_SPARSE_F16_N64_S1_K: F16, 64, 1, KMajor;
        probe_wgmma_sparse_f16_n64_s1_m PROBE_WGMMA_SPARSE_F16_N64_S1_M: F16, 64, 1, MnMajor;
    }
}
