//! Fences between proxies and scopes. PTX ISA 9.7.13.4.

use hopper_macros::instruction;

/// `fence.proxy.async.shared::cta;` Thread. Makes this thread's ordinary writes to shared memory visible to the
/// asynchronous proxy (bulk copies, WGMMA) that a later barrier orders after it.
///
/// # Safety
/// None beyond the execution of an instruction; unsafe as all of this module is.
#[instruction]
pub unsafe fn fence_proxy_async_shared_cta() {
    ptx_asm!(
        sim(machine, at) { machine.fence(at, crate::sim::Fence::ProxyAsyncShared) }
        "fence.proxy.async.shared::cta;", options(nostack)
    );
}

/// `fence.proxy.async;` Thread. As [`fence_proxy_async_shared_cta`], for global and shared memory.
///
/// # Safety
/// As [`fence_proxy_async_shared_cta`].
#[instruction]
pub unsafe fn fence_proxy_async() {
    ptx_asm!(
        sim(machine, at) { machine.fence(at, crate::sim::Fence::ProxyAsync) }
        "fence.proxy.async;", options(nostack)
    );
}

/// `fence.mbarrier_init.release.cluster;` Thread. Makes initialised barriers visible to the cluster.
///
/// # Safety
/// As [`fence_proxy_async_shared_cta`].
#[instruction]
pub unsafe fn fence_mbarrier_init_release_cluster() {
    ptx_asm!(
        sim(machine, at) { machine.fence(at, crate::sim::Fence::MbarrierInit) }
        "fence.mbarrier_init.release.cluster;", options(nostack)
    );
}

/// `fence.acq_rel.cluster;` Thread.
///
/// # Safety
/// As [`fence_proxy_async_shared_cta`].
#[instruction]
pub unsafe fn fence_acq_rel_cluster() {
    ptx_asm!(
        sim(machine, at) { machine.fence(at, crate::sim::Fence::Cluster) }
        "fence.acq_rel.cluster;", options(nostack)
    );
}

/// `fence.acq_rel.gpu;` Thread.
///
/// # Safety
/// As [`fence_proxy_async_shared_cta`].
#[instruction]
pub unsafe fn fence_acq_rel_gpu() {
    ptx_asm!(
        sim(machine, at) { machine.fence(at, crate::sim::Fence::Gpu) }
        "fence.acq_rel.gpu;", options(nostack)
    );
}
