//! Read, change and write as one. PTX ISA 9.7.13.5.

use hopper_macros::instruction;

/// `atom.acq_rel.gpu.global.add.u32 d, [address], value;` Thread. What was there before.
///
/// # Safety
/// `address` is a word of global memory, aligned, that only such instructions touch while the launch runs.
#[instruction]
pub unsafe fn atom_acq_rel_gpu_global_add_u32(address: *mut u32, value: u32) -> u32 {
    let before: u32;
    ptx_asm!(
        sim(machine, at) { before = machine.atomic_add(at, address, value) }
        "atom.acq_rel.gpu.global.add.u32 {}, [{}], {};",
        out(reg32) before,
        in(reg64) address,
        in(reg32) value,
        options(nostack)
    );
    before
}
