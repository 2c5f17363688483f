//! Results on their way out: stored to shared memory, then copied to global memory. And operands that threads store.

use half::bf16;
use hopper_sim::{Address, FindingKind, Memory, Schedule, TensorElement, TensorMap, TensorSwizzle, launch};
use hopper_std::KernelSpec;
use hopper_std::half::Bf16;
use hopper_std::ptx::barrier::barrier_sync_all;
use hopper_std::ptx::bulk::{
    cp_async_bulk_commit_group, cp_async_bulk_shared_to_global, cp_async_bulk_wait_group, cp_async_bulk_wait_group_read,
};
use hopper_std::ptx::fence::fence_proxy_async_shared_cta;
use hopper_std::ptx::memory::{ld_global_u32, st_global_u32, st_shared_u32, st_shared_v4_u32};
use hopper_std::ptx::special::dynamic_shared_address;
use hopper_std::ptx::tensor::{cp_async_bulk_tensor_2d_store, cp_reduce_async_bulk_tensor_2d_add};
use hopper_std::ptx::wgmma::{Mma, Orientation, Registers, wgmma_commit_group, wgmma_fence, wgmma_wait_group};
use hopper_std::thread::thread_idx_x;

use crate::check::{Outcome, caught, right, wrong};

const THREADS: u32 = 128;
const TILES: u32 = 5;
const BUFFERS: u32 = 2;
/// 16 lines of 32 numbers.
const TILE_BYTES: u32 = THREADS * 16;

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    NoFence,
    OnlyTheIssuerFences,
    FenceBeforeTheStores,
    NoBarrierBeforeTheCopy,
    WaitOffByOne,
    NoWait,
    NoCommit,
    NoBarrierAfterTheWait,
    NoWaitAtTheEnd,
    NotSwizzled,
    BoxNotAligned,
    OneWarpDoesNotStore,
    Adds,
}

unsafe fn epilogue(map: *const u8, fault: Fault) {
    let thread = thread_idx_x();
    let base = dynamic_shared_address();
    for tile in 0..TILES {
        let buffer = base + tile % BUFFERS * TILE_BYTES;
        if thread == 0 {
            match fault {
                Fault::WaitOffByOne => cp_async_bulk_wait_group_read::<2>(),
                Fault::NoWait => {}
                _ => cp_async_bulk_wait_group_read::<1>(),
            }
        }
        if fault != Fault::NoBarrierAfterTheWait {
            barrier_sync_all();
        }
        if fault == Fault::FenceBeforeTheStores {
            fence_proxy_async_shared_cta();
        }
        let unit = if fault == Fault::NotSwizzled { thread } else { thread ^ (thread / 8 % 8) };
        let first = tile * 1000 + thread * 4;
        if !(fault == Fault::OneWarpDoesNotStore && thread < 32) {
            st_shared_v4_u32(buffer + unit * 16, [first, first + 1, first + 2, first + 3]);
        }
        if !matches!(fault, Fault::NoFence | Fault::OnlyTheIssuerFences | Fault::FenceBeforeTheStores) {
            fence_proxy_async_shared_cta();
        }
        if fault != Fault::NoBarrierBeforeTheCopy {
            barrier_sync_all();
        }
        if thread == 0 {
            if fault == Fault::OnlyTheIssuerFences {
                fence_proxy_async_shared_cta();
            }
            let source = if fault == Fault::BoxNotAligned { buffer + 16 } else { buffer };
            let at = [0, (tile * 16) as i32];
            if fault == Fault::Adds {
                cp_reduce_async_bulk_tensor_2d_add(map, at, source);
            } else {
                cp_async_bulk_tensor_2d_store(map, at, source); // the copy
            }
            if fault != Fault::NoCommit {
                cp_async_bulk_commit_group();
            }
        }
    }
    if fault != Fault::NoWaitAtTheEnd {
        cp_async_bulk_wait_group::<0>();
    }
}

fn run(fault: Fault) -> impl Fn(Schedule) -> Outcome {
    move |schedule| {
        let spec = KernelSpec::new("epilogue", THREADS, 1, 1, (BUFFERS * TILE_BYTES) as usize);
        let mut memory = Memory::new();
        let count = (TILES * THREADS * 4) as usize;
        let before = u32::from(fault == Fault::Adds) * 7;
        let output = memory.upload("output", &vec![before; count]);
        let dims = [32, u64::from(TILES * 16)];
        let map = TensorMap::new(TensorElement::U32, output.cast(), &dims, &[128], &[32, 16], TensorSwizzle::B128)
            .expect("a map");
        let map = Address::new(memory.tensor_map(map).expect("a map").cast_mut());
        let report = launch(&spec, [1, 1, 1], &memory, schedule, || unsafe { epilogue(map.get(), fault) });
        let expected: Vec<u32> =
            (0..count as u32).map(|at| before + at / (THREADS * 4) * 1000 + at % (THREADS * 4)).collect();
        (report, memory.download(output, count) == expected)
    }
}

#[test]
fn the_right_ones() {
    right(run(Fault::None));
    right(run(Fault::Adds));
    right(run_operands(Operands::Right));
}

#[test]
fn missing_proxy_fences() {
    let kind = FindingKind::MissingProxyFence;
    let words = "was written by an ordinary store of thread 0, with no fence.proxy.async after it";
    caught(kind, "// the copy", words, run(Fault::NoFence));
    caught(kind, "// the copy", words, run(Fault::FenceBeforeTheStores));
    // The issuer's fence comes after its own stores, but nobody else's.
    caught(kind, "// the copy", "ordinary store of thread 1,", run(Fault::OnlyTheIssuerFences));
}

#[test]
fn missing_barriers() {
    caught(FindingKind::UninitialisedRead, "// the copy", "was never written", run(Fault::NoBarrierBeforeTheCopy));
    caught(FindingKind::UninitialisedRead, "// the copy", "byte 0 of", run(Fault::OneWarpDoesNotStore));
    let words = "is being read by the copy issued at";
    caught(FindingKind::OverwriteInFlight, "st_shared_v4_u32", words, run(Fault::NoBarrierAfterTheWait));
}

#[test]
fn wrong_waits_for_bulk_groups() {
    let (kind, words) = (FindingKind::OverwriteInFlight, "is being read by the copy issued at");
    caught(kind, "st_shared_v4_u32", words, run(Fault::WaitOffByOne));
    caught(kind, "st_shared_v4_u32", words, run(Fault::NoWait));
    caught(kind, "st_shared_v4_u32", words, run(Fault::NoCommit));
    let words = "the thread ends before this copy has read its shared memory";
    caught(FindingKind::Unfinished, "// the copy", words, run(Fault::NoWaitAtTheEnd));
}

#[test]
fn wrong_layouts() {
    wrong(run(Fault::NotSwizzled));
    caught(FindingKind::Misaligned, "// the copy", "is no multiple of 128", run(Fault::BoxNotAligned));
}

/// Blocks that add to the same numbers, of which the box's second half lies outside: nobody stores what goes there.
unsafe fn add_ones(map: *const u8) {
    let thread = thread_idx_x();
    let base = dynamic_shared_address();
    st_shared_u32(base + thread * 4, [1]);
    fence_proxy_async_shared_cta();
    barrier_sync_all();
    if thread == 0 {
        for _ in 0..4 {
            cp_reduce_async_bulk_tensor_2d_add(map, [0, 0], base);
        }
        cp_async_bulk_commit_group();
        cp_async_bulk_wait_group_read::<0>();
    }
}

#[test]
fn blocks_add_one_at_a_time() {
    const BLOCKS: u32 = 64;
    let spec = KernelSpec::new("add_ones", 32, 1, 1, 2 * 128);
    for schedule in Schedule::all(2) {
        let mut memory = Memory::new();
        let sums = memory.upload("sums", &[0_u32; 32]);
        let map = TensorMap::new(TensorElement::U32, sums.cast(), &[32, 1], &[128], &[32, 2], TensorSwizzle::None);
        let map = Address::new(memory.tensor_map(map.expect("a map")).expect("a map").cast_mut());
        launch(&spec, [BLOCKS, 1, 1], &memory, schedule, || unsafe { add_ones(map.get()) }).assert_clean();
        assert_eq!(memory.download(sums, 32), [4 * BLOCKS; 32]);
    }
}

/// That a store has read its shared memory does not mean that it has written global memory.
#[test]
fn a_store_that_has_only_been_read() {
    let seen = |schedule, all: bool| {
        let spec = KernelSpec::new("read_back", 32, 1, 1, 128);
        let mut memory = Memory::new();
        let numbers = memory.upload("numbers", &[0_u32; 32]);
        let copy = memory.upload("copy", &[0_u32; 32]);
        let (there, back) = (Address::new(numbers), Address::new(copy));
        let report = launch(&spec, [1, 1, 1], &memory, schedule, || unsafe {
            let (thread, base) = (thread_idx_x(), dynamic_shared_address());
            st_shared_u32(base + thread * 4, [7]);
            fence_proxy_async_shared_cta();
            barrier_sync_all();
            if thread == 0 {
                cp_async_bulk_shared_to_global(there.get().cast(), base, 128);
                cp_async_bulk_commit_group();
                if all { cp_async_bulk_wait_group::<0>() } else { cp_async_bulk_wait_group_read::<0>() }
            }
            barrier_sync_all();
            let [number] = ld_global_u32(there.get().add(thread as usize));
            st_global_u32(back.get().add(thread as usize), [number]);
        });
        report.assert_clean();
        assert_eq!(memory.download(numbers, 32), [7; 32]);
        memory.download(copy, 32) == [7; 32]
    };
    assert!(Schedule::all(3).all(|schedule| seen(schedule, true)));
    assert!(!Schedule::all(3).all(|schedule| seen(schedule, false)));
}

/// How operands of a product come from threads.
#[derive(Clone, Copy, PartialEq)]
enum Operands {
    Right,
    NoFence,
    FenceAfterTheBarrierByOneWarp,
    NoBarrier,
    OverwrittenBeforeTheWait,
}

struct KMajor;

impl Orientation for KMajor {
    const TRANS: i32 = 0;
}

/// 64 x 8 of D from 64 x 16 of A and 16 x 8 of B, both not swizzled.
unsafe fn operands(a: *const u32, b: *const u32, output: *mut f32, fault: Operands) {
    let thread = thread_idx_x();
    let base = dynamic_shared_address();
    // Core matrices of 8 rows of 16 bytes: K from one to the next, rows after both.
    let place = |row: u32, pair: u32| row / 8 * 256 + pair / 4 * 128 + row % 8 * 16 + pair % 4 * 4;
    for pair in 0..4 {
        let (row, pair) = (thread / 2, thread % 2 * 4 + pair);
        st_shared_u32(base + place(row, pair), ld_global_u32(a.add((row * 8 + pair) as usize)));
    }
    if thread < 64 {
        let (row, pair) = (thread / 8, thread % 8);
        st_shared_u32(base + 2048 + place(row, pair), ld_global_u32(b.add(thread as usize)));
    }
    if !matches!(fault, Operands::NoFence | Operands::FenceAfterTheBarrierByOneWarp) {
        fence_proxy_async_shared_cta();
    }
    if fault != Operands::NoBarrier {
        barrier_sync_all();
    }
    if fault == Operands::FenceAfterTheBarrierByOneWarp && thread < 32 {
        fence_proxy_async_shared_cta();
    }
    let descriptor = |address: u32| u64::from(address >> 4) | (128 >> 4) << 16 | (256 >> 4) << 32;
    let mut d = [0.0_f32; 4];
    d.tie();
    wgmma_fence();
    Bf16::mma_shared::<KMajor, KMajor>(&mut d, descriptor(base), descriptor(base + 2048), 0); // the product
    wgmma_commit_group();
    if fault == Operands::OverwrittenBeforeTheWait {
        st_shared_u32(base + thread * 16, [0]); // too early
    }
    wgmma_wait_group::<0>();
    d.tie();
    for (register, sum) in d.iter().enumerate() {
        let row = thread / 32 * 16 + thread % 32 / 4 + 8 * (register as u32 / 2);
        let col = 2 * (thread % 4) + register as u32 % 2;
        st_global_u32(output.add((row * 8 + col) as usize).cast(), [sum.to_bits()]);
    }
}

fn run_operands(fault: Operands) -> impl Fn(Schedule) -> Outcome {
    move |schedule| {
        let spec = KernelSpec::new("operands", THREADS, 1, 1, 2048 + 256);
        let mut memory = Memory::new();
        let numbers =
            |rows: usize| -> Vec<bf16> { (0..rows * 16).map(|at| bf16::from_f32((at % 11) as f32)).collect() };
        let (left, right) = (numbers(64), numbers(8));
        let a = Address::new(memory.upload("a", &left).cast::<u32>());
        let b = Address::new(memory.upload("b", &right).cast::<u32>());
        let output = memory.upload("output", &[0.0_f32; 64 * 8]);
        let out = Address::new(output);
        let report =
            launch(&spec, [1, 1, 1], &memory, schedule, || unsafe { operands(a.get(), b.get(), out.get(), fault) });
        let product = |at: usize, k: usize| left[at / 8 * 16 + k].to_f32() * right[at % 8 * 16 + k].to_f32();
        let expected: Vec<f32> = (0..64 * 8).map(|at| (0..16).map(|k| product(at, k)).sum()).collect();
        (report, memory.download(output, 64 * 8) == expected)
    }
}

#[test]
fn wrong_operands() {
    let kind = FindingKind::MissingProxyFence;
    caught(kind, "// the product", "an ordinary store of thread 0,", run_operands(Operands::NoFence));
    let one_warp = run_operands(Operands::FenceAfterTheBarrierByOneWarp);
    caught(kind, "// the product", "an ordinary store of thread 32,", one_warp);
    let words = "is being read by the product issued at";
    let early = run_operands(Operands::OverwrittenBeforeTheWait);
    caught(FindingKind::OverwriteInFlight, "// too early", words, early);
}
