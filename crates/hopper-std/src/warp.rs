//! A warp's lanes: position and exchange.

use crate::ptx::{special, warp};

/// This thread's lane, 0 to 31.
#[inline(always)]
pub fn lane_id() -> u32 {
    // SAFETY: reading a special register has no preconditions.
    unsafe { special::laneid() }
}

/// The value that lane `lane` has, in every lane.
///
/// # Safety
/// All 32 lanes call it together, with the same `lane`.
#[inline(always)]
pub unsafe fn broadcast(value: u32, lane: u32) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { warp::shfl_sync_idx(value, lane) }
}

/// Transposes a 4 x 4 matrix of words within each quad: lane q of four holds row q before and column q after.
///
/// Two rounds of exchange between lanes that differ in one bit: 4 shuffles for 4 words.
///
/// # Safety
/// All 32 lanes call it together.
#[inline(always)]
pub unsafe fn transpose_quad(row: [u32; 4]) -> [u32; 4] {
    let lane = lane_id();
    let odd = lane & 1 != 0;
    let high = lane & 2 != 0;
    let [r0, r1, r2, r3] = row;
    // Lanes that differ in bit 0 swap the off-diagonal words of each 2 x 2 block.
    // SAFETY: the caller's promise.
    let (x, y) = unsafe {
        (warp::shfl_sync_bfly(if odd { r0 } else { r1 }, 1), warp::shfl_sync_bfly(if odd { r2 } else { r3 }, 1))
    };
    let (s0, s1) = if odd { (x, r1) } else { (r0, x) };
    let (s2, s3) = if odd { (y, r3) } else { (r2, y) };
    // Lanes that differ in bit 1 swap the off-diagonal 2 x 2 blocks.
    // SAFETY: the caller's promise.
    let (x, y) = unsafe {
        (warp::shfl_sync_bfly(if high { s0 } else { s2 }, 2), warp::shfl_sync_bfly(if high { s1 } else { s3 }, 2))
    };
    if high { [x, y, s2, s3] } else { [s0, s1, x, y] }
}
