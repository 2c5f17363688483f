//! A ring of three slots: one thread copies tiles in, two warps read them, eight tiles.

use hopper_sim::{Address, FindingKind, Memory, Schedule, launch};
use hopper_std::KernelSpec;
use hopper_std::ptx::barrier::barrier_sync_all;
use hopper_std::ptx::bulk::cp_async_bulk_global_to_shared;
use hopper_std::ptx::fence::fence_mbarrier_init_release_cluster;
use hopper_std::ptx::mbarrier::{mbarrier_arrive, mbarrier_arrive_expect_tx, mbarrier_init};
use hopper_std::ptx::memory::{ld_shared_u32, st_global_u32};
use hopper_std::thread::thread_idx_x;

use crate::check::{Outcome, caught, right, wait};
use crate::slots::Slots;

const SLOTS: u32 = 3;
const TILES: u32 = 8;
const READERS: u32 = 64;
const TILE_BYTES: u32 = READERS * 4;

type Ring = Slots<SLOTS, TILE_BYTES>;

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// The readers' parity is always that of the first lap.
    ReaderParityNeverFlips,
    /// The readers' parity flips after two tiles, though a lap has three.
    ReaderParityFlipsEarly,
    /// The writer waits for a release before the first lap.
    WriterParityNotInverted,
    /// The writer's parity is always that of the first lap, in which all slots are free.
    WriterParityNeverFlips,
    WriterDoesNotWait,
    ExpectsTooLittle,
    ExpectsTooMuch,
    /// The bytes are announced for the first lap only.
    ExpectsNothingLater,
    ReadsNextSlot,
    CopiesToNextSlot,
    SignalsNextSlot,
    ReleasesBeforeReading,
    ReleasesTwice,
    OneLaneReleases,
    LastSlotNotInitialised,
    InitialisedTwice,
    InitialisedWithoutSync,
    InitialisedWithoutFence,
    FenceBeforeTheInitialisation,
    ReadersDoNotWait,
    OneTileTooMany,
    PastTheEnd,
    SourceOffByAWord,
    SlotPastTheEnd,
    SlotOverABarrier,
    BarrierOffByAWord,
}

unsafe fn ring(input: *const u32, output: *mut u32, sums: *mut u32, fault: Fault) {
    let thread = thread_idx_x();
    let ring = Ring::new();
    if thread == 0 {
        if fault == Fault::FenceBeforeTheInitialisation {
            fence_mbarrier_init_release_cluster();
        }
        let initialised = if fault == Fault::LastSlotNotInitialised { SLOTS - 1 } else { SLOTS };
        ring.init(initialised, READERS);
        if fault == Fault::InitialisedTwice {
            mbarrier_init(ring.full(0), 2);
        }
        if !matches!(fault, Fault::InitialisedWithoutFence | Fault::FenceBeforeTheInitialisation) {
            fence_mbarrier_init_release_cluster();
        }
    }
    if fault != Fault::InitialisedWithoutSync {
        barrier_sync_all();
    }
    if thread == 0 {
        let tiles = if fault == Fault::OneTileTooMany { TILES + 1 } else { TILES };
        for tile in 0..tiles {
            let parity = match fault {
                Fault::WriterParityNotInverted => ring.parity(tile),
                Fault::WriterParityNeverFlips => 1,
                _ => ring.parity(tile) ^ 1,
            };
            if fault != Fault::WriterDoesNotWait {
                wait(ring.empty(tile), parity);
            }
            let bytes = match fault {
                Fault::ExpectsTooLittle => TILE_BYTES - 16,
                Fault::ExpectsTooMuch => TILE_BYTES + 16,
                Fault::ExpectsNothingLater if tile >= SLOTS => 0,
                _ => TILE_BYTES,
            };
            mbarrier_arrive_expect_tx(ring.full(tile), bytes);
            let slot = match fault {
                Fault::CopiesToNextSlot => ring.slot(tile + 1),
                Fault::SlotOverABarrier => ring.slot(2) + 16,
                Fault::SlotPastTheEnd => ring.base + Ring::BYTES as u32 - 64,
                _ => ring.slot(tile),
            };
            let tile_at = match fault {
                Fault::PastTheEnd => tile + 1,
                _ => tile % TILES,
            };
            let off = usize::from(fault == Fault::SourceOffByAWord);
            let source = input.wrapping_add((tile_at * READERS) as usize + off).cast();
            let barrier = match fault {
                Fault::SignalsNextSlot => ring.full(tile + 1),
                Fault::BarrierOffByAWord => ring.full(tile) + 4,
                _ => ring.full(tile),
            };
            cp_async_bulk_global_to_shared(slot, source, TILE_BYTES, barrier);
        }
    }
    if thread >= 32 {
        let lane = thread - 32;
        let mut sum = 0;
        for tile in 0..TILES {
            let parity = match fault {
                Fault::ReaderParityNeverFlips => 0,
                Fault::ReaderParityFlipsEarly => tile / (SLOTS - 1) % 2,
                _ => ring.parity(tile),
            };
            if fault != Fault::ReadersDoNotWait {
                wait(ring.full(tile), parity);
            }
            if fault == Fault::ReleasesBeforeReading {
                mbarrier_arrive(ring.empty(tile));
            }
            let slot = if fault == Fault::ReadsNextSlot { ring.slot(tile + 1) } else { ring.slot(tile) };
            let [value] = ld_shared_u32(slot + lane * 4);
            sum += value;
            st_global_u32(output.add((tile * READERS + lane) as usize), [value]);
            match fault {
                Fault::ReleasesBeforeReading => {}
                Fault::OneLaneReleases if !lane.is_multiple_of(32) => {}
                _ => mbarrier_arrive(ring.empty(tile)),
            }
            if fault == Fault::ReleasesTwice {
                mbarrier_arrive(ring.empty(tile)); // the second release
            }
        }
        st_global_u32(sums.add(lane as usize), [sum]);
    }
}

fn run(fault: Fault) -> impl Fn(Schedule) -> Outcome {
    move |schedule| {
        let spec = KernelSpec::new("ring", 32 + READERS, 1, 1, Ring::BYTES);
        let numbers: Vec<u32> = (0..TILES * READERS).map(|index| index * 7 + 1).collect();
        let mut memory = Memory::new();
        let input = Address::new(memory.upload("input", &numbers));
        let output = memory.upload("output", &vec![0_u32; numbers.len()]);
        let sums = memory.upload("sums", &[0_u32; READERS as usize]);
        let (out, sum) = (Address::new(output), Address::new(sums));
        let report =
            launch(&spec, [1, 1, 1], &memory, schedule, || unsafe { ring(input.get(), out.get(), sum.get(), fault) });
        let expected: Vec<u32> =
            (0..READERS).map(|lane| (0..TILES).map(|tile| numbers[(tile * READERS + lane) as usize]).sum()).collect();
        let same = memory.download(output, numbers.len()) == numbers;
        (report, same && memory.download(sums, READERS as usize) == expected)
    }
}

#[test]
fn the_right_one() {
    right(run(Fault::None));
}

#[test]
fn wrong_phases() {
    caught(FindingKind::ReadInFlight, "ld_shared_u32(slot", "the copy issued at", run(Fault::ReaderParityNeverFlips));
    caught(FindingKind::UninitialisedRead, "ld_shared_u32(slot", "", run(Fault::ReaderParityFlipsEarly));
    let words =
        "phase parity 0 of the mbarrier at byte 792 of block 0 (0 phases complete; 64 of 64 arrivals and 0 bytes";
    caught(FindingKind::Deadlock, "wait(ring.empty(tile), parity)", words, run(Fault::WriterParityNotInverted));
    let overrun = "counts 1 arrivals a phase";
    caught(FindingKind::ArrivalOverrun, "mbarrier_arrive_expect_tx", overrun, run(Fault::WriterParityNeverFlips));
    caught(FindingKind::ArrivalOverrun, "mbarrier_arrive_expect_tx", overrun, run(Fault::WriterDoesNotWait));
    caught(FindingKind::UninitialisedRead, "ld_shared_u32(slot", "never written", run(Fault::ReadersDoNotWait));
}

#[test]
fn wrong_byte_counts() {
    let kind = FindingKind::TransactionBytes;
    let words = "the mbarrier at byte 768 of block 0 got 16 bytes more than it was told to expect";
    caught(kind, "cp_async_bulk_global_to_shared(slot", words, run(Fault::ExpectsTooLittle));
    caught(
        kind,
        "wait(ring.full(tile), parity)",
        "expects 16 bytes more than any copy brings",
        run(Fault::ExpectsTooMuch),
    );
    // The phase is complete before the copy is even issued, so that readers meet it.
    let words = "is being written by the copy issued at";
    caught(FindingKind::ReadInFlight, "ld_shared_u32(slot", words, run(Fault::ExpectsNothingLater));
    caught(kind, "wait(ring.full(tile), parity)", "expects 256 bytes more than any copy", run(Fault::SignalsNextSlot));
}

#[test]
fn shifted_slots() {
    caught(FindingKind::ReadInFlight, "ld_shared_u32(slot", "the copy issued at", run(Fault::ReadsNextSlot));
    caught(FindingKind::UninitialisedRead, "ld_shared_u32(slot", "byte 0 of shared", run(Fault::CopiesToNextSlot));
}

#[test]
fn wrong_releases() {
    caught(FindingKind::ReadInFlight, "ld_shared_u32(slot", "", run(Fault::ReleasesBeforeReading));
    caught(FindingKind::ArrivalOverrun, "// the second release", "counts 64 arrivals", run(Fault::ReleasesTwice));
    caught(
        FindingKind::Deadlock,
        "wait(",
        "62 of 64 arrivals and 0 bytes are outstanding",
        run(Fault::OneLaneReleases),
    );
}

#[test]
fn wrong_barriers() {
    let kind = FindingKind::BadBarrier;
    caught(kind, "wait(", "no mbarrier is initialised at byte", run(Fault::LastSlotNotInitialised));
    caught(
        kind,
        "mbarrier_init(ring.full(0), 2)",
        "the mbarrier at byte 768 of block 0 is initialised twice",
        run(Fault::InitialisedTwice),
    );
    caught(kind, "wait(ring.full(tile), parity)", "no mbarrier is initialised", run(Fault::InitialisedWithoutSync));
    caught(FindingKind::Misaligned, "cp_async_bulk", "no multiple of 8", run(Fault::BarrierOffByAWord));
}

#[test]
fn barriers_that_copies_do_not_see() {
    let words = "the mbarrier at byte 768 of block 0 was initialised by thread 0, with no fence.mbarrier_init";
    caught(FindingKind::MissingProxyFence, "cp_async_bulk", words, run(Fault::InitialisedWithoutFence));
    caught(FindingKind::MissingProxyFence, "cp_async_bulk", words, run(Fault::FenceBeforeTheInitialisation));
}

#[test]
fn wrong_addresses() {
    let words = "a write over the mbarrier at byte 768 of block 0";
    caught(FindingKind::BadBarrier, "cp_async_bulk", words, run(Fault::SlotOverABarrier));
    caught(FindingKind::OutOfBounds, "cp_async_bulk", "256 bytes at byte 2048 of `input`", run(Fault::PastTheEnd));
    caught(FindingKind::Misaligned, "cp_async_bulk", "multiples of 16", run(Fault::SourceOffByAWord));
    caught(FindingKind::OutOfBounds, "cp_async_bulk", "of shared memory", run(Fault::SlotPastTheEnd));
}

#[test]
fn what_is_left_at_the_end() {
    caught(FindingKind::Unfinished, "cp_async_bulk", "before this copy has arrived", run(Fault::OneTileTooMany));
}
