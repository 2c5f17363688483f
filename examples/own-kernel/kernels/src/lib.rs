//! C = A B, all row-major: A (M x K) and B (K x N) in bf16, C (M x N) in f32. Block (i, j) computes one tile of 128 x 128:
//!
//! ```text
//! C[i, j] = sum over k of A[i, k] B[k, j]             A[i, k]: 128 x 64      B[k, j]: 64 x 128
//!
//! one thread of warp group 0: the producer            warp groups 1 and 2: consumers of 64 rows each
//! for k in 0..ceil(K / 64):                           D = 0
//!     slot = acquire()                                for k in 0..ceil(K / 64):
//!     copy A[i, k] -> slot                                slot = wait()
//!     copy B[k, j] -> slot                                D += A[i, k] B[k, j]         (4 WGMMAs of K = 16)
//!                                                         release the slot of the step before
//!                                                     store D
//!
//! producer    |A B 0|A B 1|A B 2|A B 3|   (waits for a release)   |A B 4| ...
//! consumers         |= mma 0 =|= mma 1 =|= mma 2 =|= mma 3 =|= mma 4 =| ...    | store |
//! ```
//!
//! Contract: `a` and `b` point to tensor maps with the boxes of [`TileA`] and [`TileB`], `c` to M N floats; the grid is
//! ceil(M / 128) by ceil(N / 128); N is even. Copies bring zeros beyond the edges of A and B; beyond those of C nothing is
//! stored.
#![cfg_attr(target_arch = "nvptx64", no_std)]

use hopper_std::sm90::{
    Accumulator, AccumulatorFragment, BlockScope, Consumer, Pipeline, PipelineBarriers, RegisterBudget, SharedMemory,
    Swizzle128, TensorMapRef, Tile, WarpGroup,
};
use hopper_std::{SharedLayout, half::Bf16, kernel, ptx::memory::st_global_v2_u32, seq, thread, warp::lane_id};

const STAGES: usize = 4;
type Budget = RegisterBudget<40, 232, 2>;

/// What one copy of A brings: 128 rows of 64 of K.
pub type TileA = Tile<Bf16, 128, 64, Swizzle128>;
/// What one copy of B brings: 64 of K of 64 columns.
pub type TileB = Tile<Bf16, 64, 64, Swizzle128>;

#[repr(C)]
#[derive(SharedLayout)]
struct Stage {
    a: TileA,
    b: [TileB; 2],
}

#[repr(C, align(1024))]
#[derive(SharedLayout)]
struct Smem {
    stages: [Stage; STAGES],
    barriers: PipelineBarriers<STAGES>,
}

/// C = A B.
///
/// # Safety
/// The contract above.
#[kernel(threads = Budget::THREADS, shared = SharedMemory::<Smem>::BYTES)]
pub unsafe fn gemm(a: TensorMapRef<TileA>, b: TensorMapRef<TileB>, c: *mut u32, m: u32, n: u32, k: u32) {
    let (row, col, steps) = (thread::block_idx_x() * 128, thread::block_idx_y() * 128, k.div_ceil(64));
    // SAFETY: the specification asks for `Smem`'s bytes, and every thread of the block is here. One thread of warp group 0
    // produces, and fills each tile of a slot once; the eight warps of the others consume, each warp group as a whole.
    unsafe {
        let (smem, group) = (SharedMemory::<Smem>::take(), WarpGroup::current());
        let ring = Pipeline::<_, STAGES, BlockScope>::init(Smem::stages(smem), Smem::barriers(smem), 8).publish();
        if group.index() == 0 {
            Budget::become_producer();
            if thread::thread_idx_x() == 0 {
                let (mut ring, row, col) = (ring.producer(), row as i32, col as i32);
                for k in (0..steps as i32).map(|step| step * 64) {
                    let slot = ring.acquire();
                    slot.load_2d(Stage::a(slot.stage()), a, [k, row]);
                    slot.load_2d(Stage::b(slot.stage()).at(0), b, [col, k]);
                    slot.load_2d(Stage::b(slot.stage()).at(1), b, [col + 64, k]);
                }
            }
        } else {
            Budget::become_consumer();
            let first_row = (group.index() - 1) * 64;
            let row = row + first_row + AccumulatorFragment::row(group.warp(), lane_id());
            let col = col + AccumulatorFragment::col(lane_id());
            store(multiply(ring.consumer(), first_row, steps), c, [m, n], [row, col]);
        }
    }
}

#[inline(always)] // NOTE: an accumulator that crosses a call goes through memory.
unsafe fn multiply(mut ring: Consumer<Stage, STAGES, BlockScope>, first_row: u32, steps: u32) -> Accumulator<64> {
    let mut accumulator = Accumulator::zeroed();
    let mut pending = accumulator.begin();
    for _ in 0..steps {
        // SAFETY: the whole warp group is here, and the operands are tiles of the slot.
        let read = unsafe {
            pending.multiply(ring.wait(), |products, slot| {
                let a = Stage::a(slot.stage()).k_major(first_row);
                let b = Stage::b(slot.stage()).mn_major();
                seq!(STEP in 0..4 { products.add::<Bf16, _>(a, b, STEP); });
            })
        };
        read.into_iter().for_each(|slot| slot.release());
    }
    // SAFETY: the whole warp group is here.
    unsafe { pending.wait() }.into_iter().for_each(|slot| slot.release());
    accumulator
}

#[inline(always)]
unsafe fn store(mut accumulator: Accumulator<64>, c: *mut u32, [m, n]: [u32; 2], [row, col]: [u32; 2]) {
    let d = accumulator.read();
    let pair = |row: u32, col: u32, pair: [f32; 2]| {
        if row < m && col < n {
            let at = u64::from(row) * u64::from(n) + u64::from(col);
            // SAFETY: N is even, so a pair is within C as a whole, and aligned to 8 bytes.
            unsafe { st_global_v2_u32(c.wrapping_add(at as usize), pair.map(f32::to_bits)) };
        }
    };
    seq!(J in 0..16 {
        pair(row, col + J * 8, [d[J * 4], d[J * 4 + 1]]);
        pair(row + 8, col + J * 8, [d[J * 4 + 2], d[J * 4 + 3]]);
    });
}
