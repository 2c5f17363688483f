//! The end of a piece: parts into the workspace, sums to Y.

// `seq!` writes an expression out for each index, and for index 0 it says what nobody would write by hand.
#![allow(clippy::erasing_op, clippy::identity_op)]

use hopper_std::global::GlobalArray;
use hopper_std::half::Half;
use hopper_std::ptx::atomic::atom_acq_rel_gpu_global_add_u32;
use hopper_std::ptx::fence::fence_acq_rel_gpu;
use hopper_std::ptx::memory::{ld_global_nc_u16, ld_global_v4_u32, st_global_u16, st_global_u32, st_global_v4_u32};
use hopper_std::ptx::warp::{bar_warp_sync, movmatrix_trans_b16};
use hopper_std::ptx::wgmma::Registers;
use hopper_std::sm90::Accumulator;
use hopper_std::{thread, warp};

use super::{BLOCK_ROWS, Piece, WARP_ROWS, WARPS};

/// Where sums go.
///
/// | field | what it is |
/// | --- | --- |
/// | `y` | Y: `num_tokens` rows of `num_outputs` 16-bit elements, `leading_dimension` from row to row |
/// | `bias` | one 16-bit element for each output, or null |
/// | `workspace` | parts: for each panel of tokens and each slot, [`WARPS`] x 16 x (tokens of a panel) floats |
/// | `counters` | for each panel and each row block, [`WARPS`] words that are 0, and are 0 again after the launch |
/// | `slots` | slots of the workspace that a panel has |
/// | `row_blocks` | row blocks of W |
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Y.
    pub y: *mut u8,
    /// Elements from a token's row to the next one's.
    pub leading_dimension: u64,
    /// M.
    pub num_outputs: u32,
    /// N.
    pub num_tokens: u32,
    /// A bias, or null.
    pub bias: GlobalArray<u16>,
    /// Parts.
    pub workspace: *mut f32,
    /// Who has been here.
    pub counters: *mut u32,
    /// Slots of a panel.
    pub slots: u32,
    /// Row blocks.
    pub row_blocks: u32,
}

/// Stores the sums of `piece`, or puts them where the last one adds them up. Warp: warp `warp` of those that multiply.
///
/// # Safety
/// The launch contract of [`Output`]; all warps of a warp group call it, each once for each of its pieces, when the products are done.
#[inline(always)]
pub unsafe fn finish<E: Half, const REGISTERS: usize>(
    output: &Output,
    piece: &Piece,
    warp: u32,
    sums: &mut Accumulator<REGISTERS>,
) where
    [f32; REGISTERS]: Registers,
{
    if piece.num_parts > 1 {
        // SAFETY: the caller's promise.
        unsafe {
            put::<REGISTERS>(output, piece, warp, sums);
            if !is_last(output, piece, warp) {
                return;
            }
            add_up::<REGISTERS>(output, piece, warp, sums);
        }
    }
    // SAFETY: the caller's promise.
    unsafe { store::<E, REGISTERS>(output, piece, warp, sums) };
}

/// The address of this lane's four floats in part `part`; the next four are 128 floats on.
#[inline(always)]
fn place<const REGISTERS: usize>(output: &Output, piece: &Piece, warp: u32, part: u32) -> *mut u32 {
    let slot = u64::from(thread::block_idx_y() * output.slots + piece.first_slot + part);
    let of_warp = (slot * WARPS as u64 + u64::from(warp)) * (REGISTERS * 32) as u64;
    output.workspace.wrapping_add(of_warp as usize + warp::lane_id() as usize * 4).cast()
}

/// Puts a part into the workspace. Warp.
///
/// # Safety
/// As [`finish`].
#[inline(always)]
unsafe fn put<const REGISTERS: usize>(output: &Output, piece: &Piece, warp: u32, sums: &mut Accumulator<REGISTERS>)
where
    [f32; REGISTERS]: Registers,
{
    let to = place::<REGISTERS>(output, piece, warp, piece.part);
    let sums = sums.read();
    hopper_std::seq!(J in 0..64 {
        if J * 4 < REGISTERS {
            let words = [sums[J * 4], sums[J * 4 + 1], sums[J * 4 + 2], sums[J * 4 + 3]].map(f32::to_bits);
            // SAFETY: the slot is this part's.
            unsafe { st_global_v4_u32(to.wrapping_add(J * 128), words) };
        }
    });
}

/// Counts this warp; whether all parts of its rows are there. Warp.
///
/// # Safety
/// As [`finish`], when this warp's part is in the workspace.
#[inline(always)]
unsafe fn is_last(output: &Output, piece: &Piece, warp: u32) -> bool {
    let row_block = thread::block_idx_y() * output.row_blocks + piece.row_block;
    let counter = output.counters.wrapping_add(row_block as usize * WARPS + warp as usize);
    let mut before = 0;
    // SAFETY: the counter is of these rows, and nobody else's; the other lanes' parts are visible before lane 0 counts, and what
    // others counted before is visible to all lanes after it.
    unsafe {
        fence_acq_rel_gpu();
        bar_warp_sync();
        if warp::lane_id() == 0 {
            before = atom_acq_rel_gpu_global_add_u32(counter, 1);
            if before + 1 == piece.num_parts {
                st_global_u32(counter, [0]);
            }
        }
        before = warp::broadcast(before, 0);
        let is_last = before + 1 == piece.num_parts;
        if is_last {
            fence_acq_rel_gpu();
        }
        is_last
    }
}

/// Adds up all parts, in their order. Warp.
///
/// # Safety
/// As [`finish`], when all parts are in the workspace.
#[inline(always)]
unsafe fn add_up<const REGISTERS: usize>(output: &Output, piece: &Piece, warp: u32, sums: &mut Accumulator<REGISTERS>)
where
    [f32; REGISTERS]: Registers,
{
    let sums = sums.modify();
    let mut part = 0;
    while part < piece.num_parts {
        let from = place::<REGISTERS>(output, piece, warp, part);
        hopper_std::seq!(J in 0..64 {
            if J * 4 < REGISTERS {
                // SAFETY: the slot is a part of these rows.
                let words = unsafe { ld_global_v4_u32(from.wrapping_add(J * 128)) };
                let [a, b, c, d] = words.map(f32::from_bits);
                let first = part == 0;
                sums[J * 4] = if first { a } else { sums[J * 4] + a };
                sums[J * 4 + 1] = if first { b } else { sums[J * 4 + 1] + b };
                sums[J * 4 + 2] = if first { c } else { sums[J * 4 + 2] + c };
                sums[J * 4 + 3] = if first { d } else { sums[J * 4 + 3] + d };
            }
        });
        part += 1;
    }
}

/// Adds the bias, rounds and stores. Warp.
///
/// A lane holds two tokens of a row of W. Transposed, 8 x 8 at a time, it holds two rows of a token, which are neighbours in Y.
///
/// # Safety
/// As [`finish`].
#[inline(always)]
unsafe fn store<E: Half, const REGISTERS: usize>(
    output: &Output,
    piece: &Piece,
    warp: u32,
    sums: &mut Accumulator<REGISTERS>,
) where
    [f32; REGISTERS]: Registers,
{
    let lane = warp::lane_id();
    let first_row = piece.row_block * BLOCK_ROWS as u32 + warp * WARP_ROWS as u32;
    // SAFETY: a row beyond the last has no bias.
    let bias = [0, 8].map(|half| unsafe { bias_of::<E>(output, first_row + half + lane / 4) });
    let (row, token) = (first_row + lane % 4 * 2, thread::block_idx_y() * (REGISTERS * 2) as u32 + lane / 4);
    let pairs = output.leading_dimension.is_multiple_of(2) && (output.y as usize).is_multiple_of(4);
    let sums = sums.read();
    hopper_std::seq!(J in 0..32 {
        if J * 4 < REGISTERS {
            let upper = E::pack(sums[J * 4] + bias[0], sums[J * 4 + 1] + bias[0]);
            let lower = E::pack(sums[J * 4 + 2] + bias[1], sums[J * 4 + 3] + bias[1]);
            // SAFETY: the whole warp is here; a place beyond Y is not stored.
            unsafe {
                let (upper, lower) = (movmatrix_trans_b16(upper), movmatrix_trans_b16(lower));
                let token = token + J * 8;
                if token < output.num_tokens {
                    let line = output.y.wrapping_add((u64::from(token) * output.leading_dimension) as usize * 2);
                    store_pair(line, row, output.num_outputs, pairs, upper);
                    store_pair(line, row + 8, output.num_outputs, pairs, lower);
                }
            }
        }
    });
}

/// The bias of an output, 0 where there is none.
///
/// # Safety
/// The launch contract of [`Output`].
#[inline(always)]
unsafe fn bias_of<E: Half>(output: &Output, row: u32) -> f32 {
    if output.bias.is_null() || row >= output.num_outputs {
        return 0.0;
    }
    // SAFETY: the bias has `num_outputs` elements.
    E::unpack(u32::from(unsafe { ld_global_nc_u16(output.bias.as_ptr().wrapping_add(row as usize)) })).0
}

/// Stores outputs `row` and `row + 1` of the token whose row of Y is `line`, those that there are; together where `pairs` are aligned.
///
/// # Safety
/// `line` has `num_outputs` elements.
#[inline(always)]
unsafe fn store_pair(line: *mut u8, row: u32, num_outputs: u32, pairs: bool, pair: u32) {
    let to = line.wrapping_add(row as usize * 2);
    // SAFETY: the caller's promise.
    unsafe {
        if pairs && row + 1 < num_outputs {
            st_global_u32(to.cast(), [pair]);
            return;
        }
        if row < num_outputs {
            st_global_u16(to.cast(), pair as u16);
        }
        if row + 1 < num_outputs {
            st_global_u16(to.wrapping_add(2).cast(), (pair >> 16) as u16);
        }
    }
}
