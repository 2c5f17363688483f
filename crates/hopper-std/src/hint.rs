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
