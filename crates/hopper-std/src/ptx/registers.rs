//! Register reallocation between warp groups. PTX ISA 9.7.19.5.

use hopper_macros::instruction;

/// `setmaxnreg.dec.sync.aligned.u32 COUNT;` Warp group.
///
/// # Safety
/// All warps of the warp group execute it with the same count; they hold at least `COUNT` registers and use at most
/// that many from here on. The kernel has launch bounds (`.reqntid` and `.minnctapersm`).
#[instruction]
pub unsafe fn setmaxnreg_dec<const COUNT: u32>() {
    ptx_asm!(
        sim(machine, at) { machine.setmaxnreg_dec(at, COUNT) }
        "setmaxnreg.dec.sync.aligned.u32 {};", const COUNT, options(nostack)
    );
}

/// `setmaxnreg.inc.sync.aligned.u32 COUNT;` Warp group. Waits until the multiprocessor has the registers to give.
///
/// # Safety
/// As [`setmaxnreg_dec`]; the block's warp groups together never ask for more than 65,536 registers: else it waits
/// forever.
#[instruction]
pub unsafe fn setmaxnreg_inc<const COUNT: u32>() {
    ptx_asm!(
        sim(machine, at) { machine.setmaxnreg_inc(at, COUNT) }
        "setmaxnreg.inc.sync.aligned.u32 {};", const COUNT, options(nostack)
    );
}
