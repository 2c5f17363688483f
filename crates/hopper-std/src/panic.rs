//! What a panic does on the device: it stops the kernel.

/// Traps. The message is dropped, so the code that would format it is removed at link time.
///
/// The launch fails with CUDA_ERROR_LAUNCH_FAILED (719) and the context is lost, as with any fault.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: `trap` needs nothing; it ends the kernel.
    unsafe { core::arch::nvptx::trap() }
}
