//! The kernel of `docs/own-kernel.md`, right and with the planted bug, under every mode: what the guide says is so.

use half::bf16;
use hopper_sim::{Address, FindingKind, Memory, Report, Schedule, TensorElement, TensorMap, TensorSwizzle, launch};
use hopper_std::half::Bf16;
use hopper_std::ptx::memory::st_global_v2_u32;
use hopper_std::sm90::{
    Accumulator, AccumulatorFragment, BlockScope, Pipeline, PipelineBarriers, SharedMemory, Swizzle128, TensorMapRef,
    Tile, WarpGroup,
};
use hopper_std::{KernelSpec, SharedLayout, seq, thread, warp};

const STAGES: usize = 2;

/// 64 rows of A by 64 of K, or 64 of K by 64 columns of B.
type Operand = Tile<Bf16, 64, 64, Swizzle128>;

#[repr(C)]
#[derive(SharedLayout)]
struct Stage {
    a: Operand,
    b: [Operand; 1],
}

#[repr(C, align(1024))]
#[derive(SharedLayout)]
struct Smem {
    stages: [Stage; STAGES],
    barriers: PipelineBarriers<STAGES>,
}

const SPEC: KernelSpec = KernelSpec::new("product", 256, 1, 1, SharedMemory::<Smem>::BYTES);

/// C (64 x 64, f32) = A (64 x K) B (K x 64), K = 64 `steps`: warp group 0 loads, warp group 1 multiplies and stores.
///
/// `consumer_warps` is what the ring is told; four is right.
#[allow(clippy::erasing_op, clippy::identity_op)] // `seq!` writes an expression out for index 0, too.
unsafe fn product(a: TensorMapRef<Operand>, b: TensorMapRef<Operand>, c: *mut u32, steps: u32, consumer_warps: u32) {
    // SAFETY: the specification asks for `Smem`'s bytes, and every thread is here. One thread produces; the four warps of
    // warp group 1 consume.
    unsafe {
        let (smem, group) = (SharedMemory::<Smem>::take(), WarpGroup::current());
        let ring =
            Pipeline::<_, STAGES, BlockScope>::init(Smem::stages(smem), Smem::barriers(smem), consumer_warps).publish();
        if group.index() == 0 {
            if thread::thread_idx_x() == 0 {
                let mut ring = ring.producer();
                for k in (0..steps as i32).map(|step| step * 64) {
                    let slot = ring.acquire();
                    slot.load_2d(Stage::a(slot.stage()), a, [k, 0]);
                    slot.load_2d(Stage::b(slot.stage()).at(0), b, [0, k]);
                }
            }
            return;
        }
        let (mut ring, mut accumulator) = (ring.consumer(), Accumulator::<32>::zeroed());
        let mut pending = accumulator.begin();
        for _ in 0..steps {
            let read = pending.multiply(ring.wait(), |products, slot| {
                let (a, b) = (Stage::a(slot.stage()).k_major(0), Stage::b(slot.stage()).mn_major());
                seq!(STEP in 0..4 { products.add::<Bf16, _>(a, b, STEP); });
            });
            read.into_iter().for_each(|slot| slot.release());
        }
        pending.wait().into_iter().for_each(|slot| slot.release());
        let (d, lane) = (accumulator.read(), warp::lane_id());
        let (row, col) = (AccumulatorFragment::row(group.warp(), lane), AccumulatorFragment::col(lane));
        let at = |row: u32, col: u32| c.wrapping_add((row * 64 + col) as usize);
        seq!(J in 0..8 {
            st_global_v2_u32(at(row, col + J * 8), [d[J * 4], d[J * 4 + 1]].map(f32::to_bits));
            st_global_v2_u32(at(row + 8, col + J * 8), [d[J * 4 + 2], d[J * 4 + 3]].map(f32::to_bits));
        });
    }
}

/// A row-major matrix of small whole numbers, exact in bf16, as are the sums of their products in f32.
fn matrix(rows: usize, cols: usize, seed: usize) -> Vec<bf16> {
    (0..rows * cols).map(|index| bf16::from_f32(((index * 7 + seed * 13) % 11) as f32 - 5.0)).collect()
}

fn map(memory: &mut Memory, values: &[bf16], rows: usize, cols: usize) -> Address<u8> {
    let base = memory.upload("matrix", values).cast();
    let (dims, strides) = ([cols as u64, rows as u64], [cols as u64 * 2]);
    let map = TensorMap::new(TensorElement::Bf16, base, &dims, &strides, &[64, 64], TensorSwizzle::B128);
    Address::new(memory.tensor_map(map.expect("a map")).expect("a map").cast_mut())
}

fn run(schedule: Schedule, consumer_warps: u32) -> (Report, bool) {
    const STEPS: usize = 5;
    let (a, b) = (matrix(64, 64 * STEPS, 1), matrix(64 * STEPS, 64, 2));
    let mut memory = Memory::new();
    let (map_a, map_b) = (map(&mut memory, &a, 64, 64 * STEPS), map(&mut memory, &b, 64 * STEPS, 64));
    let c = Address::new(memory.upload("c", &[f32::NAN; 64 * 64]));
    let report = launch(&SPEC, [1, 1, 1], &memory, schedule, || {
        // SAFETY: the maps have the boxes of the operands, and C has 64 x 64 elements.
        unsafe {
            let (a, b) = (TensorMapRef::from_raw(map_a.get()), TensorMapRef::from_raw(map_b.get()));
            product(a, b, c.get().cast(), STEPS as u32, consumer_warps);
        }
    });
    let sums = memory.download(c.get(), 64 * 64);
    let right = sums.iter().enumerate().all(|(index, sum)| {
        let (row, col) = (index / 64, index % 64);
        let expected: f32 = (0..64 * STEPS).map(|k| a[row * 64 * STEPS + k].to_f32() * b[k * 64 + col].to_f32()).sum();
        *sum == expected
    });
    (report, right)
}

#[test]
fn the_kernel_is_right_under_every_mode() {
    for schedule in Schedule::all(4) {
        let (report, right) = run(schedule, 4);
        report.assert_clean();
        assert!(right, "{schedule:?}");
    }
}

#[test]
fn a_ring_that_is_told_of_too_many_consumers_hangs() {
    for schedule in Schedule::all(1) {
        let (report, _) = run(schedule, 8);
        assert!(report.has(FindingKind::Deadlock), "{schedule:?}: {report}");
        let text = report.to_string();
        assert!(text.contains("4 of 8 arrivals"), "{text}");
        let guide = include_str!("../../../docs/own-kernel.md");
        for finding in &report.findings {
            let at = finding.at.expect("a line");
            assert!(guide.contains(&format!("guide.rs:{}:{}", at.line(), at.column())), "{at}");
        }
    }
}

/// The guide's pieces of Rust are pieces of this file, line by line.
#[test]
fn the_guide_shows_this_file() {
    let (guide, source) = (include_str!("../../../docs/own-kernel.md"), include_str!("guide.rs"));
    let pieces: Vec<&str> = guide.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(pieces.len() > 5);
    for piece in pieces {
        assert!(source.contains(piece), "not in the test:\n{piece}");
    }
}
