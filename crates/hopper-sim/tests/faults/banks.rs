//! Accesses that meet in a bank: a number, not a fault.

use hopper_sim::{Memory, Mode, Report, Schedule, launch};
use hopper_std::KernelSpec;
use hopper_std::ptx::matrix::ldmatrix_x4;
use hopper_std::ptx::memory::{ld_shared_u32, st_shared_u32, st_shared_v4_u32};
use hopper_std::ptx::special::dynamic_shared_address;
use hopper_std::thread::thread_idx_x;

/// The report of a warp with 16 KiB, under every mode the same count.
#[track_caller]
fn conflicts(kernel: impl Fn(u32, u32) + Sync) -> u64 {
    let run = |mode: Mode| -> Report {
        let spec = KernelSpec::new("banks", 32, 1, 1, 16 << 10);
        let kernel = || kernel(unsafe { dynamic_shared_address() }, thread_idx_x());
        launch(&spec, [1, 1, 1], &Memory::new(), Schedule::new(mode, 5), kernel)
    };
    let reports = Mode::ALL.map(run);
    for report in &reports {
        report.assert_clean();
        assert_eq!(report.bank_conflicts, reports[0].bank_conflicts);
    }
    reports[0].bank_conflicts
}

#[test]
fn words_side_by_side() {
    let both = |base, lane| unsafe {
        st_shared_u32(base + lane * 4, [lane]);
        ld_shared_u32(base + lane * 4);
    };
    assert_eq!(conflicts(both), 0);
}

#[test]
fn columns() {
    // A column of a matrix of 32 x 32 words: all in one bank. One word of padding spreads it.
    assert_eq!(conflicts(|base, lane| unsafe { st_shared_u32(base + lane * 128, [lane]) }), 31);
    assert_eq!(conflicts(|base, lane| unsafe { st_shared_u32(base + lane * 132, [lane]) }), 0);
    // Every second word: two lanes to a bank, in each of three stores.
    let thrice = |base, lane| (0..3).for_each(|row| unsafe { st_shared_u32(base + row * 256 + lane * 8, [lane]) });
    assert_eq!(conflicts(thrice), 3);
}

#[test]
fn rows_of_128_bytes() {
    // 16 bytes of each of 32 rows: quarter by quarter of a warp, eight lanes in four banks. The swizzle spreads them.
    let plain = |base, lane| unsafe { st_shared_v4_u32(base + lane * 128, [lane; 4]) };
    assert_eq!(conflicts(plain), 4 * 7);
    let swizzled = |base: u32, lane: u32| unsafe { st_shared_v4_u32(base + lane * 128 + lane % 8 * 16, [lane; 4]) };
    assert_eq!(conflicts(swizzled), 0);
}

#[test]
fn matrices() {
    // The stores have no conflict: 28 are those of the load, of which each matrix has its eight rows in four banks.
    let plain = |base: u32, lane: u32| unsafe {
        for row in 0..32 {
            st_shared_u32(base + row * 128 + lane * 4, [row]);
        }
        ldmatrix_x4(base + lane * 128);
    };
    assert_eq!(conflicts(plain), 4 * 7);
}
