//! Tensor copies: boxes of 1 to 5 dimensions, described by a tensor map. PTX ISA 9.7.9.25.5.
//!
//! `map` is the generic address of a 128-byte tensor map, 64-byte aligned, in global memory. Coordinates are elements,
//! the contiguous dimension first; what lies outside the tensor is read as zero and not written. A load completes on
//! `barrier` with the bytes of the whole box, in bounds or not.

use hopper_macros::instruction;

/// Where, between L2 and memory, the lines of a copy should stay: an operand of `.L2::cache_hint`.
///
/// The encodings are those that `createpolicy.fractional.L2::<priority>.b64 p, 1.0;` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct CachePolicy(pub u64);

impl CachePolicy {
    /// No preference.
    pub const EVICT_NORMAL: Self = Self(0x1000_0000_0000_0000);
    /// First to leave: data that is read once.
    pub const EVICT_FIRST: Self = Self(0x12f0_0000_0000_0000);
    /// Last to leave: data that many blocks read, and that fits.
    pub const EVICT_LAST: Self = Self(0x14f0_0000_0000_0000);
}

/// `prefetch.tensormap [map];` Thread.
///
/// # Safety
/// `map` is a tensor map.
#[instruction]
pub unsafe fn prefetch_tensormap(map: *const u8) {
    ptx_asm!(
        sim(machine, at) { machine.prefetch_tensormap(at, map) }
        "prefetch.tensormap [{}];", in(reg64) map, options(nostack)
    );
}

macro_rules! tensor_copies {
    ($($rank:literal, $load:ident, $hinted:ident, $multicast:ident, $multicast_hinted:ident, $store:ident, $reduce:ident, $coordinates:literal, ($($index:literal),*);)*) => {
        $(
            #[doc = concat!("`cp.async.bulk.tensor.", $rank, "d.shared::cluster.global.mbarrier::complete_tx::bytes`. Thread.")]
            ///
            /// # Safety
            /// `map` has this rank; `destination` has room for its box, aligned as its swizzle demands; `barrier`
            /// expects the box's bytes.
            #[instruction]
            pub unsafe fn $load(destination: u32, map: *const u8, at: [i32; $rank], barrier: u32) {
                ptx_asm!(
                    sim(machine, here) { machine.tensor_load(here, destination, map, &at, barrier, None) }
                    concat!(
                        "cp.async.bulk.tensor.", $rank,
                        "d.shared::cluster.global.mbarrier::complete_tx::bytes [{destination}], [{map}, ",
                        $coordinates, "], [{barrier}];"
                    ),
                    $(in(reg32) at[$index],)*
                    destination = in(reg32) destination,
                    map = in(reg64) map,
                    barrier = in(reg32) barrier,
                    options(nostack)
                );
            }

            #[doc = concat!("As [`", stringify!($load), "`], with `.L2::cache_hint`. Thread.")]
            ///
            /// # Safety
            #[doc = concat!("As [`", stringify!($load), "`].")]
            #[instruction]
            pub unsafe fn $hinted(
                destination: u32,
                map: *const u8,
                at: [i32; $rank],
                barrier: u32,
                policy: CachePolicy,
            ) {
                ptx_asm!(
                    sim(machine, here) { machine.tensor_load(here, destination, map, &at, barrier, None) }
                    concat!(
                        "cp.async.bulk.tensor.", $rank,
                        "d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [{destination}], [{map}, ",
                        $coordinates, "], [{barrier}], {policy};"
                    ),
                    $(in(reg32) at[$index],)*
                    destination = in(reg32) destination,
                    map = in(reg64) map,
                    barrier = in(reg32) barrier,
                    policy = in(reg64) policy.0,
                    options(nostack)
                );
            }

            #[doc = concat!("As [`", stringify!($load), "`], with `.multicast::cluster`. Thread.")]
            ///
            /// # Safety
            #[doc = concat!("As [`", stringify!($load), "`], in every block of `mask`: the same offsets, a barrier in each.")]
            #[instruction]
            pub unsafe fn $multicast(destination: u32, map: *const u8, at: [i32; $rank], barrier: u32, mask: u16) {
                ptx_asm!(
                    sim(machine, here) { machine.tensor_load(here, destination, map, &at, barrier, Some(mask)) }
                    concat!(
                        "cp.async.bulk.tensor.", $rank,
                        "d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [{destination}], [{map}, ",
                        $coordinates, "], [{barrier}], {mask};"
                    ),
                    $(in(reg32) at[$index],)*
                    destination = in(reg32) destination,
                    map = in(reg64) map,
                    barrier = in(reg32) barrier,
                    mask = in(reg16) mask,
                    options(nostack)
                );
            }

            #[doc = concat!("As [`", stringify!($multicast), "`], with `.L2::cache_hint`. Thread.")]
            ///
            /// # Safety
            #[doc = concat!("As [`", stringify!($multicast), "`].")]
            #[instruction]
            pub unsafe fn $multicast_hinted(
                destination: u32,
                map: *const u8,
                at: [i32; $rank],
                barrier: u32,
                mask: u16,
                policy: CachePolicy,
            ) {
                ptx_asm!(
                    sim(machine, here) { machine.tensor_load(here, destination, map, &at, barrier, Some(mask)) }
                    concat!(
                        "cp.async.bulk.tensor.", $rank,
                        "d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint ",
                        "[{destination}], [{map}, ", $coordinates, "], [{barrier}], {mask}, {policy};"
                    ),
                    $(in(reg32) at[$index],)*
                    destination = in(reg32) destination,
                    map = in(reg64) map,
                    barrier = in(reg32) barrier,
                    mask = in(reg16) mask,
                    policy = in(reg64) policy.0,
                    options(nostack)
                );
            }

            #[doc = concat!("`cp.async.bulk.tensor.", $rank, "d.global.shared::cta.bulk_group`. Thread.")]
            ///
            /// # Safety
            /// `map` has this rank and its memory may be written; the box at `source` does not change until the
            /// thread's bulk group has been read.
            #[instruction]
            pub unsafe fn $store(map: *const u8, at: [i32; $rank], source: u32) {
                ptx_asm!(
                    sim(machine, here) { machine.tensor_store(here, map, &at, source, crate::sim::StoreKind::Replace) }
                    concat!(
                        "cp.async.bulk.tensor.", $rank, "d.global.shared::cta.bulk_group [{map}, ",
                        $coordinates, "], [{source}];"
                    ),
                    $(in(reg32) at[$index],)*
                    map = in(reg64) map,
                    source = in(reg32) source,
                    options(nostack)
                );
            }

            #[doc = concat!("`cp.reduce.async.bulk.tensor.", $rank, "d.global.shared::cta.add.bulk_group`. Thread.")]
            ///
            /// # Safety
            #[doc = concat!("As [`", stringify!($store), "`]. The order of additions from several blocks is not fixed.")]
            #[instruction]
            pub unsafe fn $reduce(map: *const u8, at: [i32; $rank], source: u32) {
                ptx_asm!(
                    sim(machine, here) { machine.tensor_store(here, map, &at, source, crate::sim::StoreKind::Add) }
                    concat!(
                        "cp.reduce.async.bulk.tensor.", $rank, "d.global.shared::cta.add.bulk_group [{map}, ",
                        $coordinates, "], [{source}];"
                    ),
                    $(in(reg32) at[$index],)*
                    map = in(reg64) map,
                    source = in(reg32) source,
                    options(nostack)
                );
            }
        )*
    };
}

tensor_copies! {
    1, cp_async_bulk_tensor_1d, cp_async_bulk_tensor_1d_hinted, cp_async_bulk_tensor_1d_multicast, cp_async_bulk_tensor_1d_multicast_hinted, cp_async_bulk_tensor_1d_store, cp_reduce_async_bulk_tensor_1d_add, "{{{0}}}", (0);
    2, cp_async_bulk_tensor_2d, cp_async_bulk_tensor_2d_hinted, cp_async_bulk_tensor_2d_multicast, cp_async_bulk_tensor_2d_multicast_hinted, cp_async_bulk_tensor_2d_store, cp_reduce_async_bulk_tensor_2d_add, "{{{0}, {1}}}", (0, 1);
    3, cp_async_bulk_tensor_3d, cp_async_bulk_tensor_3d_hinted, cp_async_bulk_tensor_3d_multicast, cp_async_bulk_tensor_3d_multicast_hinted, cp_async_bulk_tensor_3d_store, cp_reduce_async_bulk_tensor_3d_add, "{{{0}, {1}, {2}}}", (0, 1, 2);
    4, cp_async_bulk_tensor_4d, cp_async_bulk_tensor_4d_hinted, cp_async_bulk_tensor_4d_multicast, cp_async_bulk_tensor_4d_multicast_hinted, cp_async_bulk_tensor_4d_store, cp_reduce_async_bulk_tensor_4d_add, "{{{0}, {1}, {2}, {3}}}", (0, 1, 2, 3);
    5, cp_async_bulk_tensor_5d, cp_async_bulk_tensor_5d_hinted, cp_async_bulk_tensor_5d_multicast, cp_async_bulk_tensor_5d_multicast_hinted, cp_async_bulk_tensor_5d_store, cp_reduce_async_bulk_tensor_5d_add, "{{{0}, {1}, {2}, {3}, {4}}}", (0, 1, 2, 3, 4);
}
