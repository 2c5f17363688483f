//! The third layer: few elements, one after the other, on the CUDA cores.

// `seq!` writes an expression out for each index, and for index 0 it says what nobody would write by hand.
#![allow(clippy::erasing_op, clippy::identity_op)]

use hopper_std::half::Half;
use hopper_std::ptx::convert::fma_rn_f32;
use hopper_std::ptx::memory::ld_global_nc_u16;
use hopper_std::ptx::wgmma::Registers;
use hopper_std::sm90::Accumulator;
use hopper_std::{thread, warp};

use super::config::Arguments;
use super::layout::RESIDUAL_COLS;
use crate::linear::{BLOCK_ROWS, Piece, WARP_ROWS};

/// Adds the residual of a warp's rows to its sums, in the order of columns. Warp.
///
/// # Safety
/// The launch contract of [`Arguments`]; `sums` are those of the rows of warp `warp` of the piece.
#[inline(always)]
pub(super) unsafe fn add_residual<E: Half, const REGISTERS: usize>(
    arguments: &Arguments,
    piece: &Piece,
    warp: u32,
    sums: &mut Accumulator<REGISTERS>,
) where
    [f32; REGISTERS]: Registers,
{
    let lane = warp::lane_id();
    let row = piece.row_block * BLOCK_ROWS as u32 + warp * WARP_ROWS as u32 + lane / 4;
    let token = thread::block_idx_y() * (REGISTERS * 2) as u32 + lane % 4 * 2;
    // SAFETY: the caller's promise. A lane holds elements of two rows.
    unsafe {
        add_row::<E, REGISTERS, 0>(arguments, row, token, sums);
        add_row::<E, REGISTERS, 2>(arguments, row + 8, token, sums);
    }
}

/// Adds the residual of one row to the sums that have it: registers `FIRST` and the next of every four.
///
/// # Safety
/// As [`add_residual`].
#[inline(always)]
unsafe fn add_row<E: Half, const REGISTERS: usize, const FIRST: usize>(
    arguments: &Arguments,
    row: u32,
    token: u32,
    sums: &mut Accumulator<REGISTERS>,
) where
    [f32; REGISTERS]: Registers,
{
    if row >= arguments.output.num_outputs {
        return;
    }
    let sums = sums.modify();
    let segments = (arguments.col_tiles * super::layout::TILE_COLS as u32).div_ceil(RESIDUAL_COLS as u32);
    let mut segment = 0;
    while segment < segments {
        // SAFETY: each row has an offset for each segment, and there is one more.
        let (mut entry, end) = unsafe {
            let offsets = arguments.residual_offsets.skip(u64::from(row) * u64::from(segments) + u64::from(segment));
            (offsets.get(0), offsets.get(1))
        };
        while entry < end {
            // SAFETY: the entry is there.
            let word = unsafe { arguments.residual.get(entry) };
            let value = E::unpack(word >> 16).0;
            let col = segment as usize * RESIDUAL_COLS + (word & 0xffff) as usize;
            let column = arguments.x.wrapping_add(col * 2);
            hopper_std::seq!(J in 0..32 {
                if J * 4 < REGISTERS {
                    // SAFETY: X has the column.
                    unsafe {
                        let x = [0, 1].map(|next| load_x::<E>(arguments, column, token + J * 8 + next));
                        sums[J * 4 + FIRST] = fma_rn_f32(value, x[0], sums[J * 4 + FIRST]);
                        sums[J * 4 + FIRST + 1] = fma_rn_f32(value, x[1], sums[J * 4 + FIRST + 1]);
                    }
                }
            });
            entry += 1;
        }
        segment += 1;
    }
}

/// The element of a token in a column of X; 0 beyond the last token.
///
/// # Safety
/// `column` is the address of a column's element of token 0.
#[inline(always)]
unsafe fn load_x<E: Half>(arguments: &Arguments, column: *const u8, token: u32) -> f32 {
    if token >= arguments.output.num_tokens {
        return 0.0;
    }
    let at = (u64::from(token) * arguments.x_leading_dimension) as usize * 2;
    // SAFETY: the element is one of X.
    E::unpack(u32::from(unsafe { ld_global_nc_u16(column.wrapping_add(at).cast()) })).0
}
