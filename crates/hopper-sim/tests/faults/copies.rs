//! Copies by threads: `cp.async` through three buffers, with groups or with an mbarrier.

use hopper_sim::{Address, FindingKind, Memory, Schedule, launch};
use hopper_std::KernelSpec;
use hopper_std::ptx::async_copy::{
    cp_async_cg_16, cp_async_commit_group, cp_async_mbarrier_arrive_noinc, cp_async_wait_group,
};
use hopper_std::ptx::barrier::barrier_sync_all;
use hopper_std::ptx::mbarrier::{mbarrier_arrive, mbarrier_init};
use hopper_std::ptx::memory::{ld_shared_v4_u32, st_global_v4_u32};
use hopper_std::ptx::special::dynamic_shared_address;
use hopper_std::thread::thread_idx_x;

use crate::check::{Outcome, caught, right, wait, wrong};

const THREADS: u32 = 64;
const TILES: u32 = 7;
const BUFFERS: u32 = 3;
const TILE_BYTES: u32 = THREADS * 16;

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    WaitOffByOne,
    NoCommitInTheTail,
    NoCommit,
    NoBarrierAfterTheWait,
    NoBarrierAfterTheRead,
    NextBuffer,
    SourceOffByAWord,
    PastTheEnd,
    HalfOfTheBytes,
}

/// Every thread copies 16 bytes of each tile, and writes its neighbour's.
unsafe fn copies(input: *const u32, output: *mut u32, fault: Fault) {
    let thread = thread_idx_x();
    let base = dynamic_shared_address();
    let buffer_of = |tile: u32| base + tile % BUFFERS * TILE_BYTES;
    let fetch = |tile: u32| {
        let off = match fault {
            Fault::SourceOffByAWord => 1,
            Fault::PastTheEnd => THREADS as usize * 4,
            _ => 0,
        };
        let source = input.wrapping_add(((tile * THREADS + thread) * 4) as usize + off);
        let bytes = if fault == Fault::HalfOfTheBytes { 8 } else { 16 };
        cp_async_cg_16(buffer_of(tile) + thread * 16, source.cast(), bytes);
    };
    for tile in 0..BUFFERS - 1 {
        fetch(tile);
        if fault != Fault::NoCommit {
            cp_async_commit_group();
        }
    }
    for tile in 0..TILES {
        let next = tile + BUFFERS - 1;
        if next < TILES {
            fetch(next);
        }
        if fault != Fault::NoCommit && (next < TILES || fault != Fault::NoCommitInTheTail) {
            cp_async_commit_group();
        }
        match fault {
            Fault::WaitOffByOne => cp_async_wait_group::<3>(),
            _ => cp_async_wait_group::<2>(),
        }
        if fault != Fault::NoBarrierAfterTheWait {
            barrier_sync_all();
        }
        let buffer = if fault == Fault::NextBuffer { buffer_of(tile + 1) } else { buffer_of(tile) };
        let neighbour = (thread + 32) % THREADS;
        let words = ld_shared_v4_u32(buffer + neighbour * 16);
        st_global_v4_u32(output.add(((tile * THREADS + neighbour) * 4) as usize), words);
        if fault != Fault::NoBarrierAfterTheRead {
            barrier_sync_all();
        }
    }
}

/// One tile, whose arrival an mbarrier counts.
#[derive(Clone, Copy, PartialEq)]
enum Counted {
    Right,
    OrdinaryArrival,
    CountsOneMore,
    CountsOneWarp,
    NoWait,
}

unsafe fn counted(input: *const u32, output: *mut u32, fault: Counted) {
    let thread = thread_idx_x();
    let base = dynamic_shared_address();
    let barrier = base + TILE_BYTES;
    if thread == 0 {
        let count = match fault {
            Counted::CountsOneMore => THREADS + 1,
            Counted::CountsOneWarp => 32,
            _ => THREADS,
        };
        mbarrier_init(barrier, count);
    }
    barrier_sync_all();
    cp_async_cg_16(base + thread * 16, input.add(thread as usize * 4).cast(), 16);
    if fault == Counted::OrdinaryArrival {
        mbarrier_arrive(barrier);
    } else {
        cp_async_mbarrier_arrive_noinc(barrier);
    }
    if fault != Counted::NoWait {
        wait(barrier, 0);
    }
    let neighbour = (thread + 32) % THREADS;
    let words = ld_shared_v4_u32(base + neighbour * 16);
    st_global_v4_u32(output.add(neighbour as usize * 4), words);
}

fn run_of(tiles: u32, kernel: impl Fn(*const u32, *mut u32) + Sync) -> impl Fn(Schedule) -> Outcome {
    move |schedule| {
        let spec = KernelSpec::new("copies", THREADS, 1, 1, (BUFFERS * TILE_BYTES) as usize);
        let numbers: Vec<u32> = (0..tiles * THREADS * 4).map(|index| index * 3 + 5).collect();
        let mut memory = Memory::new();
        let input = Address::new(memory.upload("input", &numbers));
        let output = memory.upload("output", &vec![0_u32; numbers.len()]);
        let out = Address::new(output);
        let report = launch(&spec, [1, 1, 1], &memory, schedule, || kernel(input.get(), out.get()));
        (report, memory.download(output, numbers.len()) == numbers)
    }
}

fn run(fault: Fault) -> impl Fn(Schedule) -> Outcome {
    run_of(TILES, move |input, output| unsafe { copies(input, output, fault) })
}

fn run_counted(fault: Counted) -> impl Fn(Schedule) -> Outcome {
    run_of(1, move |input, output| unsafe { counted(input, output, fault) })
}

const READ: &str = "ld_shared_v4_u32(buffer";

#[test]
fn the_right_ones() {
    right(run(Fault::None));
    right(run_counted(Counted::Right));
}

#[test]
fn wrong_waits() {
    let (kind, words) = (FindingKind::ReadInFlight, "is being written by the copy issued at");
    caught(kind, READ, words, run(Fault::WaitOffByOne));
    caught(kind, READ, words, run(Fault::NoCommitInTheTail));
    caught(kind, READ, words, run(Fault::NoCommit));
    // The warps are not held together: the other one may not even have asked for its part.
    caught(FindingKind::UninitialisedRead, READ, "", run(Fault::NoBarrierAfterTheWait));
    caught(kind, READ, words, run(Fault::NoBarrierAfterTheRead));
    caught(kind, READ, words, run(Fault::NextBuffer));
    caught(kind, "ld_shared_v4_u32(base", words, run_counted(Counted::OrdinaryArrival));
    caught(FindingKind::UninitialisedRead, "ld_shared_v4_u32(base", "", run_counted(Counted::NoWait));
}

#[test]
fn wrong_counts() {
    let words = "(0 phases complete; 1 of 65 arrivals and 0 bytes are outstanding)";
    caught(FindingKind::Deadlock, "wait(barrier, 0)", words, run_counted(Counted::CountsOneMore));
    caught(FindingKind::ReadInFlight, "ld_shared_v4_u32(base", "", run_counted(Counted::CountsOneWarp));
}

#[test]
fn wrong_sources() {
    caught(FindingKind::Misaligned, "cp_async_cg_16(buffer_of", "a copy of 16 bytes", run(Fault::SourceOffByAWord));
    caught(FindingKind::OutOfBounds, "cp_async_cg_16(buffer_of", "of `input`", run(Fault::PastTheEnd));
    wrong(run(Fault::HalfOfTheBytes));
}
