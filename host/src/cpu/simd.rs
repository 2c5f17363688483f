//! One source for several instruction sets, chosen at run time.

use crate::element::Accumulator;

/// How a machine multiplies and adds.
pub(super) trait MultiplyAdd {
    /// `a * b + c`, rounded once or twice.
    fn multiply_add<A: Accumulator>(a: A, b: A, c: A) -> A;
}

/// In one instruction.
pub(super) struct Fused;

/// In two instructions.
#[cfg(not(target_arch = "aarch64"))]
pub(super) struct Separate;

impl MultiplyAdd for Fused {
    #[inline(always)]
    fn multiply_add<A: Accumulator>(a: A, b: A, c: A) -> A {
        a.fused_multiply_add(b, c)
    }
}

#[cfg(not(target_arch = "aarch64"))]
impl MultiplyAdd for Separate {
    #[inline(always)]
    fn multiply_add<A: Accumulator>(a: A, b: A, c: A) -> A {
        a * b + c
    }
}

/// Work to be compiled once for each instruction set.
pub(super) trait Vectorised {
    /// Does the work. Must be `#[inline(always)]`, and so must all that it calls in its inner loops: code takes on the
    /// instruction set of the function that it is inlined into.
    fn run<M: MultiplyAdd>(self);
}

/// Does the work with the best instruction set of this machine.
#[cfg(target_arch = "x86_64")]
pub(super) fn run_vectorised(work: impl Vectorised) {
    if std::arch::is_x86_feature_detected!("avx512f") {
        // SAFETY: the only demand of the function is that the machine has AVX-512F, which was just found.
        unsafe { run_with_avx512(work) }
    } else if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the only demand of the function is that the machine has AVX2 and FMA, which were just found.
        unsafe { run_with_avx2(work) }
    } else {
        work.run::<Separate>();
    }
}

/// Does the work with the best instruction set of this machine.
#[cfg(target_arch = "aarch64")]
pub(super) fn run_vectorised(work: impl Vectorised) {
    work.run::<Fused>();
}

/// Does the work with the best instruction set of this machine.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn run_vectorised(work: impl Vectorised) {
    work.run::<Separate>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn run_with_avx512(work: impl Vectorised) {
    work.run::<Fused>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_with_avx2(work: impl Vectorised) {
    work.run::<Fused>();
}
