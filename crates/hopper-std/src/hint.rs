//! Hints to the compiler.

/// The same value, of which the compiler knows nothing: a loop that counts with it is not unrolled.
#[inline(always)]
pub fn opaque(value: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let mut value = value;
        // SAFETY: the text is a comment.
        unsafe { core::arch::asm!("// {0}", inout(reg32) value, options(nomem, nostack)) };
        value
    }
    #[cfg(not(target_arch = "nvptx64"))]
    value
}

/// At the head of a loop's body: the assembler does not unroll it either. PTX ISA 11.4.12, `.pragma "nounroll"`.
#[inline(always)]
pub fn no_unroll() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: no instruction.
    unsafe {
        core::arch::asm!(".pragma \"nounroll\";", options(nomem, nostack));
    };
}

/// What comes after this begins when `value` has been computed. Thread.
///
/// The order of a program's arithmetic and its waits is the assembler's choice: it moves a wait for products before
/// arithmetic that was written there to run beside them, and they do not overlap. An instruction that may be executed and
/// depends on the arithmetic holds the wait back: `nanosleep` of no time, for one value in 2^32 (PTX ISA 9.7.19).
#[inline(always)]
pub fn computed(value: u32) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: to sleep or not changes nothing but the time.
    unsafe {
        core::arch::asm!(
            "{{",
            ".reg .pred is_it;",
            "setp.eq.u32 is_it, {0}, 0x7f812345;",
            "@is_it nanosleep.u32 0;",
            "}}",
            in(reg32) value,
            options(nostack)
        );
    };
    #[cfg(not(target_arch = "nvptx64"))]
    let _ = value;
}
