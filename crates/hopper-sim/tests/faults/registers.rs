//! Budgets of registers: what a split among warp groups may ask for. And budgets of shared memory.

use hopper_sim::{FindingKind, Memory, Schedule, launch};
use hopper_std::KernelSpec;
use hopper_std::ptx::barrier::barrier_sync_all;
use hopper_std::ptx::memory::{ld_shared_u32, st_shared_u32};
use hopper_std::ptx::registers::{setmaxnreg_dec, setmaxnreg_inc};
use hopper_std::ptx::special::dynamic_shared_address;
use hopper_std::thread::thread_idx_x;

use crate::check::{Outcome, caught, right};

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    Splits40And240,
    Splits32And240,
    Splits24And168,
    NobodyGives,
    OneWarpDoesNotGive,
    NoMultipleOfEight,
    Under24,
    IncreasesToFewer,
    DecreasesToMore,
    OneLaneAsks,
    OneWarpDoesNotTake,
    OneWarpTakesFewer,
}

/// One warp group gives registers, the others take them: 40 and 232 of three, 32 and 152 of four.
unsafe fn split(fault: Fault, groups: u32) {
    let thread = thread_idx_x();
    if thread < 128 {
        match (fault, groups) {
            (Fault::NobodyGives, _) => {}
            (Fault::OneWarpDoesNotGive, _) if thread < 32 => {}
            (Fault::NoMultipleOfEight, _) => setmaxnreg_dec::<44>(),
            (Fault::Under24, _) => setmaxnreg_dec::<16>(),
            (Fault::DecreasesToMore, _) => setmaxnreg_dec::<232>(),
            (Fault::OneLaneAsks, _) if thread.is_multiple_of(32) => setmaxnreg_dec::<40>(), // one lane
            (Fault::OneLaneAsks, _) => {}
            (Fault::Splits24And168, _) => setmaxnreg_dec::<24>(),
            (Fault::Splits32And240, _) => setmaxnreg_dec::<32>(),
            (_, 4) => setmaxnreg_dec::<32>(),
            _ => setmaxnreg_dec::<40>(),
        }
    } else {
        match (fault, groups) {
            (Fault::Splits40And240 | Fault::Splits32And240, _) => setmaxnreg_inc::<240>(), // more
            (Fault::Splits24And168, _) => setmaxnreg_inc::<168>(),                         // more
            (Fault::OneWarpDoesNotTake, _) if thread < 160 => {}
            (Fault::OneWarpTakesFewer, _) if thread < 160 => setmaxnreg_inc::<224>(), // fewer than the others
            (Fault::IncreasesToFewer, _) => setmaxnreg_inc::<160>(),                  // fewer
            (_, 4) => setmaxnreg_inc::<152>(),
            _ => setmaxnreg_inc::<232>(), // more
        }
    }
    barrier_sync_all();
}

fn run(fault: Fault, groups: u32) -> impl Fn(Schedule) -> Outcome {
    move |schedule| {
        let spec = KernelSpec::new("split", 128 * groups, 1, 1, 0);
        (launch(&spec, [1, 1, 1], &Memory::new(), schedule, || unsafe { split(fault, groups) }), true)
    }
}

#[test]
fn the_right_ones() {
    right(run(Fault::None, 3));
    right(run(Fault::None, 4));
    right(run_shared(MAX, 0));
}

#[test]
fn more_than_there_are() {
    let kind = FindingKind::RegisterOversubscription;
    caught(kind, "// more", "want 66560 registers together", run(Fault::Splits40And240, 3));
    // As many as the multiprocessor has, and more than three times 168 of each of 128 threads.
    caught(kind, "// more", "want 65536 registers together", run(Fault::Splits32And240, 3));
    caught(kind, "// more", "want 67584 registers together", run(Fault::Splits24And168, 4));
    caught(kind, "// more", "it was launched with 64512: they wait forever", run(Fault::NobodyGives, 3));
    caught(kind, "// more", "they wait forever", run(Fault::OneWarpDoesNotGive, 3));
}

#[test]
fn wrong_operands() {
    let kind = FindingKind::BadOperand;
    caught(kind, "setmaxnreg_dec::<44>", "44 registers: a multiple of 8", run(Fault::NoMultipleOfEight, 3));
    caught(kind, "setmaxnreg_dec::<16>", "16 registers", run(Fault::Under24, 3));
    caught(kind, "// fewer", "setmaxnreg.inc to 160 registers from 168", run(Fault::IncreasesToFewer, 3));
    caught(kind, "setmaxnreg_dec::<232>", "setmaxnreg.dec to 232 registers from 168", run(Fault::DecreasesToMore, 3));
}

#[test]
fn warps_of_a_group_that_differ() {
    let kind = FindingKind::Divergence;
    let words = "setmaxnreg.inc of a warp group, but not of this warp of it";
    caught(kind, "// more", words, run(Fault::OneWarpDoesNotTake, 3));
    let words =
        "setmaxnreg.inc to 232 registers, while another warp of the warp group executes setmaxnreg.inc to 224 at";
    caught(kind, "// more", words, run(Fault::OneWarpTakesFewer, 3));
}

#[test]
fn a_lane_alone() {
    let words = "setmaxnreg.dec waits for all threads of its warp";
    let alone = |schedule| {
        let spec = KernelSpec::new("split", 128, 1, 1, 0);
        (launch(&spec, [1, 1, 1], &Memory::new(), schedule, || unsafe { split(Fault::OneLaneAsks, 1) }), true)
    };
    caught(FindingKind::Divergence, "// one lane", words, alone);
}

/// 227 KiB.
const MAX: u32 = 227 * 1024;

/// Writes and reads the last words of a block's shared memory, and `beyond` bytes further.
fn run_shared(shared_bytes: u32, beyond: u32) -> impl Fn(Schedule) -> Outcome {
    move |schedule| {
        // Not by `KernelSpec::new`, which would refuse it.
        let spec = KernelSpec { name: "shared", threads: 32, min_blocks: 1, cluster: 1, shared_bytes };
        let kernel = || unsafe {
            let address = dynamic_shared_address() + shared_bytes - 128 + thread_idx_x() * 4 + beyond;
            st_shared_u32(address, [7]);
            ld_shared_u32(address);
        };
        (launch(&spec, [1, 1, 1], &Memory::new(), schedule, kernel), true)
    }
}

#[test]
fn shared_memory() {
    let words = "232464 bytes of shared memory, but a block has at most 232448";
    caught(FindingKind::SharedMemory, "", words, run_shared(MAX + 16, 0));
    let words = "4 bytes at byte 512 of 512 of shared memory";
    caught(FindingKind::OutOfBounds, "st_shared_u32(address, [7])", words, run_shared(512, 4));
    caught(FindingKind::OutOfBounds, "st_shared_u32", "4 bytes at byte 500 of 500", run_shared(500, 4));
    caught(FindingKind::Misaligned, "st_shared_u32(address, [7])", "is no multiple of 4", run_shared(512, 2));
}
