//! Matrix products of a warp group: D (64 x N, fp32) = A (64 x 16) B (16 x N) + D. PTX ISA 9.7.15.
//!
//! A sparse product has 64 x 32 of A, of which half is stored, and 32 x N of B.
//!
//! N is 8 to 256 in steps of 8; a thread holds N / 2 registers of D, so the number of registers names the shape.
//! Operands in shared memory are named by 64-bit descriptors
//! ([`SmemDescriptor`](crate::sm90::SmemDescriptor) makes them).

use hopper_macros::instruction;
use seq_macro::seq;

use crate::half::{Bf16, F16};

/// `wgmma.fence.sync.aligned;` Warp group. Orders register and shared accesses before the products that follow.
///
/// # Safety
/// All warps of the warp group execute it.
#[instruction]
pub unsafe fn wgmma_fence() {
    ptx_asm!(
        sim(machine, at) { machine.wgmma_fence(at) }
        "wgmma.fence.sync.aligned;", options(nostack)
    );
}

/// `wgmma.commit_group.sync.aligned;` Warp group.
///
/// # Safety
/// All warps of the warp group execute it.
#[instruction]
pub unsafe fn wgmma_commit_group() {
    ptx_asm!(
        sim(machine, at) { machine.wgmma_commit(at) }
        "wgmma.commit_group.sync.aligned;", options(nostack)
    );
}

/// `wgmma.wait_group.sync.aligned COUNT;` Warp group. At most `COUNT` groups are pending.
///
/// # Safety
/// All warps of the warp group execute it.
#[instruction]
pub unsafe fn wgmma_wait_group<const COUNT: u32>() {
    ptx_asm!(
        sim(machine, at) { machine.wgmma_wait(at, COUNT) }
        "wgmma.wait_group.sync.aligned {};", const COUNT, options(nostack)
    );
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

/// Products whose A is sparse, two of every four elements along K: 64 x 32 of A as 64 x 16 stored values, each with
/// two bits for its place; B is 32 x N. `REGISTERS` is N / 2. PTX ISA 9.7.15.6.
pub trait SparseMma<const REGISTERS: usize>: Mma<REGISTERS> {
    /// `wgmma.mma_async.sp.sync.aligned.m64nNk32.f32.T.T d, a, b, metadata, SELECTOR, p, 1, 1, 0, B::TRANS;` Warp group.
    /// `scale_d` 0 ignores what D held.
    ///
    /// The stored values of A are a K-major tile like a dense one of 16 columns. `metadata` is this thread's word. Lanes
    /// with `lane % 4 / 2 == SELECTOR` supply it, what the others hold is ignored: lane l of warp w holds, for columns
    /// 16 (l % 2) to 16 (l % 2) + 15, row 16 w + l / 4 in bits 0..16 and the row eight further down in bits 16..32.
    /// Bits 4 c to 4 c + 3 of a half are the group of columns 4 c to 4 c + 3: the place of its first stored value, then
    /// that of its second.
    ///
    /// # Safety
    /// As [`Mma::mma_shared`]; `metadata` is not touched either, and the two places of a group differ.
    unsafe fn mma_shared_sparse<B: Orientation, const SELECTOR: u32>(
        d: &mut [f32; REGISTERS],
        a: u64,
        b: u64,
        metadata: u32,
        scale_d: u32,
    );
}

/// The registers of an accumulator.
pub trait Registers {
    /// Nothing, to the machine; to the compiler, a use and a new value of every register. Code that reads or writes
    /// them cannot be moved across.
    fn tie(&mut self);
}

/// The registers of a left operand.
pub trait RegisterWords {
    /// As [`Registers::tie`].
    fn tie(&mut self);

    /// To the assembler, a use of every register.
    ///
    /// NOTE: products in flight still read the registers of their left operand, which ptxas (13.0) does not know: once the products
    /// are issued it gives the registers to the next operand, unless something uses them after the wait. Here it is stores that are
    /// never executed, since a launch never has that much shared memory.
    fn keep(&self);
}

macro_rules! words {
    ($($count:literal)*) => {
        $(
            impl RegisterWords for [u32; $count] {
                #[instruction]
                fn tie(&mut self) {
                    seq!(I in 0..$count {
                        ptx_asm!(cpu {} "//", #("// {}",)* #(inout(reg32) self[I],)* options(nostack, nomem));
                    });
                }

                #[instruction]
                fn keep(&self) {
                    seq!(I in 0..16 {
                        if I * 4 < $count {
                            ptx_asm!(
                            cpu {}
                            "{{",
                            ".reg .pred never;",
                            ".reg .u32 bytes;",
                            "mov.u32 bytes, %dynamic_smem_size;",
                            "setp.eq.u32 never, bytes, 0xfffffff0;",
                            concat!("@never st.shared.v4.u32 [bytes + 16 * ", I, "], {{{}, {}, {}, {}}};"),
                            "}}",
                            in(reg32) self[I * 4 % $count],
                            in(reg32) self[(I * 4 + 1) % $count],
                            in(reg32) self[(I * 4 + 2) % $count],
                            in(reg32) self[(I * 4 + 3) % $count],
                            options(nostack, nomem)
                        );
                        }
                    });
                }
            }
        )*
    };
}

words!(4 8 12 16 20 24 28 32 36 40 44 48 52 56 60 64);

macro_rules! shape {
    ($n:literal, $registers:literal, $last:literal) => {
        impl Registers for [f32; $registers] {
            #[instruction]
            fn tie(&mut self) {
                seq!(I in 0..$registers {
                    ptx_asm!(
                        cpu {
                            #[cfg(feature = "sim")]
                            if let Some(machine) = crate::sim::try_machine() {
                                machine.tie(core::panic::Location::caller(), self);
                            }
                        }
                        "//", #("// {}",)* #(inout(reg32) self[I],)* options(nostack, nomem)
                    );
                });
            }
        }
        mma!(Bf16, "bf16", $n, $registers, $last);
        mma!(F16, "f16", $n, $registers, $last);
    };
}

macro_rules! mma {
    ($type:ident, $name:literal, $n:literal, $registers:literal, $last:literal) => {
        impl Mma<$registers> for $type {
            #[instruction]
            unsafe fn mma_shared<A: Orientation, B: Orientation>(
                d: &mut [f32; $registers],
                a: u64,
                b: u64,
                scale_d: u32,
            ) {
                seq!(I in 0..$last {
                    ptx_asm!(
                        sim(machine, at) {
                            machine.wgmma(at, crate::sim::Wgmma {
                                d,
                                a: crate::sim::MmaLeft::Shared(a, crate::sim::MmaMajor::of_immediate(A::TRANS)),
                                b,
                                b_major: crate::sim::MmaMajor::of_immediate(B::TRANS),
                                scale_d,
                                element: crate::sim::MmaType::$type,
                                sparse: None,
                            });
                        }
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

            #[instruction]
            unsafe fn mma_registers<B: Orientation>(d: &mut [f32; $registers], a: [u32; 4], b: u64, scale_d: u32) {
                seq!(I in 0..$last {
                    ptx_asm!(
                        sim(machine, at) {
                            machine.wgmma(at, crate::sim::Wgmma {
                                d,
                                a: crate::sim::MmaLeft::Registers(a),
                                b,
                                b_major: crate::sim::MmaMajor::of_immediate(B::TRANS),
                                scale_d,
                                element: crate::sim::MmaType::$type,
                                sparse: None,
                            });
                        }
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

        impl SparseMma<$registers> for $type {
            #[instruction]
            unsafe fn mma_shared_sparse<B: Orientation, const SELECTOR: u32>(
                d: &mut [f32; $registers],
                a: u64,
                b: u64,
                metadata: u32,
                scale_d: u32,
            ) {
                const { assert!(SELECTOR < 2, "with 16-bit types the selector is 0 or 1") };
                seq!(I in 0..$last {
                    ptx_asm!(
                        sim(machine, at) {
                            machine.wgmma(at, crate::sim::Wgmma {
                                d,
                                a: crate::sim::MmaLeft::Shared(a, crate::sim::MmaMajor::K),
                                b,
                                b_major: crate::sim::MmaMajor::of_immediate(B::TRANS),
                                scale_d,
                                element: crate::sim::MmaType::$type,
                                sparse: Some((metadata, SELECTOR)),
                            });
                        }
                        "{{",
                        ".reg .pred p;",
                        "setp.ne.b32 p, {scale_d}, 0;",
                        concat!("wgmma.mma_async.sp.sync.aligned.m64n", $n, "k32.f32.", $name, ".", $name, " {{"),
                        #("{},",)*
                        "{}",
                        "}}, {a}, {b}, {metadata}, {selector}, p, 1, 1, 0, {trans_b};",
                        "}}",
                        #(inout(reg32) d[I],)*
                        inout(reg32) d[$last],
                        a = in(reg64) a,
                        b = in(reg64) b,
                        metadata = in(reg32) metadata,
                        selector = const SELECTOR,
                        scale_d = in(reg32) scale_d,
                        trans_b = const B::TRANS,
                        options(nostack)
                    );
                });
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
