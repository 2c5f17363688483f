//! Barriers of a block by number: a warp group that hands a buffer to another, and takes it back.

use hopper_sim::{Address, FindingKind, Memory, Schedule, launch};
use hopper_std::KernelSpec;
use hopper_std::ptx::barrier::{barrier_arrive, barrier_sync, barrier_sync_all};
use hopper_std::ptx::memory::{ld_shared_u32, st_global_u32, st_shared_u32};
use hopper_std::ptx::special::dynamic_shared_address;
use hopper_std::thread::thread_idx_x;

use crate::check::{Outcome, caught, right};

const THREADS: u32 = 256;
const ROUNDS: u32 = 4;
const WRITTEN: u32 = 1;
const READ: u32 = 2;
const OWN: u32 = 3;

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    OneWarpDoesNotArrive,
    OneWarpLeavesEarly,
    CountsOfTwoSizes,
    CountOfWriters,
    CountNoMultipleOfAWarp,
    OneIdForBoth,
    OneIdForTwoGroups,
    SeventeenthBarrier,
    AllWaitInOneBranch,
    ReadersDoNotWait,
    WritersDoNotWait,
}

unsafe fn hand_over(output: *mut u32, fault: Fault) {
    let thread = thread_idx_x();
    let base = dynamic_shared_address();
    let lane = thread % 128;
    let (written, read) = match fault {
        Fault::OneIdForBoth => (WRITTEN, WRITTEN),
        Fault::SeventeenthBarrier => (16, READ),
        _ => (WRITTEN, READ),
    };
    for round in 0..ROUNDS {
        if thread < 128 {
            let all_but_one_warp = fault != Fault::OneWarpLeavesEarly || round < 2 || lane >= 32;
            if !all_but_one_warp {
                return;
            }
            st_shared_u32(base + lane * 4, [round * 1000 + lane]);
            // The writers among themselves: their order does not matter to anyone, but their barrier is their own.
            barrier_sync(OWN, 128);
            match fault {
                Fault::OneWarpDoesNotArrive if lane >= 96 => {}
                Fault::CountsOfTwoSizes => barrier_arrive(written, THREADS - 32),
                Fault::CountOfWriters => barrier_arrive(written, 128),
                Fault::CountNoMultipleOfAWarp => barrier_arrive(written, 250),
                _ => barrier_arrive(written, THREADS),
            }
            if fault == Fault::AllWaitInOneBranch {
                barrier_sync_all();
            }
            if fault != Fault::WritersDoNotWait {
                barrier_sync(read, THREADS);
            }
        } else {
            if fault == Fault::OneIdForTwoGroups {
                barrier_sync(OWN, 128); // the readers
            }
            if fault != Fault::ReadersDoNotWait {
                let count = if fault == Fault::CountOfWriters { 128 } else { THREADS };
                barrier_sync(written, count); // for what is written
            }
            let [value] = ld_shared_u32(base + (127 - lane) * 4);
            st_global_u32(output.add((round * 128 + 127 - lane) as usize), [value]);
            barrier_arrive(read, THREADS);
        }
    }
}

fn run(fault: Fault) -> impl Fn(Schedule) -> Outcome {
    move |schedule| {
        let spec = KernelSpec::new("hand_over", THREADS, 1, 1, 512);
        let mut memory = Memory::new();
        let output = memory.upload("output", &[0_u32; (ROUNDS * 128) as usize]);
        let out = Address::new(output);
        let report = launch(&spec, [1, 1, 1], &memory, schedule, || unsafe { hand_over(out.get(), fault) });
        let expected: Vec<u32> = (0..ROUNDS * 128).map(|at| at / 128 * 1000 + at % 128).collect();
        (report, memory.download(output, expected.len()) == expected)
    }
}

#[test]
fn the_right_one() {
    right(run(Fault::None));
}

#[test]
fn missing_warps() {
    let kind = FindingKind::Deadlock;
    let words = "threads 128-255 wait for barrier 1, where 224 of 256 threads have arrived";
    caught(kind, "", words, run(Fault::OneWarpDoesNotArrive));
    caught(kind, "", "wait for barrier 3, where 96 of 128 threads have arrived", run(Fault::OneWarpLeavesEarly));
    caught(kind, "", "wait for barrier 0, where 128 of 256 threads have arrived", run(Fault::AllWaitInOneBranch));
}

#[test]
fn barriers_in_collision() {
    let kind = FindingKind::BarrierCollision;
    caught(kind, "barrier_", "barrier 1 of 256 threads, but of 224 at", run(Fault::CountsOfTwoSizes));
    caught(kind, "barrier_", "barrier 1", run(Fault::OneIdForBoth));
    caught(kind, "barrier_sync(OWN, 128)", "barrier 3 is used by warps", run(Fault::OneIdForTwoGroups));
    caught(kind, "// for what is written", "barrier 1 is used by warps", run(Fault::CountOfWriters));
}

#[test]
fn wrong_operands() {
    caught(FindingKind::BadOperand, "barrier_", "barrier 16 of 256 threads", run(Fault::SeventeenthBarrier));
    caught(FindingKind::BadOperand, "barrier_", "barrier 1 of 250 threads", run(Fault::CountNoMultipleOfAWarp));
}

#[test]
fn missing_waits() {
    caught(FindingKind::UninitialisedRead, "ld_shared_u32", "was never written", run(Fault::ReadersDoNotWait));
    wrong_somewhere(run(Fault::WritersDoNotWait));
}

/// Some schedule comes to wrong numbers or a finding: ordinary accesses are not checked for races.
fn wrong_somewhere(run: impl Fn(Schedule) -> Outcome) {
    let shows = |schedule| {
        let (report, numbers) = run(schedule);
        !numbers || !report.findings.is_empty()
    };
    assert!(Schedule::all(3).any(shows), "the fault shows nowhere");
}
