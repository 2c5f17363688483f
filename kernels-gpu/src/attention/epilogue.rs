//! The store of a consumer's 64 rows: O divided by the sums, through shared memory, and the log-sum-exps.

#![allow(clippy::eq_op, clippy::erasing_op, clippy::identity_op)]

use hopper_std::half::Half;
use hopper_std::ptx::bulk::{cp_async_bulk_commit_group, cp_async_bulk_wait_group_read};
use hopper_std::ptx::fence::fence_proxy_async_shared_cta;
use hopper_std::ptx::matrix::stmatrix_x4;
use hopper_std::ptx::memory::{st_global_u32, st_global_v2_u32};
use hopper_std::seq;
use hopper_std::sm90::{AccumulatorFragment, NamedBarrier, Shared, Swizzle128, TensorMapRef, Tile};

use super::config::{Arguments, CHUNK, CONSUMER_ROWS, QueryTile, TileWork};
use super::softmax::{Finished, scale_rows};
use super::turn::Meeting;

/// Whose rows these are.
pub(super) struct Place<'a> {
    pub(super) work: &'a TileWork,
    /// The consumer's first row in the tile.
    pub(super) first_row: u32,
    pub(super) warp: u32,
    pub(super) lane: u32,
    pub(super) consumer: u32,
}

/// Stores 64 rows and their log-sum-exps. Warp group.
///
/// # Safety
/// All warps of the warp group call it; nobody reads `staging` any more; the maps are as [`Arguments`] says.
#[inline(always)]
pub(super) unsafe fn store<E: Half, const O: usize, const CHUNKS: usize>(
    arguments: &Arguments,
    map: TensorMapRef<Tile<E, CONSUMER_ROWS, CHUNK, Swizzle128>>,
    place: Place<'_>,
    output: &mut [f32; O],
    finished: Finished,
    staging: Shared<QueryTile<E, CHUNKS>>,
) {
    scale_rows(output, finished.factors);
    // SAFETY: the caller's promise.
    unsafe {
        if arguments.partial.is_null() {
            store_rounded::<E, O, CHUNKS>(map, arguments.query_shift, &place, output, staging);
        } else {
            store_floats(arguments, &place, output);
        }
        store_lse(arguments, &place, finished.lse);
    }
}

/// Rounds the rows and stores them by the copy engine, from where the rows of Q were. Warp group.
///
/// # Safety
/// As [`store`].
#[inline(always)]
unsafe fn store_rounded<E: Half, const O: usize, const CHUNKS: usize>(
    map: TensorMapRef<Tile<E, CONSUMER_ROWS, CHUNK, Swizzle128>>,
    shift: i32,
    place: &Place<'_>,
    output: &[f32; O],
    staging: Shared<QueryTile<E, CHUNKS>>,
) {
    let Place { work, first_row, warp, lane, consumer } = *place;
    // This lane gives the address of a row of one of four matrices: upper and lower rows, eight columns, then the next eight.
    let row = warp * 16 + lane / 8 % 2 * 8 + lane % 8;
    let line = staging.address() + row * 128;
    seq!(J in 0..16 {
        if J * 8 < O {
            let words = [0, 2, 4, 6].map(|r| E::pack(output[J * 8 + r], output[J * 8 + r + 1]));
            let unit = (J % 4 * 2) as u32 + lane / 16;
            let offset = (J / 4 * CONSUMER_ROWS * 128) as u32 + ((unit ^ (row % 8)) * 16);
            // SAFETY: the warp is converged, and the row lies in the staged part.
            unsafe { stmatrix_x4(line + offset, words) };
        }
    });
    // SAFETY: all warps of the consumer are here; the first thread's copies are done reading before it releases the slot.
    unsafe {
        fence_proxy_async_shared_cta();
        Meeting::store(consumer).sync();
        if warp == 0 && lane == 0 {
            let token = work.query_token + first_row as i32;
            let mut chunk = 0;
            while chunk < CHUNKS as u32 {
                let at = [(chunk as usize * CHUNK) as i32, token, work.query_head as i32, work.query_outer, shift];
                map.store_5d(at, staging.at(chunk));
                chunk += 1;
            }
            cp_async_bulk_commit_group();
            cp_async_bulk_wait_group_read::<0>();
        }
    }
}

/// Stores the rows as they are: `2 * O` floats to a row. Warp group.
///
/// # Safety
/// As [`store`].
#[inline(always)]
unsafe fn store_floats<const O: usize>(arguments: &Arguments, place: &Place<'_>, output: &[f32; O]) {
    let (upper, column) = (AccumulatorFragment::row(place.warp, place.lane), AccumulatorFragment::col(place.lane));
    seq!(HALF in 0..2 {
        let row = place.first_row + upper + HALF * 8;
        if row < place.work.num_rows {
            let at = (place.work.lse_index + row) as usize * (O * 2) + column as usize;
            let line = arguments.partial.wrapping_add(at);
            seq!(J in 0..32 {
                if J * 4 < O {
                    let pair = [output[J * 4 + HALF * 2].to_bits(), output[J * 4 + HALF * 2 + 1].to_bits()];
                    // SAFETY: there is a line for each row.
                    unsafe { st_global_v2_u32(line.wrapping_add(J * 8).cast(), pair) };
                }
            });
        }
    });
}

/// Stores the log-sum-exps of the rows that there are, unless nobody asks for them. Warp group.
///
/// # Safety
/// As [`store`].
#[inline(always)]
unsafe fn store_lse(arguments: &Arguments, place: &Place<'_>, lse: [f32; 2]) {
    if arguments.lse.is_null() || !place.lane.is_multiple_of(4) {
        return;
    }
    seq!(HALF in 0..2 {
        let row = place.first_row + AccumulatorFragment::row(place.warp, place.lane) + HALF * 8;
        if row < place.work.num_rows {
            let address = arguments.lse.wrapping_add((place.work.lse_index + row) as usize);
            // SAFETY: there is one for each row.
            unsafe { st_global_u32(address.cast(), [lse[HALF].to_bits()]) };
        }
    });
}
