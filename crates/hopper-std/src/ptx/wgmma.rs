//! Matrix products of a warp group: D (64 x N, fp32) = A (64 x 16) B (16 x N) + D. PTX ISA 9.7.15.
//!
//! N is 8 to 256 in steps of 8; a thread holds N / 2 registers of D, so the number of registers names the shape.
//! Operands in shared memory are named by 64-bit descriptors
//! ([`SmemDescriptor`](crate::sm90::SmemDescriptor) makes them).

#[cfg(target_arch = "nvptx64")]
use seq_macro::seq;

use crate::half::{Bf16, F16};

/// `wgmma.fence.sync.aligned;` Warp group. Orders register and shared accesses before the products that follow.
///
/// # Safety
/// All warps of the warp group execute it.
#[inline(always)]
pub unsafe fn wgmma_fence() {
    ptx_asm!("wgmma.fence.sync.aligned;", options(nostack));
}

/// `wgmma.commit_group.sync.aligned;` Warp group.
///
/// # Safety
/// All warps of the warp group execute it.
#[inline(always)]
pub unsafe fn wgmma_commit_group() {
    ptx_asm!("wgmma.commit_group.sync.aligned;", options(nostack));
}

/// `wgmma.wait_group.sync.aligned COUNT;` Warp group. At most `COUNT` groups are pending.
///
/// # Safety
/// All warps of the warp group execute it.
#[inline(always)]
pub unsafe fn wgmma_wait_group<const COUNT: u32>() {
    ptx_asm!("wgmma.wait_group.sync.aligned {};", const COUNT, options(nostack));
}

/// How an operand lies in shared memory.
pub trait Orientation {
    /// The instruction's immediate: 0 for K-major, 1 for MN-major (the transpose that only 16-bit types have).
    const TRANS: i32;
}

/// Products whose A and B are of this type; `REGISTERS` is N / 2.
pub trait Mma<const REGISTERS: usize>: crate::half::Half {
    /// `wgmma.mma_async.sync.aligned.m64nNk16.f32.T.T d, a, b, p, 1, 1, A::TRANS, B::TRANS;` Warp group.
    /// `scale_d` 0 ignores what D held.
    ///
    /// # Safety
    /// All warps of the warp group execute it with the same descriptors, which name readable tiles; D is not touched
    /// until a wait covers the product; [`wgmma_fence`] came before the first product after D was touched.
    unsafe fn mma_shared<A: Orientation, B: Orientation>(d: &mut [f32; REGISTERS], a: u64, b: u64, scale_d: u32);

    /// As [`Mma::mma_shared`] with A, K-major, in four registers of packed pairs.
    ///
    /// # Safety
    /// As [`Mma::mma_shared`]; `a` is not touched either.
    unsafe fn mma_registers<B: Orientation>(d: &mut [f32; REGISTERS], a: [u32; 4], b: u64, scale_d: u32);
}

/// The registers of an accumulator.
pub trait Registers {
    /// Nothing, to the machine; to the compiler, a use and a new value of every register. Code that reads or writes
    /// them cannot be moved across.
    fn tie(&mut self);
}

macro_rules! shape {
    ($n:literal, $registers:literal, $last:literal) => {
        impl Registers for [f32; $registers] {
            #[inline(always)]
            fn tie(&mut self) {
                // SAFETY: the text is a comment; the operands are registers.
                #[cfg(target_arch = "nvptx64")]
                unsafe {
                    seq!(I in 0..$registers {
                        core::arch::asm!("//", #("// {}",)* #(inout(reg32) self[I],)* options(nostack, nomem));
                    });
                }
            }
        }
        mma!(Bf16, "bf16", $n, $registers, $last);
        mma!(F16, "f16", $n, $registers, $last);
    };
}

#[cfg(not(target_arch = "nvptx64"))]
macro_rules! mma {
    ($type:ty, $name:literal, $n:literal, $registers:literal, $last:literal) => {
        impl Mma<$registers> for $type {
            unsafe fn mma_shared<A: Orientation, B: Orientation>(
                d: &mut [f32; $registers],
                a: u64,
                b: u64,
                scale_d: u32,
            ) {
                super::only_on_the_device()
            }

            unsafe fn mma_registers<B: Orientation>(d: &mut [f32; $registers], a: [u32; 4], b: u64, scale_d: u32) {
                super::only_on_the_device()
            }
        }
    };
}

#[cfg(target_arch = "nvptx64")]
macro_rules! mma {
    ($type:ty, $name:literal, $n:literal, $registers:literal, $last:literal) => {
        impl Mma<$registers> for $type {
            #[inline(always)]
            unsafe fn mma_shared<A: Orientation, B: Orientation>(
                d: &mut [f32; $registers],
                a: u64,
                b: u64,
                scale_d: u32,
            ) {
                // SAFETY: the caller's promises are this instruction's.
                unsafe {
                    seq!(I in 0..$last {
                        core::arch::asm!(
                            "{{",
                            ".reg .pred p;",
                            "setp.ne.b32 p, {scale_d}, 0;",
                            concat!("wgmma.mma_async.sync.aligned.m64n", $n, "k16.f32.", $name, ".", $name, " {{"),
                            #("{},",)*
                            "{}",
                            "}}, {a}, {b}, p, 1, 1, {trans_a}, {trans_b};",
                            "}}",
                            #(inout(reg32) d[I],)*
                            inout(reg32) d[$last],
                            a = in(reg64) a,
                            b = in(reg64) b,
                            scale_d = in(reg32) scale_d,
                            trans_a = const A::TRANS,
                            trans_b = const B::TRANS,
                            options(nostack)
                        );
                    });
                }
            }

            #[inline(always)]
            unsafe fn mma_registers<B: Orientation>(d: &mut [f32; $registers], a: [u32; 4], b: u64, scale_d: u32) {
                // SAFETY: the caller's promises are this instruction's.
                unsafe {
                    seq!(I in 0..$last {
                        core::arch::asm!(
                            "{{",
                            ".reg .pred p;",
                            "setp.ne.b32 p, {scale_d}, 0;",
                            concat!("wgmma.mma_async.sync.aligned.m64n", $n, "k16.f32.", $name, ".", $name, " {{"),
                            #("{},",)*
                            "{}",
                            "}}, {{{a0}, {a1}, {a2}, {a3}}}, {b}, p, 1, 1, {trans_b};",
                            "}}",
                            #(inout(reg32) d[I],)*
                            inout(reg32) d[$last],
                            a0 = in(reg32) a[0],
                            a1 = in(reg32) a[1],
                            a2 = in(reg32) a[2],
                            a3 = in(reg32) a[3],
                            b = in(reg64) b,
                            scale_d = in(reg32) scale_d,
                            trans_b = const B::TRANS,
                            options(nostack)
                        );
                    });
                }
            }
        }
    };
}

shape!(8, 4, 3);
shape!(16, 8, 7);
shape!(24, 12, 11);
shape!(32, 16, 15);
shape!(40, 20, 19);
shape!(48, 24, 23);
shape!(56, 28, 27);
shape!(64, 32, 31);
shape!(72, 36, 35);
shape!(80, 40, 39);
shape!(88, 44, 43);
shape!(96, 48, 47);
shape!(104, 52, 51);
shape!(112, 56, 55);
shape!(120, 60, 59);
shape!(128, 64, 63);
shape!(136, 68, 67);
shape!(144, 72, 71);
shape!(152, 76, 75);
shape!(160, 80, 79);
shape!(168, 84, 83);
shape!(176, 88, 87);
shape!(184, 92, 91);
shape!(192, 96, 95);
shape!(200, 100, 99);
shape!(208, 104, 103);
shape!(216, 108, 107);
shape!(224, 112, 111);
shape!(232, 116, 115);
shape!(240, 120, 119);
shape!(248, 124, 123);
shape!(256, 128, 127);
