//! A panic on the device traps: the launch fails with an error that the host reports.

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: `trap` stops the grid; it has no operands.
    unsafe { core::arch::nvptx::trap() }
}
