//! The machine itself: the same schedule is the same run, and what a grid is.

use std::sync::atomic::{AtomicU32, Ordering};

use hopper_sim::{Address, FindingKind, Memory, Mode, Schedule, launch};
use hopper_std::KernelSpec;
use hopper_std::ptx::barrier::barrier_sync_all;
use hopper_std::ptx::bulk::cp_async_bulk_global_to_shared;
use hopper_std::ptx::cluster::{barrier_cluster_arrive, barrier_cluster_wait};
use hopper_std::ptx::fence::fence_mbarrier_init_release_cluster;
use hopper_std::ptx::mbarrier::{
    mbarrier_arrive, mbarrier_expect_tx, mbarrier_init, mbarrier_inval, mbarrier_test_wait_parity,
};
use hopper_std::ptx::memory::{ld_global_u32, ld_shared_u32, st_global_u32, st_shared_u32};
use hopper_std::ptx::special::{clock64, dynamic_shared_address};
use hopper_std::thread::{block_dim_x, block_idx_x, block_idx_y, block_idx_z, grid_dim_x, grid_dim_y, thread_idx_x};

use crate::check::wait;

/// A kernel with a race: who is last writes its number.
fn race(schedule: Schedule) -> (String, u64, u32) {
    let spec = KernelSpec::new("race", 128, 1, 1, 64);
    let mut memory = Memory::new();
    let winner = memory.upload("winner", &[0_u32]);
    let out = Address::new(winner);
    let report = launch(&spec, [1, 1, 1], &memory, schedule, || unsafe {
        st_global_u32(out.get(), [thread_idx_x()]);
        ld_shared_u32(dynamic_shared_address());
        st_shared_u32(dynamic_shared_address(), [0]);
    });
    (report.to_string(), report.num_instructions, memory.download(winner, 1)[0])
}

#[test]
fn a_schedule_is_a_run() {
    for schedule in Schedule::all(4) {
        assert_eq!(race(schedule), race(schedule), "{schedule:?}");
    }
    let mut winners: Vec<u32> = (0..20).map(|seed| race(Schedule::new(Mode::Random, seed)).2).collect();
    winners.sort_unstable();
    winners.dedup();
    assert!(winners.len() > 3, "twenty seeds have only the winners {winners:?}");
}

#[test]
fn every_thread_of_every_block_once() {
    let spec = KernelSpec::new("count", 64, 1, 1, 0);
    let mut memory = Memory::new();
    let [nx, ny, nz] = [3, 4, 2];
    let counts = memory.upload("counts", &vec![0_u32; (nx * ny * nz * 64) as usize]);
    let out = Address::new(counts);
    let num_threads = AtomicU32::new(0);
    for schedule in Schedule::all(1) {
        let report = launch(&spec, [nx, ny, nz], &memory, schedule, || unsafe {
            num_threads.fetch_add(1, Ordering::Relaxed);
            let block = (block_idx_z() * grid_dim_y() + block_idx_y()) * grid_dim_x() + block_idx_x();
            let count = out.get().add((block * block_dim_x() + thread_idx_x()) as usize);
            let [before] = ld_global_u32(count);
            st_global_u32(count, [before + 1]);
        });
        report.assert_clean();
        assert_eq!(report.num_instructions, u64::from(nx * ny * nz * 64 * 2));
    }
    let runs = num_threads.into_inner() / (nx * ny * nz * 64);
    assert!(memory.download(counts, (nx * ny * nz * 64) as usize).iter().all(|&count| count == runs));
}

#[test]
fn those_who_poll_go_on() {
    let spec = KernelSpec::new("poll", 64, 1, 1, 8);
    for schedule in Schedule::all(3) {
        let report = launch(&spec, [1, 1, 1], &Memory::new(), schedule, || unsafe {
            let barrier = dynamic_shared_address();
            if thread_idx_x() == 0 {
                mbarrier_init(barrier, 32);
            }
            barrier_sync_all();
            if thread_idx_x() < 32 {
                while !mbarrier_test_wait_parity(barrier, 0) {}
            } else {
                mbarrier_arrive(barrier);
            }
            barrier_sync_all();
            // A barrier whose life is over may begin another.
            if thread_idx_x() == 0 {
                mbarrier_inval(barrier);
                mbarrier_init(barrier, 1);
                mbarrier_arrive(barrier);
            }
        });
        report.assert_clean();
    }
}

#[test]
fn those_who_spin_go_on() {
    let spec = KernelSpec::new("spin", 64, 1, 1, 4);
    for schedule in Schedule::all(3) {
        let report = launch(&spec, [1, 1, 1], &Memory::new(), schedule, || unsafe {
            let word = dynamic_shared_address();
            if thread_idx_x() == 0 {
                st_shared_u32(word, [0]);
            }
            barrier_sync_all();
            if thread_idx_x() == 63 {
                st_shared_u32(word, [1]);
            }
            while ld_shared_u32(word) == [0] {}
            let start = clock64();
            while clock64() < start + 100 {}
        });
        report.assert_clean();
    }
}

#[test]
fn who_has_ended_holds_up_no_barrier_of_all() {
    let spec = KernelSpec::new("leave", 96, 1, 2, 0);
    for schedule in Schedule::all(3) {
        let report = launch(&spec, [2, 1, 1], &Memory::new(), schedule, || unsafe {
            let thread = thread_idx_x();
            if thread == 7 {
                return;
            }
            barrier_sync_all();
            if thread < 32 {
                return;
            }
            barrier_sync_all();
            barrier_cluster_arrive();
            if thread < 64 && block_idx_x() == 1 {
                return;
            }
            barrier_cluster_wait();
            if thread == 64 {
                return;
            }
            barrier_cluster_arrive();
            barrier_cluster_wait();
        });
        report.assert_clean();
    }
}

/// Two phases are complete before the waiting thread looks again: it waits for a third, which does not come.
#[test]
fn who_is_lapped_waits_on() {
    let spec = KernelSpec::new("lap", 64, 1, 1, 8);
    let report = launch(&spec, [1, 1, 1], &Memory::new(), Schedule::new(Mode::Fair, 0), || unsafe {
        let barrier = dynamic_shared_address();
        if thread_idx_x() == 0 {
            mbarrier_init(barrier, 1);
        }
        barrier_sync_all();
        if thread_idx_x() == 0 {
            mbarrier_arrive(barrier);
            mbarrier_arrive(barrier);
        } else if thread_idx_x() >= 32 {
            wait(barrier, 0);
        }
    });
    let words = "wait for phase parity 0 of the mbarrier at byte 0 of block 0 (2 phases complete";
    assert!(report.has(FindingKind::Deadlock) && report.to_string().contains(words), "{report}");
}

#[test]
fn bytes_that_were_not_announced() {
    let spec = KernelSpec::new("bytes", 32, 1, 1, 24);
    let mut memory = Memory::new();
    let input = Address::new(memory.upload("input", &[0_u32; 4]));
    let of = |announced: Option<u32>| {
        let report = launch(&spec, [1, 1, 1], &memory, Schedule::new(Mode::Fair, 0), || unsafe {
            let (slot, barrier) = (dynamic_shared_address(), dynamic_shared_address() + 16);
            if thread_idx_x() == 0 {
                mbarrier_init(barrier, 1);
                fence_mbarrier_init_release_cluster();
                if let Some(bytes) = announced {
                    mbarrier_expect_tx(barrier, bytes);
                }
                cp_async_bulk_global_to_shared(slot, input.get().cast(), 16, barrier);
                while ld_shared_u32(slot) != [0] {} // much too early
            }
        });
        report.findings.iter().map(|finding| format!("{:?}: {}", finding.kind, finding.details)).collect::<Vec<_>>()
    };
    let words = "TransactionBytes: the mbarrier at byte 16 of block 0 got 16 bytes that it was not told to expect";
    assert!(of(None).iter().any(|finding| finding == words), "{:?}", of(None));
    assert!(of(Some(1 << 20)).iter().any(|finding| finding.starts_with("BadOperand: 1048576 bytes")));
}

#[test]
fn polling_in_vain_is_a_deadlock() {
    let spec = KernelSpec::new("poll", 32, 1, 1, 8);
    for schedule in Schedule::all(2) {
        let report = launch(&spec, [1, 1, 1], &Memory::new(), schedule, || unsafe {
            let barrier = dynamic_shared_address();
            if thread_idx_x() == 0 {
                mbarrier_init(barrier, 1);
            }
            barrier_sync_all();
            while !mbarrier_test_wait_parity(barrier, 0) {}
        });
        assert!(report.has(FindingKind::Deadlock), "{schedule:?}: {report}");
        assert!(report.findings[0].details.contains("threads 0-31 wait for"), "{report}");
    }
}

#[test]
fn a_thread_may_arrive_for_two() {
    let spec = KernelSpec::new("twice", 64, 1, 1, 8);
    for schedule in Schedule::all(3) {
        let report = launch(&spec, [1, 1, 1], &Memory::new(), schedule, || unsafe {
            let barrier = dynamic_shared_address();
            if thread_idx_x() == 0 {
                mbarrier_init(barrier, 2 * 32);
            }
            barrier_sync_all();
            for round in 0..4 {
                if thread_idx_x() < 32 {
                    mbarrier_arrive(barrier);
                    mbarrier_arrive(barrier);
                }
                wait(barrier, round % 2);
                barrier_sync_all();
            }
        });
        report.assert_clean();
    }
}

#[test]
fn barriers_that_are_no_more() {
    let spec = KernelSpec::new("ended", 32, 1, 1, 16);
    let run = |store: bool| {
        launch(&spec, [1, 1, 1], &Memory::new(), Schedule::new(Mode::Random, 2), || unsafe {
            let barrier = dynamic_shared_address();
            if thread_idx_x() == 0 {
                mbarrier_init(barrier, 2);
                if store {
                    st_shared_u32(barrier + 4, [1]);
                }
                mbarrier_inval(barrier);
                st_shared_u32(barrier, [1]);
                if !store {
                    mbarrier_arrive(barrier);
                }
            }
        })
    };
    let details = |store| run(store).findings.iter().map(|finding| finding.details.clone()).collect::<Vec<_>>();
    assert!(run(true).has(FindingKind::BadBarrier) && run(false).has(FindingKind::BadBarrier));
    assert_eq!(details(true), ["a write over the mbarrier at byte 0 of block 0"]);
    assert_eq!(details(false), ["no mbarrier is initialised at byte 0 of block 0"]);
}

#[test]
fn global_addresses() {
    let spec = KernelSpec::new("global", 32, 1, 1, 0);
    let mut memory = Memory::new();
    let numbers = Address::new(memory.upload("numbers", &[0_u32; 64]));
    let of = |kernel: fn(*mut u32)| {
        let report = launch(&spec, [1, 1, 1], &memory, Schedule::new(Mode::Fair, 0), || kernel(numbers.get()));
        (report.findings[0].kind, report.findings[0].details.clone())
    };
    let (kind, details) = of(|numbers| unsafe { st_global_u32(numbers.wrapping_byte_add(2), [0]) });
    assert!(kind == FindingKind::Misaligned && details.starts_with("an access of 4 bytes"), "{details}");
    let (kind, details) = of(|numbers| unsafe { _ = ld_global_u32(numbers.wrapping_sub(1)) });
    assert!(kind == FindingKind::OutOfBounds && details.contains("at byte -4 of `numbers`"), "{details}");
    let (kind, _) = of(|_| unsafe { _ = ld_global_u32(core::ptr::null::<u32>().wrapping_sub(1)) });
    assert_eq!(kind, FindingKind::OutOfBounds);
}

#[test]
fn launches_that_a_device_refuses() {
    let refused = |threads, cluster, grid| {
        let spec = KernelSpec { name: "none", threads, min_blocks: 1, cluster, shared_bytes: 0 };
        launch(&spec, grid, &Memory::new(), Schedule::new(Mode::Fair, 0), || unreachable!())
            .has(FindingKind::BadOperand)
    };
    assert!(refused(1056, 1, [1, 1, 1]) && refused(48, 1, [1, 1, 1]) && refused(0, 1, [1, 1, 1]));
    assert!(refused(32, 2, [3, 1, 1]) && refused(32, 16, [16, 1, 1]) && refused(32, 1, [1, 0, 1]));
}

#[test]
fn findings_say_who_and_where() {
    let spec = KernelSpec::new("late_block", 32, 1, 1, 0);
    let mut memory = Memory::new();
    let only = Address::new(memory.upload("only", &[0_u32; 4]));
    let report = launch(&spec, [2, 1, 1], &memory, Schedule::new(Mode::Fair, 0), || unsafe {
        if block_idx_x() == 1 && thread_idx_x() == 9 {
            st_global_u32(only.get().wrapping_add(4), [1]);
        }
    });
    let [finding] = &report.findings[..] else { panic!("{report}") };
    assert_eq!((finding.kind, finding.kernel), (FindingKind::OutOfBounds, "late_block"));
    assert_eq!((finding.block, finding.thread), ([1, 0, 0], Some(9)));
    assert_eq!(finding.details, "4 bytes at byte 16 of `only`, which has 16");
    assert!(report.to_string().contains("in late_block, block (1, 0, 0), thread 9, crates/hopper-sim/tests/faults"));
}
