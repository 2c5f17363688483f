//! The store of a consumer's 64 rows: alpha D + beta C, rounded once.
//!
//! A thread holds pairs of neighbouring columns of two rows ([`AccumulatorFragment`]). Written as they are, the four
//! lanes of a quad would store 4 bytes each. So pairs are exchanged within the quad first, and each lane stores *eight
//! neighbours of one line* of C. A line is a row of a row-major C; for a column-major C each 8 x 8 matrix is transposed
//! in the warp before, and a line is a column.
//!
//! Two ways: the fast one packs to 16 bits first (beta = 0, aligned, whole eights) and is written out for every register; the general
//! one exchanges floats, in a loop over groups of eight registers, and stores element by element where it must.

#![allow(
    clippy::erasing_op,
    clippy::identity_op,
    reason = "the unrolled indices start at zero, and one form serves all"
)]

use hopper_std::half::Half;
use hopper_std::hint::opaque;
use hopper_std::ptx::memory::{
    ld_global_u16, ld_global_u32, st_global_cs_v4_u32, st_global_u16, st_global_u32, st_global_v4_u32,
};
use hopper_std::ptx::warp::movmatrix_trans_b16;
use hopper_std::ptx::wgmma::Registers;
use hopper_std::seq;
use hopper_std::sm90::{Accumulator, AccumulatorFragment};
use hopper_std::warp::{lane_id, transpose_quad};

use super::config::{Arguments, OutputKind};

/// Where a consumer's part of the output begins.
#[derive(Clone, Copy)]
pub struct Place {
    /// The first of its 64 rows.
    pub row: u32,
    /// Its first column.
    pub col: u32,
    /// This thread's warp in the group.
    pub warp: u32,
}

/// Eight neighbours of a line of C: `(line, first)` and how many lines and elements of a line there are.
#[derive(Clone, Copy)]
struct Eight {
    line: u32,
    num_lines: u32,
    first: u32,
    length: u32,
}

impl Eight {
    /// The position of the first one, in elements from the base of C; in C or not.
    #[inline(always)]
    fn position(self, arguments: &Arguments) -> usize {
        (u64::from(self.line) * arguments.leading_dimension + u64::from(self.first)) as usize
    }

    /// The address of the first one, of 16 bits; in C or not.
    #[inline(always)]
    fn address(self, arguments: &Arguments) -> *mut u8 {
        arguments.c.wrapping_add(self.position(arguments) * 2)
    }

    /// How many of the eight are in C.
    #[inline(always)]
    fn count(self) -> u32 {
        if self.line >= self.num_lines || self.first >= self.length {
            return 0;
        }
        let left = self.length - self.first;
        if left < 8 { left } else { 8 }
    }
}

/// Stores one consumer's part of a tile. Warp group.
///
/// # Safety
/// C is as [`Arguments`] says, and nothing else writes this part.
#[inline(always)]
pub unsafe fn store<E: Half, const REGISTERS: usize>(
    arguments: &Arguments,
    accumulator: &mut Accumulator<REGISTERS>,
    place: Place,
) where
    [f32; REGISTERS]: Registers,
{
    let kind = arguments.output;
    // SAFETY: the caller's promise, for each kind.
    unsafe {
        if kind == OutputKind::HalfRows as u32 {
            store_rows_packed::<E, REGISTERS>(arguments, accumulator, place);
        } else if kind == OutputKind::HalfCols as u32 {
            store_cols_packed::<E, REGISTERS>(arguments, accumulator, place);
        } else {
            store_general::<E, REGISTERS>(arguments, accumulator, place);
        }
    }
}

/// The eight that this lane has of 32 columns from `col` on, after the exchange: columns 8 q to 8 q + 7 of its row.
#[inline(always)]
fn eight_of_row(arguments: &Arguments, place: Place, lane: u32, columns: u32, down: u32) -> Eight {
    Eight {
        line: place.row + AccumulatorFragment::row(place.warp, lane) + down,
        num_lines: arguments.num_rows,
        first: place.col + columns + lane % 4 * 8,
        length: arguments.num_cols,
    }
}

/// The eight that this lane has of 16 columns from `col` on, after transposition and exchange: an upper or lower eight
/// rows of one of two columns.
#[inline(always)]
fn eight_of_col(arguments: &Arguments, place: Place, lane: u32, columns: u32) -> Eight {
    let quad = lane % 4;
    Eight {
        line: place.col + columns + quad / 2 * 8 + lane / 4,
        num_lines: arguments.num_cols,
        first: place.row + place.warp * 16 + quad % 2 * 8,
        length: arguments.num_rows,
    }
}

/// The eight that this lane has of 16 columns of a row-major C, after the exchange of `[upper, upper, lower, lower]`.
#[inline(always)]
fn eight_of_two_rows(arguments: &Arguments, place: Place, lane: u32, columns: u32) -> Eight {
    let quad = lane % 4;
    Eight {
        line: place.row + AccumulatorFragment::row(place.warp, lane) + quad / 2 * 8,
        num_lines: arguments.num_rows,
        first: place.col + columns + quad % 2 * 8,
        length: arguments.num_cols,
    }
}

/// Row-major, 16 bits, 16 bytes a lane.
#[inline(always)]
unsafe fn store_rows_packed<E: Half, const REGISTERS: usize>(
    arguments: &Arguments,
    accumulator: &mut Accumulator<REGISTERS>,
    place: Place,
) where
    [f32; REGISTERS]: Registers,
{
    let (lane, alpha, registers) = (lane_id(), arguments.alpha, accumulator.read());
    let upper = eight_of_row(arguments, place, lane, 0, 0).address(arguments);
    let lower = upper.wrapping_add(arguments.leading_dimension as usize * 16);
    seq!(J in 0..8 {
        if J * 16 < REGISTERS {
            let pair = |r: usize| E::pack(alpha * registers[J * 16 + r], alpha * registers[J * 16 + r + 1]);
            // SAFETY: the warp is converged here; `store_packed` stays within C.
            unsafe {
                let words = transpose_quad([pair(0), pair(4), pair(8), pair(12)]);
                store_packed(upper.wrapping_add(J * 64), eight_of_row(arguments, place, lane, J * 32, 0), words);
                let words = transpose_quad([pair(2), pair(6), pair(10), pair(14)]);
                store_packed(lower.wrapping_add(J * 64), eight_of_row(arguments, place, lane, J * 32, 8), words);
            }
        }
    });
}

/// Column-major, 16 bits, 16 bytes a lane.
#[inline(always)]
unsafe fn store_cols_packed<E: Half, const REGISTERS: usize>(
    arguments: &Arguments,
    accumulator: &mut Accumulator<REGISTERS>,
    place: Place,
) where
    [f32; REGISTERS]: Registers,
{
    let (lane, alpha, registers) = (lane_id(), arguments.alpha, accumulator.read());
    let at = eight_of_col(arguments, place, lane, 0).address(arguments);
    let sixteen_lines = arguments.leading_dimension as usize * 32;
    seq!(J in 0..16 {
        if J * 8 < REGISTERS {
            let pair = |r: usize| E::pack(alpha * registers[J * 8 + r], alpha * registers[J * 8 + r + 1]);
            // SAFETY: the warp is converged here; `store_packed` stays within C.
            unsafe {
                let turned = |r: usize| movmatrix_trans_b16(pair(r));
                let words = transpose_quad([turned(0), turned(2), turned(4), turned(6)]);
                store_packed(at.wrapping_add(J * sixteen_lines), eight_of_col(arguments, place, lane, J * 16), words);
            }
        }
    });
}

/// Either layout, the general way: a loop over groups of eight registers (16 columns).
///
/// PERF: written out like the fast way it is 5 times the code, spills 2.6 KB and takes ptxas 16 s.
#[inline(always)]
unsafe fn store_general<E: Half, const REGISTERS: usize>(
    arguments: &Arguments,
    accumulator: &mut Accumulator<REGISTERS>,
    place: Place,
) where
    [f32; REGISTERS]: Registers,
{
    let (lane, cols, registers) = (lane_id(), OutputKind::is_cols(arguments.output), accumulator.read());
    let mut index = 0;
    while index < (REGISTERS / 8) as u32 {
        let [u0, u1, d0, d1, u2, u3, d2, d3] = group(registers, index).map(f32::to_bits);
        // SAFETY: the warp is converged here; `store_floats` stays within C.
        unsafe {
            // Two matrices of 8 x 8, an upper (u) and a lower (d) one, twice.
            let (even, odd, eight) = if cols {
                let [a, b, c, d] = [turn(u0, u1), turn(d0, d1), turn(u2, u3), turn(d2, d3)];
                (
                    transpose_quad([a.0, b.0, c.0, d.0]),
                    transpose_quad([a.1, b.1, c.1, d.1]),
                    eight_of_col(arguments, place, lane, index * 16),
                )
            } else {
                (
                    transpose_quad([u0, u2, d0, d2]),
                    transpose_quad([u1, u3, d1, d3]),
                    eight_of_two_rows(arguments, place, lane, index * 16),
                )
            };
            store_floats::<E>(arguments, eight, interleave(even, odd));
        }
        index = opaque(index + 1);
    }
}

/// Registers `8 * index` and on. A match, not an index: the array must stay in registers.
#[inline(always)]
fn group<const REGISTERS: usize>(registers: &[f32; REGISTERS], index: u32) -> [f32; 8] {
    seq!(J in 0..16 {
        match index {
            #(J if J * 8 < REGISTERS => eight_from(registers, J * 8),)*
            _ => eight_from(registers, 0),
        }
    })
}

/// Registers `from` and on; `from` is a constant where this is inlined.
#[inline(always)]
fn eight_from<const REGISTERS: usize>(registers: &[f32; REGISTERS], from: usize) -> [f32; 8] {
    [
        registers[from],
        registers[from + 1],
        registers[from + 2],
        registers[from + 3],
        registers[from + 4],
        registers[from + 5],
        registers[from + 6],
        registers[from + 7],
    ]
}

/// Transposes an 8 x 8 matrix of 32-bit words, of which each lane holds a pair: low halves, then high halves.
///
/// # Safety
/// All 32 lanes call it together.
#[inline(always)]
unsafe fn turn(left: u32, right: u32) -> (u32, u32) {
    // SAFETY: the caller's promise.
    let (low, high) = unsafe {
        (movmatrix_trans_b16(left & 0xffff | right << 16), movmatrix_trans_b16(left >> 16 | right & 0xffff_0000))
    };
    (low & 0xffff | high << 16, low >> 16 | high & 0xffff_0000)
}

/// Even and odd elements back in order.
#[inline(always)]
fn interleave(even: [u32; 4], odd: [u32; 4]) -> [f32; 8] {
    [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]].map(f32::from_bits)
}

/// Stores eight packed elements, where they are in C.
///
/// # Safety
/// `eight` is at `at`; the base and the lines of C are aligned to 16 bytes, and their length is a multiple of 8.
#[inline(always)]
unsafe fn store_packed(at: *mut u8, eight: Eight, words: [u32; 4]) {
    if eight.line < eight.num_lines && eight.first < eight.length {
        // SAFETY: all eight are within C, and aligned.
        unsafe { st_global_cs_v4_u32(at.cast(), words) };
    }
}

/// Stores alpha times eight sums, plus beta times what was there, or as many as are in C. Beta = 0 does not read C.
///
/// # Safety
/// C is as [`Arguments`] says.
#[inline(always)]
unsafe fn store_floats<E: Half>(arguments: &Arguments, eight: Eight, mut sums: [f32; 8]) {
    let (at, count) = (eight.position(arguments), eight.count());
    let float = OutputKind::is_float(arguments.output);
    let address = arguments.c.wrapping_add(at * if float { 4 } else { 2 });
    if float && count == 8 && arguments.beta == 0.0 && (address as usize).is_multiple_of(16) {
        let [a, b, c, d, e, f, g, h] = sums.map(|sum| (arguments.alpha * sum).to_bits());
        // SAFETY: all eight are within C, and aligned.
        unsafe {
            st_global_v4_u32(address.cast(), [a, b, c, d]);
            st_global_v4_u32(address.wrapping_add(16).cast(), [e, f, g, h]);
        }
        return;
    }
    let mut index = 0;
    while index < count {
        // SAFETY: this one is within C.
        unsafe { store_one::<E>(arguments, at + index as usize, sums[0], float) };
        // The array is moved, not indexed: an index that is not constant would put it into memory.
        sums = [sums[1], sums[2], sums[3], sums[4], sums[5], sums[6], sums[7], 0.0];
        index = opaque(index + 1);
    }
}

/// Stores one element.
///
/// # Safety
/// It is within C.
#[inline(always)]
unsafe fn store_one<E: Half>(arguments: &Arguments, at: usize, sum: f32, float: bool) {
    let mut value = arguments.alpha * sum;
    // SAFETY: the caller's promise.
    unsafe {
        if float {
            let address = arguments.c.cast::<u32>().wrapping_add(at);
            if arguments.beta != 0.0 {
                value += arguments.beta * f32::from_bits(ld_global_u32(address)[0]);
            }
            st_global_u32(address, [value.to_bits()]);
        } else {
            let address = arguments.c.cast::<u16>().wrapping_add(at);
            if arguments.beta != 0.0 {
                value += arguments.beta * E::unpack(u32::from(ld_global_u16(address))).0;
            }
            st_global_u16(address, E::pack(value, 0.0) as u16);
        }
    }
}
