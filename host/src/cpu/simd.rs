//! One source for several instruction sets, chosen at run time.

use crate::element::Accumulator;

/// What inner loops need to know of a machine.
pub(super) trait InstructionSet {
    /// Bytes of all vector registers together.
    const REGISTER_FILE_BYTES: usize;
    /// `a * b + c`, in one instruction where there is one, so rounded once or twice.
    fn multiply_add<A: Accumulator>(a: A, b: A, c: A) -> A;
}

/// Work to be compiled once for each instruction set.
pub(super) trait Vectorised {
    /// Does the work. Must be `#[inline(always)]`, and so must all that it calls in its inner loops: code takes on the
    /// instruction set of the function that it is inlined into.
    fn run<I: InstructionSet>(self);
}

/// Does the work with the best instruction set of this machine.
pub(super) fn run_vectorised(work: impl Vectorised) {
    machine::run(work);
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use super::{InstructionSet, Vectorised};
    use crate::element::Accumulator;

    struct Avx512;
    struct Avx2;
    struct Sse2;

    impl InstructionSet for Avx512 {
        const REGISTER_FILE_BYTES: usize = 32 * 64;
        #[inline(always)]
        fn multiply_add<A: Accumulator>(a: A, b: A, c: A) -> A {
            a.fused_multiply_add(b, c)
        }
    }

    impl InstructionSet for Avx2 {
        const REGISTER_FILE_BYTES: usize = 16 * 32;
        #[inline(always)]
        fn multiply_add<A: Accumulator>(a: A, b: A, c: A) -> A {
            a.fused_multiply_add(b, c)
        }
    }

    impl InstructionSet for Sse2 {
        const REGISTER_FILE_BYTES: usize = 16 * 16;
        #[inline(always)]
        fn multiply_add<A: Accumulator>(a: A, b: A, c: A) -> A {
            a * b + c
        }
    }

    pub(super) fn run(work: impl Vectorised) {
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the only demand of the function is that the machine has AVX-512F, which was just found.
            unsafe { run_with_avx512(work) }
        } else if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: the only demand of the function is that the machine has AVX2 and FMA, which were just found.
            unsafe { run_with_avx2(work) }
        } else {
            work.run::<Sse2>();
        }
    }

    #[target_feature(enable = "avx512f")]
    fn run_with_avx512(work: impl Vectorised) {
        work.run::<Avx512>();
    }

    #[target_feature(enable = "avx2,fma")]
    fn run_with_avx2(work: impl Vectorised) {
        work.run::<Avx2>();
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod machine {
    use super::{InstructionSet, Vectorised};
    use crate::element::Accumulator;

    /// What the compiler takes for granted: on AArch64 32 registers of 16 bytes, and a fused instruction.
    struct Baseline;

    impl InstructionSet for Baseline {
        const REGISTER_FILE_BYTES: usize = 32 * 16;
        #[inline(always)]
        fn multiply_add<A: Accumulator>(a: A, b: A, c: A) -> A {
            if cfg!(target_arch = "aarch64") { a.fused_multiply_add(b, c) } else { a * b + c }
        }
    }

    pub(super) fn run(work: impl Vectorised) {
        work.run::<Baseline>();
    }
}
