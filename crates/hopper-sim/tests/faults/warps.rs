//! What a warp does together: a transpose by `ldmatrix` and `stmatrix`, and a sum by shuffles.

use hopper_sim::{Address, FindingKind, Memory, Schedule, launch};
use hopper_std::KernelSpec;
use hopper_std::ptx::matrix::{ldmatrix_x4, ldmatrix_x4_trans, stmatrix_x4};
use hopper_std::ptx::memory::{ld_global_v4_u32, ld_shared_v4_u32, st_global_u32, st_global_v4_u32, st_shared_v4_u32};
use hopper_std::ptx::special::dynamic_shared_address;
use hopper_std::ptx::warp::{bar_warp_sync, elect_sync, shfl_sync_bfly, shfl_sync_down, vote_sync_ballot};
use hopper_std::thread::thread_idx_x;

use crate::check::{Outcome, caught, right, wrong};

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    NotTransposed,
    RowOffByAWord,
    RowPastTheEnd,
    OneLaneDoesNotStore,
    NoSyncBeforeTheLoad,
    HalfTheWarpLoads,
    OneLaneSkipsAShuffle,
    TwoKindsOfShuffle,
    ElectedTwice,
    VoteAfterReturn,
    Overflows,
}

unsafe fn transpose(input: *const u32, output: *mut u32, sum: *mut u32, fault: Fault) {
    let lane = thread_idx_x();
    let base = dynamic_shared_address();
    if fault == Fault::VoteAfterReturn && lane >= 16 {
        return;
    }
    // Four matrices of 8 rows of 16 bytes; each lane brings one row.
    let row = base + lane * 16;
    if !(fault == Fault::OneLaneDoesNotStore && lane == 5) {
        st_shared_v4_u32(row, ld_global_v4_u32(input.add(lane as usize * 4)));
    }
    if fault == Fault::NoSyncBeforeTheLoad {
        let neighbour = base + (lane ^ 1) * 16;
        ld_shared_v4_u32(neighbour);
    }
    if fault == Fault::VoteAfterReturn {
        vote_sync_ballot(true); // those who are left
    }
    bar_warp_sync();
    let address = match fault {
        Fault::RowOffByAWord => row + 4,
        Fault::RowPastTheEnd => row + 16,
        _ => row,
    };
    let matrices = match fault {
        Fault::NotTransposed => ldmatrix_x4(address),
        Fault::HalfTheWarpLoads if lane >= 16 => [0; 4],
        _ => ldmatrix_x4_trans(address), // the load
    };
    stmatrix_x4(row, matrices);
    bar_warp_sync();
    st_global_v4_u32(output.add(lane as usize * 4), ld_shared_v4_u32(row));
    let mut total = lane;
    for step in [16, 8, 4, 2, 1] {
        if fault == Fault::OneLaneSkipsAShuffle && step == 1 && lane == 31 {
            continue;
        }
        if fault == Fault::TwoKindsOfShuffle && lane >= 16 {
            total += shfl_sync_down(total, step);
        } else {
            total += shfl_sync_bfly(total, step); // the sum
        }
    }
    if fault == Fault::ElectedTwice && elect_sync() {
        elect_sync(); // by one lane
    }
    if fault == Fault::Overflows {
        let table = [1_u32; 16];
        total = table[core::hint::black_box(lane as usize)];
    }
    if elect_sync() {
        st_global_u32(sum, [total]);
    }
}

fn run(fault: Fault) -> impl Fn(Schedule) -> Outcome {
    move |schedule| {
        let spec = KernelSpec::new("transpose", 32, 1, 1, 512);
        let halves: Vec<u16> = (0..256).collect();
        let mut memory = Memory::new();
        let input = Address::new(memory.upload("input", &halves).cast::<u32>());
        let output = memory.upload("output", &[0_u16; 256]);
        let sum = memory.upload("sum", &[0_u32]);
        let (out, total) = (Address::new(output.cast::<u32>()), Address::new(sum));
        let kernel = || unsafe { transpose(input.get(), out.get(), total.get(), fault) };
        let report = launch(&spec, [1, 1, 1], &memory, schedule, kernel);
        let turned: Vec<u16> = (0..256).map(|at| at / 64 * 64 + at % 8 * 8 + at / 8 % 8).collect();
        (report, memory.download(output, 256) == turned && memory.download(sum, 1) == [31 * 16])
    }
}

#[test]
fn the_right_one() {
    right(run(Fault::None));
}

#[test]
fn wrong_rows() {
    wrong(run(Fault::NotTransposed));
    caught(FindingKind::Misaligned, "// the load", "is no multiple of 16", run(Fault::RowOffByAWord));
    caught(FindingKind::OutOfBounds, "// the load", "16 bytes at byte 512 of 512", run(Fault::RowPastTheEnd));
    caught(FindingKind::UninitialisedRead, "// the load", "byte 80 of", run(Fault::OneLaneDoesNotStore));
    caught(FindingKind::UninitialisedRead, "ld_shared_v4_u32(neighbour)", "", run(Fault::NoSyncBeforeTheLoad));
}

#[test]
fn divergence() {
    let kind = FindingKind::Divergence;
    let words = "all must execute the same instruction";
    caught(kind, "", "ldmatrix", run(Fault::HalfTheWarpLoads));
    caught(kind, "", words, run(Fault::OneLaneSkipsAShuffle));
    caught(kind, "", words, run(Fault::TwoKindsOfShuffle));
    caught(kind, "", "elect.sync", run(Fault::ElectedTwice));
    let words = "vote.sync.ballot waits for all threads of its warp, but threads 16-31 are at the end of the kernel";
    caught(kind, "// those who are left", words, run(Fault::VoteAfterReturn));
}

#[test]
fn a_panic() {
    caught(FindingKind::Panic, "", "index out of bounds: the len is 16", run(Fault::Overflows));
}
