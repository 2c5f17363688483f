//! A warp's lanes: position and exchange.

use hopper_macros::instruction;

use crate::ptx::special;
use crate::ptx::warp::{shfl_sync_bfly, shfl_sync_idx, shfl_sync_up_or_zero, vote_sync_ballot};

/// This thread's lane, 0 to 31.
#[instruction]
pub fn lane_id() -> u32 {
    // SAFETY: reading a special register has no preconditions.
    unsafe { special::laneid() }
}

/// The value that lane `lane` has, in every lane.
///
/// # Safety
/// All 32 lanes call it together, with the same `lane`.
#[instruction]
pub unsafe fn broadcast(value: u32, lane: u32) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { shfl_sync_idx(value, lane) }
}

/// Whether some lane's predicate holds, in every lane.
///
/// # Safety
/// All 32 lanes call it together.
#[instruction]
pub unsafe fn any(predicate: bool) -> bool {
    // SAFETY: the caller's promise.
    unsafe { vote_sync_ballot(predicate) != 0 }
}

/// The sum of the values of this lane and of all lanes before it.
///
/// # Safety
/// All 32 lanes call it together.
#[instruction]
pub unsafe fn inclusive_sum(value: u32) -> u32 {
    let (mut sum, mut distance) = (value, 1);
    while distance < 32 {
        // SAFETY: the caller's promise.
        sum += unsafe { shfl_sync_up_or_zero(sum, distance) };
        distance *= 2;
    }
    sum
}

/// Transposes a 4 x 4 matrix of words within each quad: lane q of four holds row q before and column q after.
///
/// Two rounds of exchange between lanes that differ in one bit: 4 shuffles for 4 words.
///
/// # Safety
/// All 32 lanes call it together.
#[instruction]
pub unsafe fn transpose_quad(row: [u32; 4]) -> [u32; 4] {
    let lane = lane_id();
    let odd = lane & 1 != 0;
    let high = lane & 2 != 0;
    let [r0, r1, r2, r3] = row;
    // Lanes that differ in bit 0 swap the off-diagonal words of each 2 x 2 block.
    // SAFETY: the caller's promise.
    let (x, y) = unsafe { (shfl_sync_bfly(select(odd, r0, r1), 1), shfl_sync_bfly(select(odd, r2, r3), 1)) };
    let (s0, s1) = (select(odd, x, r0), select(odd, r1, x));
    let (s2, s3) = (select(odd, y, r2), select(odd, r3, y));
    // Lanes that differ in bit 1 swap the off-diagonal 2 x 2 blocks.
    // SAFETY: the caller's promise.
    let (x, y) = unsafe { (shfl_sync_bfly(select(high, s0, s2), 2), shfl_sync_bfly(select(high, s1, s3), 2)) };
    [select(high, x, s0), select(high, y, s1), select(high, s2, x), select(high, s3, y)]
}

/// A choice without a branch.
#[inline(always)]
fn select(condition: bool, then: u32, otherwise: u32) -> u32 {
    core::hint::select_unpredictable(condition, then, otherwise)
}

#[cfg(test)]
mod tests {
    /// The exchange of [`transpose_quad`](super::transpose_quad), with the shuffles carried out on all four lanes.
    #[test]
    fn two_rounds_of_swaps_transpose() {
        let rows: [[u32; 4]; 4] = core::array::from_fn(|lane| core::array::from_fn(|word| (lane * 4 + word) as u32));
        let round = |rows: [[u32; 4]; 4], bit: usize, pairs: [(usize, usize); 2]| -> [[u32; 4]; 4] {
            core::array::from_fn(|lane| {
                let mut row = rows[lane];
                for (first, second) in pairs {
                    let (kept_back, taken) = if lane & bit != 0 { (second, first) } else { (first, second) };
                    row[taken] = rows[lane ^ bit][kept_back];
                }
                row
            })
        };
        let rows = round(round(rows, 1, [(0, 1), (2, 3)]), 2, [(0, 2), (1, 3)]);
        for (lane, row) in rows.iter().enumerate() {
            assert_eq!(*row, core::array::from_fn::<u32, 4, _>(|word| (word * 4 + lane) as u32));
        }
    }
}
