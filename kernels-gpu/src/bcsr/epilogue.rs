//! The store of a consumer's 64 rows: alpha D + beta C, rounded once.
//!
//! A thread holds two rows of pairs of neighbouring columns ([`AccumulatorFragment`]). Written as they are, the four
//! lanes of a quad would store 4 bytes each. Four pairs are therefore exchanged within the quad first, so that each lane
//! stores 16 bytes; for a column-major C, each 8 x 8 matrix is transposed in the warp before.

use hopper_std::half::Half;
use hopper_std::ptx::memory::{ld_global_u16, ld_global_u32, st_global_u16, st_global_u32, st_global_v4_u32};
use hopper_std::ptx::warp::movmatrix_trans_b16;
use hopper_std::seq;
use hopper_std::sm90::AccumulatorFragment;
use hopper_std::warp::{lane_id, transpose_quad};

use super::config::{Arguments, OutputKind};

/// Where a warp's part of the output begins.
#[derive(Clone, Copy)]
pub struct Place {
    /// The first row of the consumer's 64.
    pub row: u32,
    /// Its first column.
    pub col: u32,
    /// The warp in its group.
    pub warp: u32,
}

/// Stores one consumer's part of a tile. Warp group.
///
/// # Safety
/// C has `num_rows` x `num_cols` elements at its strides, and nothing else writes this part.
#[inline(always)]
pub unsafe fn store<E: Half, const REGISTERS: usize>(
    arguments: &Arguments,
    registers: &[f32; REGISTERS],
    place: Place,
) {
    // SAFETY: the caller's promise, for each kind.
    unsafe {
        if arguments.output == OutputKind::HalfRows as u32 {
            store_rows::<E, REGISTERS>(arguments, registers, place);
        } else if arguments.output == OutputKind::HalfCols as u32 {
            store_cols::<E, REGISTERS>(arguments, registers, place);
        } else {
            store_any::<E, REGISTERS>(arguments, registers, place);
        }
    }
}

/// Row-major, 16 bytes a lane: lane q of a quad takes columns 8 q to 8 q + 7 of each 32.
#[inline(always)]
unsafe fn store_rows<E: Half, const REGISTERS: usize>(
    arguments: &Arguments,
    registers: &[f32; REGISTERS],
    place: Place,
) {
    let lane = lane_id();
    let row = place.row + AccumulatorFragment::row(place.warp, lane);
    let alpha = arguments.alpha;
    seq!(J in 0..8 {
        if J * 16 < REGISTERS {
            let pair = |r: usize| E::pack(alpha * registers[J * 16 + r], alpha * registers[J * 16 + r + 1]);
            let col = place.col + J * 32 + lane % 4 * 8;
            // SAFETY: the warp is converged here; `store_line` stays within C.
            unsafe {
                let upper = transpose_quad([pair(0), pair(4), pair(8), pair(12)]);
                let lower = transpose_quad([pair(2), pair(6), pair(10), pair(14)]);
                store_line(arguments, row, arguments.num_rows, arguments.row_stride, col, arguments.num_cols, upper);
                store_line(arguments, row + 8, arguments.num_rows, arguments.row_stride, col, arguments.num_cols, lower);
            }
        }
    });
}

/// Column-major, 16 bytes a lane: lane q of a quad takes eight rows of one of two columns.
#[inline(always)]
unsafe fn store_cols<E: Half, const REGISTERS: usize>(
    arguments: &Arguments,
    registers: &[f32; REGISTERS],
    place: Place,
) {
    let lane = lane_id();
    let quad = lane % 4;
    let row = place.row + place.warp * 16 + quad % 2 * 8;
    let alpha = arguments.alpha;
    seq!(J in 0..16 {
        if J * 8 < REGISTERS {
            // SAFETY: the warp is converged here.
            let turned =
                |r: usize| unsafe { movmatrix_trans_b16(E::pack(alpha * registers[J * 8 + r], alpha * registers[J * 8 + r + 1])) };
            let col = place.col + J * 16 + quad / 2 * 8 + lane / 4;
            // SAFETY: the warp is converged here; `store_line` stays within C.
            unsafe {
                let eight = transpose_quad([turned(0), turned(2), turned(4), turned(6)]);
                store_line(arguments, col, arguments.num_cols, arguments.col_stride, row, arguments.num_rows, eight);
            }
        }
    });
}

/// Stores eight elements of line `major` from `minor` on, or as many as there are.
///
/// # Safety
/// The lines of C are aligned to 16 bytes and contiguous; `minor` is a multiple of 8.
#[inline(always)]
unsafe fn store_line(
    arguments: &Arguments,
    major: u32,
    num_major: u32,
    stride: u64,
    minor: u32,
    num_minor: u32,
    words: [u32; 4],
) {
    if major >= num_major || minor >= num_minor {
        return;
    }
    let address = arguments.c.wrapping_add(((u64::from(major) * stride + u64::from(minor)) * 2) as usize);
    if minor + 8 <= num_minor {
        // SAFETY: all eight are within C, and aligned.
        unsafe { st_global_v4_u32(address.cast(), words) };
    } else {
        seq!(I in 0..7 {
            if minor + I < num_minor {
                // SAFETY: this one is within C.
                unsafe { st_global_u16(address.cast::<u16>().wrapping_add(I), (words[I / 2] >> (I % 2 * 16)) as u16) };
            }
        });
    }
}

/// Any strides, any beta, either type: one element at a time.
#[inline(always)]
unsafe fn store_any<E: Half, const REGISTERS: usize>(
    arguments: &Arguments,
    registers: &[f32; REGISTERS],
    place: Place,
) {
    let lane = lane_id();
    let row = place.row + AccumulatorFragment::row(place.warp, lane);
    let col = place.col + AccumulatorFragment::col(lane);
    let origin = u64::from(row) * arguments.row_stride + u64::from(col) * arguments.col_stride;
    let down = 8 * arguments.row_stride;
    seq!(J in 0..32 {
        if J * 4 < REGISTERS {
            let at = origin + J * 8 * arguments.col_stride;
            let (left, right) = (col + J * 8 < arguments.num_cols, col + J * 8 + 1 < arguments.num_cols);
            let (upper, lower) = (row < arguments.num_rows, row + 8 < arguments.num_rows);
            // SAFETY: only what is within C is touched.
            unsafe {
                store_one::<E>(arguments, at, registers[J * 4], upper && left);
                store_one::<E>(arguments, at + arguments.col_stride, registers[J * 4 + 1], upper && right);
                store_one::<E>(arguments, at + down, registers[J * 4 + 2], lower && left);
                store_one::<E>(arguments, at + down + arguments.col_stride, registers[J * 4 + 3], lower && right);
            }
        }
    });
}

/// Stores one element, if it is `inside`. Beta = 0 does not read C.
#[inline(always)]
unsafe fn store_one<E: Half>(arguments: &Arguments, at: u64, value: f32, inside: bool) {
    if !inside {
        return;
    }
    let mut value = arguments.alpha * value;
    if arguments.output == OutputKind::FloatAny as u32 {
        let address = arguments.c.cast::<u32>().wrapping_add(at as usize);
        // SAFETY: the element is within C.
        unsafe {
            if arguments.beta != 0.0 {
                value += arguments.beta * f32::from_bits(ld_global_u32(address)[0]);
            }
            st_global_u32(address, [value.to_bits()]);
        }
    } else {
        let address = arguments.c.cast::<u16>().wrapping_add(at as usize);
        // SAFETY: the element is within C.
        unsafe {
            if arguments.beta != 0.0 {
                value += arguments.beta * E::unpack(u32::from(ld_global_u16(address))).0;
            }
            st_global_u16(address, E::pack(value, 0.0) as u16);
        }
    }
}
