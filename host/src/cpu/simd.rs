//! One source for several instruction sets, chosen at run time.

use crate::element::Accumulator;
/// An instruction set that work is compiled for, by name.
pub(super) use machine::Path;

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

impl Path {
    /// The best of this machine.
    pub(super) fn best() -> Self {
        *Self::ALL.iter().find(|path| path.is_supported()).unwrap_or(&Self::BASELINE)
    }
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use super::{InstructionSet, Vectorised};
    use crate::element::Accumulator;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Path {
        Avx512,
        Avx2,
        Sse2,
    }

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

    impl Path {
        /// All of them, the best first.
        pub const ALL: &[Self] = &[Self::Avx512, Self::Avx2, Self::Sse2];
        /// What every machine has that this is compiled for.
        pub const BASELINE: Self = Self::Sse2;

        /// Whether this machine has it.
        pub fn is_supported(self) -> bool {
            match self {
                Self::Avx512 => std::arch::is_x86_feature_detected!("avx512f"),
                Self::Avx2 => std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma"),
                Self::Sse2 => true,
            }
        }

        /// Does the work.
        ///
        /// # Panics
        /// Where this machine does not have it.
        pub fn run(self, work: impl Vectorised) {
            assert!(self.is_supported(), "this machine has no {self:?}");
            match self {
                // SAFETY: the only demand of the function is that the machine has AVX-512F, which was just seen.
                Self::Avx512 => unsafe { run_with_avx512(work) },
                // SAFETY: the only demand of the function is that the machine has AVX2 and FMA, which were just seen.
                Self::Avx2 => unsafe { run_with_avx2(work) },
                Self::Sse2 => work.run::<Sse2>(),
            }
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

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Path {
        Baseline,
    }

    /// What the compiler takes for granted: on AArch64 32 registers of 16 bytes, and a fused instruction.
    struct Baseline;

    impl InstructionSet for Baseline {
        const REGISTER_FILE_BYTES: usize = 32 * 16;
        #[inline(always)]
        fn multiply_add<A: Accumulator>(a: A, b: A, c: A) -> A {
            if cfg!(target_arch = "aarch64") { a.fused_multiply_add(b, c) } else { a * b + c }
        }
    }

    impl Path {
        /// The only one.
        pub const ALL: &[Self] = &[Self::BASELINE];
        /// What every machine has that this is compiled for.
        pub const BASELINE: Self = Self::Baseline;

        /// Always.
        pub fn is_supported(self) -> bool {
            true
        }

        /// Does the work.
        pub fn run(self, work: impl Vectorised) {
            work.run::<Baseline>();
        }
    }
}
