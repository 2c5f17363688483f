//! The producer of X: one thread that keeps its ring full, across pieces.

use hopper_std::half::Half;
use hopper_std::ptx::tensor::CachePolicy;
use hopper_std::sm90::{BlockScope, Producer, TensorMapRef};
use hopper_std::thread;

use super::config::{Arguments, XTile};
use crate::linear::{STEP_COLS, UNIT_STEPS};

/// Fills the ring with the columns of X of this worker's pieces. Thread.
///
/// # Safety
/// The launch contract of [`Arguments`]; one thread of the block calls it.
#[inline(always)]
pub(super) unsafe fn produce<E: Half, const TOKENS: usize, const STAGES: usize>(
    arguments: &Arguments,
    map_x: TensorMapRef<XTile<E, TOKENS>>,
    mut ring: Producer<XTile<E, TOKENS>, STAGES, BlockScope>,
) {
    map_x.prefetch();
    let first_token = (thread::block_idx_y() * TOKENS as u32) as i32;
    let mut index = arguments.work.first(thread::block_idx_x());
    loop {
        // SAFETY: the list has a worker's pieces.
        let piece = unsafe { arguments.work.piece(index) };
        let (mut step, end) = (piece.begin * UNIT_STEPS as u32, piece.end * UNIT_STEPS as u32);
        while step < end {
            let slot = ring.acquire();
            let at = [(step * STEP_COLS as u32) as i32, first_token];
            // SAFETY: the stage is this one tile. Every block reads X: it should stay in L2.
            unsafe { slot.load_2d_hinted(slot.stage(), map_x, at, CachePolicy::EVICT_LAST) };
            step += 1;
        }
        if piece.behind == 0 {
            break;
        }
        index += 1;
    }
}
