//! Two blocks that load half of each tile for both, through two slots.

use hopper_sim::{Address, FindingKind, Memory, Schedule, launch};
use hopper_std::KernelSpec;
use hopper_std::ptx::barrier::barrier_sync_all;
use hopper_std::ptx::bulk::{cp_async_bulk_global_to_shared, cp_async_bulk_global_to_shared_multicast};
use hopper_std::ptx::cluster::{barrier_cluster_arrive, barrier_cluster_wait, cluster_ctarank, mapa};
use hopper_std::ptx::fence::fence_mbarrier_init_release_cluster;
use hopper_std::ptx::mbarrier::{mbarrier_arrive, mbarrier_arrive_cluster, mbarrier_arrive_expect_tx};
use hopper_std::ptx::memory::{ld_shared_u32, st_global_u32};
use hopper_std::ptx::warp::bar_warp_sync;
use hopper_std::thread::thread_idx_x;

use crate::check::{Outcome, caught, right, wait};
use crate::slots::Slots;

const SLOTS: u32 = 2;
const TILES: u32 = 5;
const READERS: u32 = 64;
const TILE_BYTES: u32 = READERS * 4;

type Ring = Slots<SLOTS, TILE_BYTES>;

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    NoClusterBarrierFirst,
    NoClusterBarrierLast,
    ExpectsOwnHalf,
    ReleasesOwnBlockOnly,
    CountsOwnReaders,
    /// One lane releases for its warp, of which others may still be reading.
    ReleasesBeforeItsWarp,
    MulticastToThree,
    NoMulticast,
    ArrivesTwice,
    OneWarpDoesNotArrive,
    OneWarpIsElsewhere,
    WaitsTwice,
    BarrierOfTheOtherBlock,
    ReleasesByTheBlocksForm,
    ReadsTheOtherBlock,
    ThirdRank,
}

unsafe fn shared_tiles(input: *const u32, output: *mut u32, fault: Fault) {
    let (thread, rank) = (thread_idx_x(), cluster_ctarank());
    let ring = Ring::new();
    if thread == 0 {
        ring.init(SLOTS, if fault == Fault::CountsOwnReaders { 2 } else { 4 });
        fence_mbarrier_init_release_cluster();
    }
    if fault == Fault::OneWarpIsElsewhere && thread >= 64 {
        barrier_sync_all();
    }
    if !(fault == Fault::OneWarpDoesNotArrive && thread >= 64) {
        barrier_cluster_arrive();
    }
    if fault == Fault::ArrivesTwice {
        barrier_cluster_arrive(); // again
    }
    if fault != Fault::NoClusterBarrierFirst {
        barrier_cluster_wait(); // first
    }
    if fault == Fault::WaitsTwice {
        barrier_cluster_wait(); // twice
    }
    if thread == 0 {
        for tile in 0..TILES {
            wait(ring.empty(tile), ring.parity(tile) ^ 1);
            let half = TILE_BYTES / 2;
            mbarrier_arrive_expect_tx(ring.full(tile), if fault == Fault::ExpectsOwnHalf { half } else { TILE_BYTES });
            let source = input.add((tile * READERS + rank * READERS / 2) as usize).cast();
            let slot = ring.slot(tile) + rank * half;
            if matches!(fault, Fault::NoMulticast | Fault::BarrierOfTheOtherBlock) {
                let full = ring.full(tile);
                let barrier = if fault == Fault::NoMulticast { full } else { mapa(full, rank ^ 1) };
                cp_async_bulk_global_to_shared(slot, source, half, barrier);
            } else {
                let mask = if fault == Fault::MulticastToThree { 0b111 } else { 0b11 };
                cp_async_bulk_global_to_shared_multicast(slot, source, half, ring.full(tile), mask);
            }
        }
    }
    if thread >= 32 {
        let lane = thread - 32;
        for tile in 0..TILES {
            wait(ring.full(tile), ring.parity(tile));
            let address = ring.slot(tile) + lane * 4;
            let address = match fault {
                Fault::ReadsTheOtherBlock => mapa(address, rank ^ 1),
                Fault::ThirdRank => mapa(address, rank + 1),
                _ => address,
            };
            let [value] = ld_shared_u32(address);
            st_global_u32(output.add(((rank * TILES + tile) * READERS + lane) as usize), [value]);
            if fault != Fault::ReleasesBeforeItsWarp {
                bar_warp_sync();
            }
            if lane.is_multiple_of(32) {
                match fault {
                    Fault::ReleasesOwnBlockOnly | Fault::CountsOwnReaders => mbarrier_arrive(ring.empty(tile)),
                    Fault::ReleasesByTheBlocksForm => mbarrier_arrive(mapa(ring.empty(tile), 0)),
                    _ => {
                        mbarrier_arrive_cluster(mapa(ring.empty(tile), 0));
                        mbarrier_arrive_cluster(mapa(ring.empty(tile), 1));
                    }
                }
            }
        }
    }
    if fault != Fault::NoClusterBarrierLast {
        barrier_cluster_arrive();
        barrier_cluster_wait();
    }
}

fn run(fault: Fault) -> impl Fn(Schedule) -> Outcome {
    move |schedule| {
        let spec = KernelSpec::new("shared_tiles", 32 + READERS, 1, 2, Ring::BYTES);
        let numbers: Vec<u32> = (0..TILES * READERS).map(|index| index * 5 + 2).collect();
        let mut memory = Memory::new();
        let input = Address::new(memory.upload("input", &numbers));
        let output = memory.upload("output", &vec![0_u32; 2 * numbers.len()]);
        let out = Address::new(output);
        let report =
            launch(&spec, [2, 1, 1], &memory, schedule, || unsafe { shared_tiles(input.get(), out.get(), fault) });
        (report, memory.download(output, 2 * numbers.len()) == [numbers.clone(), numbers].concat())
    }
}

const LOAD: &str = "cp_async_bulk_global_to_shared";

#[test]
fn the_right_one() {
    right(run(Fault::None));
}

#[test]
fn missing_cluster_barriers() {
    let kind = FindingKind::BadBarrier;
    caught(kind, LOAD, "no mbarrier is initialised at byte 512 of block", run(Fault::NoClusterBarrierFirst));
    caught(kind, "mbarrier_arrive_cluster", "of the cluster has ended", run(Fault::NoClusterBarrierLast));
    caught(
        FindingKind::ArrivalOverrun,
        "// again",
        "a second arrival at the cluster's barrier",
        run(Fault::ArrivesTwice),
    );
    let words = "the cluster's barrier, where 128 of 192 threads have arrived";
    caught(FindingKind::Deadlock, "", words, run(Fault::OneWarpIsElsewhere));
    let words = "a wait at the cluster's barrier, with no arrival before it";
    caught(kind, "// first", words, run(Fault::OneWarpDoesNotArrive));
    caught(kind, "// twice", words, run(Fault::WaitsTwice));
}

#[test]
fn wrong_counts() {
    let kind = FindingKind::TransactionBytes;
    caught(kind, "", "", run(Fault::ExpectsOwnHalf));
    let words = "expects 128 bytes more than any copy brings";
    caught(kind, "wait(ring.full(tile)", words, run(Fault::NoMulticast));
    let words = "2 of 4 arrivals and 0 bytes are outstanding";
    caught(FindingKind::Deadlock, "wait(", words, run(Fault::ReleasesOwnBlockOnly));
    caught(FindingKind::ReadInFlight, "ld_shared_u32", "the copy issued at", run(Fault::ReleasesBeforeItsWarp));
    // A block that is ahead writes into a slot which the other block has not even filled.
    let words = "is being written by the copy issued at";
    caught(FindingKind::OverwriteInFlight, LOAD, words, run(Fault::CountsOwnReaders));
}

#[test]
fn wrong_ranks() {
    caught(FindingKind::BadOperand, LOAD, "a multicast to block 2 of the cluster", run(Fault::MulticastToThree));
    caught(
        FindingKind::OutOfBounds,
        "ld_shared_u32",
        "an address of the cluster's window",
        run(Fault::ReadsTheOtherBlock),
    );
    let words = "a load into block 0 completes at a barrier of block 1";
    caught(FindingKind::BadOperand, LOAD, words, run(Fault::BarrierOfTheOtherBlock));
    let words = "an address of the cluster's window, this instruction takes the block's";
    caught(FindingKind::OutOfBounds, "mbarrier_arrive(mapa", words, run(Fault::ReleasesByTheBlocksForm));
    caught(FindingKind::BadOperand, "mapa(address, rank + 1)", "block 2 of a cluster of 2", run(Fault::ThirdRank));
}
