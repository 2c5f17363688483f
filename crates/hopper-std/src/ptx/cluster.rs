//! Thread-block clusters. PTX ISA 9.7.13.3 and 10. The barriers are the forms without `.aligned`, as in
//! [`barrier`](super::barrier).

use hopper_macros::instruction;

/// `%cluster_ctarank`: this block's rank in its cluster. Thread.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn cluster_ctarank() -> u32 {
    let rank: u32;
    ptx_asm!(
        sim(machine, _) { rank = machine.special(crate::sim::Special::ClusterCtarank) as u32 }
        "mov.u32 {}, %cluster_ctarank;", out(reg32) rank, options(pure, nomem, nostack)
    );
    rank
}

/// `%cluster_nctarank`: blocks in this cluster. Thread.
///
/// # Safety
/// None; unsafe as all of this module is.
#[instruction]
pub unsafe fn cluster_nctarank() -> u32 {
    let count: u32;
    ptx_asm!(
        sim(machine, _) { count = machine.special(crate::sim::Special::ClusterNctarank) as u32 }
        "mov.u32 {}, %cluster_nctarank;", out(reg32) count, options(pure, nomem, nostack)
    );
    count
}

/// `mapa.shared::cluster.u32 r, address, rank;` Thread. The address, in the cluster's window, of what lies at `address`
/// in the block of that rank.
///
/// # Safety
/// `address` is in this block's shared memory and `rank` is under the cluster's size.
#[instruction]
pub unsafe fn mapa(address: u32, rank: u32) -> u32 {
    let mapped: u32;
    ptx_asm!(
        sim(machine, at) { mapped = machine.mapa(at, address, rank) }
        "mapa.shared::cluster.u32 {}, {}, {};",
        out(reg32) mapped,
        in(reg32) address,
        in(reg32) rank,
        options(pure, nomem, nostack)
    );
    mapped
}

/// `barrier.cluster.arrive.release;` Thread.
///
/// # Safety
/// Every thread of the cluster arrives, then waits, once each and in this order.
#[instruction]
pub unsafe fn barrier_cluster_arrive() {
    ptx_asm!(
        sim(machine, at) { machine.cluster_arrive(at) }
        "barrier.cluster.arrive.release;", options(nostack)
    );
}

/// `barrier.cluster.wait.acquire;` Thread.
///
/// # Safety
/// As [`barrier_cluster_arrive`].
#[instruction]
pub unsafe fn barrier_cluster_wait() {
    ptx_asm!(
        sim(machine, at) { machine.cluster_wait(at) }
        "barrier.cluster.wait.acquire;", options(nostack)
    );
}
