//! Bulk copies without a tensor map, and bulk groups. PTX ISA 9.7.9.25.4.
//!
//! Sizes and addresses are multiples of 16 bytes.

use hopper_macros::instruction;

use super::tensor::CachePolicy;

/// `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [destination], [source], bytes, [barrier];` Thread.
///
/// # Safety
/// `source` points to `bytes` readable bytes of global memory, `destination` to as many of shared memory; both and
/// `bytes` are multiples of 16; `barrier` expects the bytes.
#[instruction]
pub unsafe fn cp_async_bulk_global_to_shared(destination: u32, source: *const u8, bytes: u32, barrier: u32) {
    ptx_asm!(
        sim(machine, at) { machine.bulk_load(at, destination, source, bytes, barrier, None) }
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{}], [{}], {}, [{}];",
        in(reg32) destination,
        in(reg64) source,
        in(reg32) bytes,
        in(reg32) barrier,
        options(nostack)
    );
}

/// As [`cp_async_bulk_global_to_shared`] with `.L2::cache_hint`. Thread.
///
/// # Safety
/// As [`cp_async_bulk_global_to_shared`].
#[instruction]
pub unsafe fn cp_async_bulk_global_to_shared_hinted(
    destination: u32,
    source: *const u8,
    bytes: u32,
    barrier: u32,
    policy: CachePolicy,
) {
    ptx_asm!(
        sim(machine, at) { machine.bulk_load(at, destination, source, bytes, barrier, None) }
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [{}], [{}], {}, [{}], {};",
        in(reg32) destination,
        in(reg64) source,
        in(reg32) bytes,
        in(reg32) barrier,
        in(reg64) policy.0,
        options(nostack)
    );
}

/// As [`cp_async_bulk_global_to_shared`] with `.multicast::cluster`: to the same offset in every block of `mask`. Thread.
///
/// # Safety
/// As [`cp_async_bulk_global_to_shared`], in every block of `mask`; each has a barrier at that offset.
#[instruction]
pub unsafe fn cp_async_bulk_global_to_shared_multicast(
    destination: u32,
    source: *const u8,
    bytes: u32,
    barrier: u32,
    mask: u16,
) {
    ptx_asm!(
        sim(machine, at) { machine.bulk_load(at, destination, source, bytes, barrier, Some(mask)) }
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [{}], [{}], {}, [{}], {};",
        in(reg32) destination,
        in(reg64) source,
        in(reg32) bytes,
        in(reg32) barrier,
        in(reg16) mask,
        options(nostack)
    );
}

/// `cp.async.bulk.global.shared::cta.bulk_group [destination], [source], bytes;` Thread.
///
/// # Safety
/// `destination` points to `bytes` writable bytes of global memory, `source` to as many of shared memory that do not
/// change until the group has been read; all are multiples of 16.
#[instruction]
pub unsafe fn cp_async_bulk_shared_to_global(destination: *mut u8, source: u32, bytes: u32) {
    ptx_asm!(
        sim(machine, at) { machine.bulk_store(at, destination, source, bytes) }
        "cp.async.bulk.global.shared::cta.bulk_group [{}], [{}], {};",
        in(reg64) destination,
        in(reg32) source,
        in(reg32) bytes,
        options(nostack)
    );
}

/// `cp.async.bulk.commit_group;` Thread.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn cp_async_bulk_commit_group() {
    ptx_asm!(
        sim(machine, at) { machine.bulk_commit(at) }
        "cp.async.bulk.commit_group;", options(nostack)
    );
}

/// `cp.async.bulk.wait_group COUNT;` Thread. At most `COUNT` of this thread's bulk groups are pending.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn cp_async_bulk_wait_group<const COUNT: u32>() {
    ptx_asm!(
        sim(machine, at) { machine.bulk_wait(at, COUNT, crate::sim::BulkWait::Done) }
        "cp.async.bulk.wait_group {};", const COUNT, options(nostack)
    );
}

/// `cp.async.bulk.wait_group.read COUNT;` Thread. As above, but only their sources have been read.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn cp_async_bulk_wait_group_read<const COUNT: u32>() {
    ptx_asm!(
        sim(machine, at) { machine.bulk_wait(at, COUNT, crate::sim::BulkWait::Read) }
        "cp.async.bulk.wait_group.read {};", const COUNT, options(nostack)
    );
}
