//! `cp.async`: copies by threads, 4, 8 or 16 bytes each. PTX ISA 9.7.9.25.3.

use hopper_macros::instruction;

macro_rules! cp_async {
    ($($(#[$doc:meta])* $name:ident, $cache:literal, $bytes:literal;)*) => {
        $(
            $(#[$doc])*
            ///
            /// Thread. Bytes from `source_bytes` on are written as zero.
            ///
            /// # Safety
            /// `source` points to `source_bytes` readable bytes of global memory; source and `destination` (a shared
            /// address) are aligned to the size of the copy; nothing reads the destination until a wait covers it.
            #[instruction]
            pub unsafe fn $name(destination: u32, source: *const u8, source_bytes: u32) {
                ptx_asm!(
                    sim(machine, at) { machine.cp_async(at, destination, source, $bytes, source_bytes) }
                    concat!("cp.async.", $cache, ".shared::cta.global [{}], [{}], ", $bytes, ", {};"),
                    in(reg32) destination,
                    in(reg64) source,
                    in(reg32) source_bytes,
                    options(nostack)
                );
            }
        )*
    };
}

cp_async! {
    /// `cp.async.ca.shared::cta.global [destination], [source], 4, source_bytes;`
    cp_async_ca_4, "ca", 4;
    /// `cp.async.ca.shared::cta.global [destination], [source], 8, source_bytes;`
    cp_async_ca_8, "ca", 8;
    /// `cp.async.cg.shared::cta.global [destination], [source], 16, source_bytes;` Past L1.
    cp_async_cg_16, "cg", 16;
}

/// `cp.async.commit_group;` Thread.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn cp_async_commit_group() {
    ptx_asm!(
        sim(machine, at) { machine.cp_async_commit(at) }
        "cp.async.commit_group;", options(nostack)
    );
}

/// `cp.async.wait_group COUNT;` Thread. Returns when at most `COUNT` of this thread's groups are pending.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn cp_async_wait_group<const COUNT: u32>() {
    ptx_asm!(
        sim(machine, at) { machine.cp_async_wait(at, COUNT) }
        "cp.async.wait_group {};", const COUNT, options(nostack)
    );
}

/// `cp.async.mbarrier.arrive.noinc.shared::cta.b64 [barrier];` Thread. Arrives once this thread's copies are done.
///
/// # Safety
/// `barrier` is initialised, in this block, and its count includes this arrival.
#[instruction]
pub unsafe fn cp_async_mbarrier_arrive_noinc(barrier: u32) {
    ptx_asm!(
        sim(machine, at) { machine.cp_async_mbarrier_arrive_noinc(at, barrier) }
        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [{}];", in(reg32) barrier, options(nostack)
    );
}
