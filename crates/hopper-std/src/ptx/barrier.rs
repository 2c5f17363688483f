//! Block barriers by number, 0 to 15. PTX ISA 9.7.13.1.
//!
//! NOTE: these are the forms without `.aligned`, which `bar.sync` has. A compiler may put a copy of an instruction into each
//! of two branches that meet before it (LLVM does so after `if thread == 0 { .. }`); the lanes of one warp then execute
//! different copies, which the aligned form does not allow: the warp hangs.

use hopper_macros::instruction;

/// `barrier.sync id, threads;` Thread; returns when `threads` threads have arrived.
///
/// # Safety
/// Every thread counted arrives at the same barrier with the same count; `id` is under 16, `threads` a multiple of 32.
#[instruction]
pub unsafe fn barrier_sync(id: u32, threads: u32) {
    ptx_asm!(
        sim(machine, at) { machine.barrier_sync(at, id, Some(threads)) }
        "barrier.sync {}, {};", in(reg32) id, in(reg32) threads, options(nostack)
    );
}

/// `barrier.arrive id, threads;` Thread; counts itself and goes on.
///
/// # Safety
/// As [`barrier_sync`]; some warp waits at the barrier by [`barrier_sync`].
#[instruction]
pub unsafe fn barrier_arrive(id: u32, threads: u32) {
    ptx_asm!(
        sim(machine, at) { machine.barrier_arrive(at, id, threads) }
        "barrier.arrive {}, {};", in(reg32) id, in(reg32) threads, options(nostack)
    );
}

/// `barrier.sync 0;` Block.
///
/// # Safety
/// Every thread of the block executes it.
#[instruction]
pub unsafe fn barrier_sync_all() {
    ptx_asm!(
        sim(machine, at) { machine.barrier_sync(at, 0, None) }
        "barrier.sync 0;", options(nostack)
    );
}
