//! A tile of a product: one warp group copies, two multiply. 128 x 32 of D, K = 6 x 64, two slots, bf16.

use half::bf16;
use hopper_sim::{Address, FindingKind, Memory, Schedule, TensorElement, TensorMap, TensorSwizzle, launch};
use hopper_std::KernelSpec;
use hopper_std::half::Bf16;
use hopper_std::ptx::barrier::barrier_sync_all;
use hopper_std::ptx::convert::cvt_rn_bf16x2_f32;
use hopper_std::ptx::fence::fence_mbarrier_init_release_cluster;
use hopper_std::ptx::mbarrier::{mbarrier_arrive, mbarrier_arrive_expect_tx};
use hopper_std::ptx::memory::st_global_u32;
use hopper_std::ptx::registers::{setmaxnreg_dec, setmaxnreg_inc};
use hopper_std::ptx::tensor::cp_async_bulk_tensor_2d;
use hopper_std::ptx::wgmma::{Mma, Orientation, Registers, wgmma_commit_group, wgmma_fence, wgmma_wait_group};
use hopper_std::thread::thread_idx_x;

use crate::check::{Outcome, caught, right, wait, wrong};
use crate::slots::Slots;

const M: usize = 128;
const N: usize = 32;
const K: usize = 64 * STEPS as usize;
const STEPS: u32 = 6;
const SLOTS: u32 = 2;
const A_BYTES: u32 = 128 * 128;
const B_BYTES: u32 = 32 * 128;
const SLOT_BYTES: u32 = A_BYTES + B_BYTES;
/// One arrival for each warp that multiplies.
const RELEASES: u32 = 8;

type Ring = Slots<SLOTS, SLOT_BYTES>;

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    LastWaitOffByOne,
    NoLastWait,
    NothingUsedAndNoLastWait,
    WaitInLoopOffByOne,
    ReleasesWhatItJustIssued,
    ReleasesBeforeCommit,
    NoFence,
    NoFenceAfterScaling,
    ReadsInsideTheLoop,
    ConvertsInsideTheLoop,
    ScalesInsideTheLoop,
    ScalesBeforeTheLastWait,
    ReadsBeforeTheTie,
    ZeroesBeforeTheWait,
    OneWarpDoesNotFence,
    ExpectsOnlyA,
    ExpectsOnlyOneHalfOfA,
    ExpectsTheBytesOfF32,
    ExpectsPaddedRows,
    OneWarpDoesNotRelease,
    OneWarpDoesNotMultiply,
    OneWarpDoesNotCommit,
    OneWarpNamesAnotherTile,
    OneWarpNamesAnotherB,
    OneWarpIgnoresD,
    NextSlot,
    SlotOfTheOtherOperand,
    ReaderParityOfTheStep,
    WriterParityNotInverted,
    DescriptorSwizzle64,
    DescriptorNotSwizzled,
    MapNotSwizzled,
    StrideOfFourRows,
    HalfAStep,
    StartInTheSecondLine,
    Transposed,
    PastSharedMemory,
    Registers40And240,
}

struct KMajor;

impl Orientation for KMajor {
    const TRANS: i32 = 0;
}

struct MnMajor;

impl Orientation for MnMajor {
    const TRANS: i32 = 1;
}

/// Of a swizzled K-major operand, whose atoms of eight rows are `stride` bytes apart.
fn descriptor(address: u32, stride: u32, mode: u64) -> u64 {
    let field = |bytes: u32| u64::from(bytes >> 4 & 0x3fff);
    field(address) | field(16) << 16 | field(stride) << 32 | mode << 62
}

unsafe fn product(a: *const u8, b: *const u8, output: *mut f32, fault: Fault) {
    let thread = thread_idx_x();
    let ring = Ring::new();
    if thread == 0 {
        ring.init(SLOTS, RELEASES);
        fence_mbarrier_init_release_cluster();
    }
    barrier_sync_all();
    if thread < 128 {
        setmaxnreg_dec::<40>();
        if thread == 0 {
            for step in 0..STEPS {
                let inverted = u32::from(fault != Fault::WriterParityNotInverted);
                wait(ring.empty(step), ring.parity(step) ^ inverted);
                let bytes = match fault {
                    Fault::ExpectsOnlyA => A_BYTES,
                    Fault::ExpectsOnlyOneHalfOfA => A_BYTES / 2 + B_BYTES,
                    Fault::ExpectsTheBytesOfF32 => 2 * SLOT_BYTES,
                    Fault::ExpectsPaddedRows => SLOT_BYTES + 32 * 16,
                    _ => SLOT_BYTES,
                };
                mbarrier_arrive_expect_tx(ring.full(step), bytes);
                let column = (step * 64) as i32;
                cp_async_bulk_tensor_2d(ring.slot(step), a, [column, 0], ring.full(step));
                cp_async_bulk_tensor_2d(ring.slot(step) + A_BYTES, b, [column, 0], ring.full(step));
            }
        }
        return;
    }
    if fault == Fault::Registers40And240 {
        setmaxnreg_inc::<240>();
    } else {
        setmaxnreg_inc::<232>();
    }
    let (group, warp, lane) = (thread / 128 - 1, thread % 128 / 32, thread % 32);
    let last_warp = group == 1 && warp == 3;
    let mut d = [0.0_f32; N / 2];
    d.tie();
    for step in 0..STEPS {
        let parity = if fault == Fault::ReaderParityOfTheStep { step % 2 } else { ring.parity(step) };
        wait(ring.full(step), parity);
        let slot = if fault == Fault::NextSlot { ring.slot(step + 1) } else { ring.slot(step) };
        if fault == Fault::ZeroesBeforeTheWait && step == 3 {
            d = [0.0; N / 2];
        }
        if fault == Fault::OneWarpDoesNotFence && last_warp {
            // It goes on as it is.
        } else if !matches!(fault, Fault::NoFence | Fault::NoFenceAfterScaling) || step == 0 && fault != Fault::NoFence
        {
            wgmma_fence();
        }
        for part in 0..4 {
            let advance = if fault == Fault::HalfAStep { part * 16 } else { part * 32 };
            let (stride, mode) = match fault {
                Fault::DescriptorSwizzle64 => (1024, 2),
                Fault::DescriptorNotSwizzled => (1024, 0),
                Fault::StrideOfFourRows => (512, 1),
                _ => (1024, 1),
            };
            let start = match fault {
                Fault::StartInTheSecondLine => slot + 128,
                Fault::PastSharedMemory => ring.base + Ring::BYTES as u32 / 1024 * 1024 - 1024,
                Fault::SlotOfTheOtherOperand => slot + B_BYTES,
                Fault::OneWarpNamesAnotherTile if last_warp => slot,
                _ => slot + group * (A_BYTES / 2),
            };
            let left = descriptor(start + advance, stride, mode);
            let b_at = slot + A_BYTES + if fault == Fault::OneWarpNamesAnotherB && last_warp { 1024 } else { 0 };
            let right = descriptor(b_at + advance, stride, mode);
            let scale_d = u32::from(!(fault == Fault::OneWarpIgnoresD && last_warp));
            match fault {
                Fault::Transposed => Bf16::mma_shared::<KMajor, MnMajor>(&mut d, left, right, 1),
                Fault::OneWarpDoesNotMultiply if last_warp => {}
                _ => Bf16::mma_shared::<KMajor, KMajor>(&mut d, left, right, scale_d), // the product
            }
        }
        if fault == Fault::ReleasesBeforeCommit && lane == 0 {
            mbarrier_arrive(ring.empty(step));
        }
        if !(fault == Fault::OneWarpDoesNotCommit && last_warp) {
            wgmma_commit_group();
        }
        match fault {
            Fault::WaitInLoopOffByOne => wgmma_wait_group::<2>(),
            Fault::NoFenceAfterScaling => {
                wgmma_wait_group::<0>();
                d.tie();
                d = d.map(|sum| sum * 1.0);
            }
            _ => wgmma_wait_group::<1>(),
        }
        if fault == Fault::ReadsInsideTheLoop {
            st_global_u32(output.cast(), [d[0].to_bits()]); // a sum in the loop
        }
        if fault == Fault::ConvertsInsideTheLoop {
            cvt_rn_bf16x2_f32(d[1], d[0]);
        }
        if fault == Fault::ScalesInsideTheLoop {
            d = d.map(|sum| sum * 1.5);
        }
        let released = match fault {
            Fault::ReleasesWhatItJustIssued => Some(step),
            Fault::ReleasesBeforeCommit => None,
            _ => step.checked_sub(1),
        };
        if let Some(released) = released
            && lane == 0
            && !(fault == Fault::OneWarpDoesNotRelease && last_warp)
        {
            mbarrier_arrive(ring.empty(released));
        }
    }
    if fault == Fault::ScalesBeforeTheLastWait {
        d[3] *= 1.5;
    }
    match fault {
        Fault::LastWaitOffByOne => wgmma_wait_group::<1>(),
        Fault::NoLastWait => {}
        Fault::NothingUsedAndNoLastWait => return,
        _ => wgmma_wait_group::<0>(),
    }
    if fault == Fault::ReadsBeforeTheTie {
        d[0] += 1.0;
    }
    d.tie(); // after the last wait
    for (register, sum) in d.iter().enumerate() {
        let row = group * 64 + warp * 16 + lane / 4 + 8 * (register as u32 / 2 % 2);
        let col = 8 * (register as u32 / 4) + 2 * (lane % 4) + register as u32 % 2;
        st_global_u32(output.add(row as usize * N + col as usize).cast(), [sum.to_bits()]);
    }
}

/// Small integers, so that every sum is exact.
fn numbers(count: usize, factor: usize) -> Vec<bf16> {
    (0..count).map(|index| bf16::from_f32(((index * factor + index / 7) % 9) as f32 - 4.0)).collect()
}

fn run(fault: Fault) -> impl Fn(Schedule) -> Outcome {
    let (a, b) = (numbers(M * K, 5), numbers(N * K, 7));
    let expected: Vec<f32> =
        (0..M * N).map(|at| (0..K).map(|k| a[at / N * K + k].to_f32() * b[at % N * K + k].to_f32()).sum()).collect();
    move |schedule| {
        let spec = KernelSpec::new("product", 384, 1, 1, Ring::BYTES);
        let mut memory = Memory::new();
        let swizzle = if fault == Fault::MapNotSwizzled { TensorSwizzle::None } else { TensorSwizzle::B128 };
        let mut map = |name: &str, values: &[bf16], rows: usize| {
            let base = memory.upload(name, values).cast();
            let dims = [K as u64, rows as u64];
            let map = TensorMap::new(TensorElement::Bf16, base, &dims, &[2 * K as u64], &[64, rows as u32], swizzle);
            Address::new(memory.tensor_map(map.expect("a map")).expect("a map").cast_mut())
        };
        let (a, b) = (map("a", &a, M), map("b", &b, N));
        let output = memory.upload("output", &[0.0_f32; M * N]);
        let out = Address::new(output);
        let report =
            launch(&spec, [1, 1, 1], &memory, schedule, || unsafe { product(a.get(), b.get(), out.get(), fault) });
        (report, memory.download(output, M * N) == expected)
    }
}

#[test]
fn the_right_one() {
    right(run(Fault::None));
}

const LOAD: &str = "cp_async_bulk_tensor_2d(ring.slot(step)";
const PRODUCT: &str = "// the product";

#[test]
fn wrong_waits_for_products() {
    let kind = FindingKind::AccumulatorInFlight;
    let words = "a register of the accumulator of the products issued at";
    caught(kind, "st_global_u32(output.add", words, run(Fault::LastWaitOffByOne));
    caught(kind, "st_global_u32(output.add", words, run(Fault::NoLastWait));
    caught(kind, "// a sum in the loop", words, run(Fault::ReadsInsideTheLoop));
    caught(kind, "cvt_rn_bf16x2_f32", words, run(Fault::ConvertsInsideTheLoop));
    caught(kind, PRODUCT, "computed with before their wait", run(Fault::ScalesInsideTheLoop));
    caught(kind, "// after the last wait", words, run(Fault::ScalesBeforeTheLastWait));
    caught(kind, "// after the last wait", words, run(Fault::ReadsBeforeTheTie));
    caught(kind, PRODUCT, "were overwritten before its wait", run(Fault::ZeroesBeforeTheWait));
    let words = "before it has waited for this product";
    caught(FindingKind::Unfinished, PRODUCT, words, run(Fault::NothingUsedAndNoLastWait));
}

#[test]
fn released_before_the_wait() {
    let words = "is being read by the product issued at";
    caught(FindingKind::OverwriteInFlight, LOAD, words, run(Fault::WaitInLoopOffByOne));
    caught(FindingKind::OverwriteInFlight, LOAD, words, run(Fault::ReleasesWhatItJustIssued));
    caught(FindingKind::OverwriteInFlight, LOAD, words, run(Fault::ReleasesBeforeCommit));
}

#[test]
fn missing_fences_of_registers() {
    caught(FindingKind::MissingWgmmaFence, PRODUCT, "no wgmma.fence after it", run(Fault::NoFence));
    caught(FindingKind::MissingWgmmaFence, PRODUCT, "no wgmma.fence after it", run(Fault::NoFenceAfterScaling));
    caught(FindingKind::MissingWgmmaFence, PRODUCT, "no wgmma.fence after it", run(Fault::OneWarpDoesNotFence));
}

#[test]
fn wrong_byte_counts() {
    let kind = FindingKind::TransactionBytes;
    caught(kind, LOAD, "completes its phase while 4096 bytes", run(Fault::ExpectsOnlyA));
    caught(kind, LOAD, "got 8192 bytes more than it was told to expect", run(Fault::ExpectsOnlyOneHalfOfA));
    let words = "has its arrivals but expects 20480 bytes more than any copy brings";
    caught(kind, "wait(ring.full(step), parity)", words, run(Fault::ExpectsTheBytesOfF32));
    caught(kind, "wait(ring.full(step), parity)", "but expects 512 bytes more", run(Fault::ExpectsPaddedRows));
}

#[test]
fn missing_warps() {
    let words = "1 of 8 arrivals and 0 bytes are outstanding";
    caught(FindingKind::Deadlock, "wait(ring.empty(step)", words, run(Fault::OneWarpDoesNotRelease));
    let kind = FindingKind::Divergence;
    caught(
        kind,
        PRODUCT,
        "wgmma.mma_async waits for all threads of its warp group",
        run(Fault::OneWarpDoesNotMultiply),
    );
    let words = "the threads of the warp group name different descriptors";
    caught(kind, PRODUCT, words, run(Fault::OneWarpNamesAnotherTile));
    caught(kind, PRODUCT, words, run(Fault::OneWarpNamesAnotherB));
    caught(kind, PRODUCT, words, run(Fault::OneWarpIgnoresD));
    let words = "is being read by the product issued at";
    caught(FindingKind::OverwriteInFlight, LOAD, words, run(Fault::OneWarpDoesNotCommit));
}

#[test]
fn shifted_slots_and_phases() {
    caught(FindingKind::ReadInFlight, PRODUCT, "is being written by the copy issued at", run(Fault::NextSlot));
    caught(FindingKind::ReadInFlight, PRODUCT, "is being written by", run(Fault::ReaderParityOfTheStep));
    let words = "wait for phase parity 0 of the mbarrier at byte 40976 of block 0 (0 phases complete; 8 of 8 arrivals";
    caught(FindingKind::Deadlock, "wait(ring.empty(step)", words, run(Fault::WriterParityNotInverted));
    wrong(run(Fault::SlotOfTheOtherOperand));
}

#[test]
fn wrong_layouts() {
    wrong(run(Fault::DescriptorSwizzle64));
    wrong(run(Fault::DescriptorNotSwizzled));
    wrong(run(Fault::MapNotSwizzled));
    wrong(run(Fault::StrideOfFourRows));
    wrong(run(Fault::HalfAStep));
    wrong(run(Fault::Transposed));
    caught(FindingKind::BadOperand, PRODUCT, "in line 1 of an atom of eight", run(Fault::StartInTheSecondLine));
    caught(FindingKind::OutOfBounds, PRODUCT, "a descriptor reaches", run(Fault::PastSharedMemory));
}

#[test]
fn too_many_registers() {
    let words = "the block's warps want 66560 registers together, it was launched with 64512";
    caught(FindingKind::RegisterOversubscription, "setmaxnreg_inc::<240>()", words, run(Fault::Registers40And240));
}
