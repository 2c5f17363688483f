//! Block barriers by number, 0 to 15. PTX ISA 9.7.13.1.

use hopper_macros::instruction;

/// `bar.sync id, threads;` Warp; returns when `threads` threads have arrived.
///
/// # Safety
/// Every thread counted arrives at the same barrier with the same count; `id` is under 16, `threads` a multiple of 32.
#[instruction]
pub unsafe fn bar_sync(id: u32, threads: u32) {
    ptx_asm!(
        sim(machine, at) { machine.bar_sync(at, id, Some(threads)) }
        "bar.sync {}, {};", in(reg32) id, in(reg32) threads, options(nostack)
    );
}

/// `bar.arrive id, threads;` Warp; counts itself and goes on.
///
/// # Safety
/// As [`bar_sync`]; some warp waits at the barrier by [`bar_sync`].
#[instruction]
pub unsafe fn bar_arrive(id: u32, threads: u32) {
    ptx_asm!(
        sim(machine, at) { machine.bar_arrive(at, id, threads) }
        "bar.arrive {}, {};", in(reg32) id, in(reg32) threads, options(nostack)
    );
}

/// `bar.sync 0;` Block.
///
/// # Safety
/// Every thread of the block executes it.
#[instruction]
pub unsafe fn bar_sync_all() {
    ptx_asm!(
        sim(machine, at) { machine.bar_sync(at, 0, None) }
        "bar.sync 0;", options(nostack)
    );
}
