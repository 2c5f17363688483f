//! The store of a consumer's 64 rows of C: alpha D + beta C, rounded once. Every kernel whose accumulators hold rows of C has it.
//!
//! A thread holds pairs of neighbouring columns of two rows ([`AccumulatorFragment`](hopper_std::sm90::AccumulatorFragment)); written as they
//! are, the four lanes of a quad would store 4 bytes each. Two ways lead to longer pieces of a *line* of C: a row of a row-major C, a
//! column of a column-major one.
//!
//! The fast way (16 bits, beta = 0, aligned, whole eights) packs a part of the columns into shared memory in the order of
//! C, and reads it back along the lines: 128 bytes and more in one piece. A row lies in one warp, a column in all four:
//! only then do they meet. Units of 16 bytes are swizzled, so that neither direction collides in the banks.
//!
//! The general way exchanges floats within the quads, so that each lane has eight neighbours of a line, in a loop over
//! groups of eight registers, and stores element by element where it must.
//!
//! Rows of the sums may belong to other rows of C: an order names them, and is read where a line of C is looked up. Where rows are lines
//! both ways stay as they are; where a line has an element of each row, neighbours of the sums are none in C, and go one by one.

// `seq!` writes an expression out for each index, and for index 0 it says what nobody would write by hand.
#![allow(clippy::erasing_op, clippy::identity_op)]

use hopper_std::global::GlobalArray;
use hopper_std::half::Half;
use hopper_std::hint::opaque;
use hopper_std::ptx::memory::{
    ld_global_u16, ld_global_u32, ld_shared_v4_u32, st_global_cs_v4_u32, st_global_u16, st_global_u32, st_global_v4_u32,
};
use hopper_std::ptx::warp::movmatrix_trans_b16;
use hopper_std::ptx::wgmma::Registers;
use hopper_std::seq;
use hopper_std::sm90::{Accumulator, Shared};
use hopper_std::warp::{lane_id, transpose_quad};

use eight::{Eight, InPlace, Lines, Reordered, eight_of_col, eight_of_two_rows};
use order::{Cols, Order, Rows, swizzled_unit};

pub(crate) use eight::ordered;

mod eight;
mod order;

/// Where a consumer lays out `COLS` columns of its 64 rows before it stores them: 16-bit elements, in the order of C.
#[repr(C, align(128))]
pub struct Staging<const COLS: usize> {
    elements: [[u16; COLS]; 64],
}

/// What is stored, and how: a choice at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum OutputKind {
    /// The input type, row-major; beta = 0, lines and base aligned to 16 bytes, N a multiple of 8. Columns have no order.
    HalfRows = 0,
    /// The input type, column-major; beta = 0, lines and base aligned to 16 bytes, M a multiple of 8. Rows have no order.
    HalfCols = 1,
    /// The input type, row-major; any beta, any alignment.
    HalfRowsAny = 2,
    /// The input type, column-major; any beta, any alignment.
    HalfColsAny = 3,
    /// f32, row-major; any beta, any alignment.
    FloatRows = 4,
    /// f32, column-major; any beta, any alignment.
    FloatCols = 5,
}

impl OutputKind {
    /// Whether the word names a kind with f32 elements.
    #[inline(always)]
    pub const fn is_float(word: u32) -> bool {
        word >= Self::FloatRows as u32
    }

    /// Whether the word names a column-major kind.
    #[inline(always)]
    pub const fn is_cols(word: u32) -> bool {
        word & 1 == 1
    }
}

/// C, and what it becomes.
#[derive(Clone, Copy)]
pub struct Output {
    /// Its element (0, 0).
    pub c: *mut u8,
    /// From line to line, in elements.
    pub leading_dimension: u64,
    /// M.
    pub num_rows: u32,
    /// N.
    pub num_cols: u32,
    /// Factor of the sums.
    pub alpha: f32,
    /// Factor of what C held; with 0 it is not read.
    pub beta: f32,
    /// An [`OutputKind`].
    pub kind: u32,
    /// The row of C that each row of the sums is, a permutation of all M; null where it is that of the same number.
    pub row_order: GlobalArray<u32>,
    /// The same of the columns.
    pub col_order: GlobalArray<u32>,
}

impl Output {
    /// Sums as they are, in f32, in an array of `num_rows` x `num_cols` of their own.
    #[inline(always)]
    pub const fn sums(array: *mut f32, num_rows: u32, num_cols: u32) -> Self {
        let (leading_dimension, kind) = (num_cols as u64, OutputKind::FloatRows as u32);
        Self {
            c: array.cast(),
            leading_dimension,
            num_rows,
            num_cols,
            alpha: 1.0,
            beta: 0.0,
            kind,
            row_order: GlobalArray::null(),
            col_order: GlobalArray::null(),
        }
    }

    /// C by its columns: that which a row-major C is, read column-major, and the other way round.
    #[inline(always)]
    pub const fn transposed(self) -> Self {
        Self {
            num_rows: self.num_cols,
            num_cols: self.num_rows,
            // Kinds are pairs, rows before columns.
            kind: self.kind ^ 1,
            row_order: self.col_order,
            col_order: self.row_order,
            ..self
        }
    }

    /// C without its columns from `end` on.
    #[inline(always)]
    pub const fn until(self, end: u32) -> Self {
        Self { num_cols: if end < self.num_cols { end } else { self.num_cols }, ..self }
    }
}

hopper_std::named_barriers! {
    /// Where the warps of a consumer meet while they store: the barriers of the block, beside the one of all.
    pub enum Meeting {
        /// The warps of consumer 0.
        Consumer0 = 1: 128,
        /// The warps of consumer 1.
        Consumer1 = 2: 128,
    }
}

impl Meeting {
    /// The barrier of a consumer, 0 or 1.
    #[inline(always)]
    pub const fn of_consumer(consumer: u32) -> Self {
        if consumer == 0 { Self::Consumer0 } else { Self::Consumer1 }
    }
}

/// Where a consumer's part of the output begins.
#[derive(Clone, Copy)]
pub struct Place {
    /// The first of its 64 rows.
    pub row: u32,
    /// Its first column.
    pub col: u32,
    /// This thread's warp in the group.
    pub warp: u32,
    /// Where the consumer's warps meet.
    pub meeting: Meeting,
}

/// Stores one consumer's part of a tile. Warp group.
///
/// # Safety
/// C is as [`Output`] says, and nothing else writes this part; `staging` is this consumer's.
#[inline(always)]
pub unsafe fn store<E: Half, const REGISTERS: usize, const STAGING_COLS: usize>(
    output: &Output,
    accumulator: &mut Accumulator<REGISTERS>,
    place: Place,
    staging: Shared<Staging<STAGING_COLS>>,
) where
    [f32; REGISTERS]: Registers,
{
    let kind = output.kind;
    // The packed way is there twice: without an order nothing is looked up between its loads and stores.
    // SAFETY: the caller's promise, for each kind.
    unsafe {
        if kind == OutputKind::HalfRows as u32 {
            if output.row_order.is_null() {
                store_packed::<E, Rows, InPlace, REGISTERS, STAGING_COLS>(output, accumulator, place, staging);
            } else {
                store_packed::<E, Rows, Reordered, REGISTERS, STAGING_COLS>(output, accumulator, place, staging);
            }
        } else if kind == OutputKind::HalfCols as u32 {
            if output.col_order.is_null() {
                store_packed::<E, Cols, InPlace, REGISTERS, STAGING_COLS>(output, accumulator, place, staging);
            } else {
                store_packed::<E, Cols, Reordered, REGISTERS, STAGING_COLS>(output, accumulator, place, staging);
            }
        } else {
            store_general::<E, REGISTERS>(output, accumulator, place);
        }
    }
}

/// 16 bits, through shared memory.
///
/// # Safety
/// As [`store`]; the base and the lines of C are aligned to 16 bytes, and their length is a multiple of 8.
#[inline(always)]
unsafe fn store_packed<E: Half, O: Order, L: Lines, const REGISTERS: usize, const STAGING_COLS: usize>(
    output: &Output,
    accumulator: &mut Accumulator<REGISTERS>,
    place: Place,
    staging: Shared<Staging<STAGING_COLS>>,
) where
    [f32; REGISTERS]: Registers,
{
    let (lane, alpha, registers) = (lane_id(), output.alpha, accumulator.read());
    let blocks = STAGING_COLS / 8;
    seq!(J in 0..16 {
        // Eight registers: two blocks of eight columns.
        if J * 8 < REGISTERS {
            let pair = |r: usize| E::pack(alpha * registers[J * 8 + r], alpha * registers[J * 8 + r + 1]);
            let (line, unit) = O::matrix_row(place.warp, lane, (J * 2 % blocks) as u32);
            let offset = swizzled_unit(line, unit, O::units(STAGING_COLS as u32));
            // SAFETY: the warp is converged, and the offset is within the staged part.
            unsafe { O::store_matrices(staging.address() + offset, [pair(0), pair(2), pair(4), pair(6)]) };
            if (J * 2 + 2) % blocks == 0 {
                let col = place.col + (J * 2 + 2 - blocks) as u32 * 8;
                // SAFETY: all warps of the consumer are here.
                unsafe {
                    O::meet(place.meeting);
                    copy_lines::<O, L, STAGING_COLS>(output, place, col, lane, staging);
                    O::meet(place.meeting);
                }
            }
        }
    });
}

/// Reads this thread's units of a staged part, which begins at column `col` of C, and stores them.
///
/// # Safety
/// As [`store_packed`]; the part is written.
#[inline(always)]
unsafe fn copy_lines<O: Order, L: Lines, const STAGING_COLS: usize>(
    output: &Output,
    place: Place,
    col: u32,
    lane: u32,
    staging: Shared<Staging<STAGING_COLS>>,
) {
    let cols = STAGING_COLS as u32;
    let (units, (first_line, num_readers, reader)) = (O::units(cols), O::readers(place.warp, lane));
    let mut index = reader;
    while index < O::lines(cols) * units {
        let (line, unit) = (first_line + index / units, index % units);
        let eight = L::of_c(O::eight(output, place, col, line, unit), O::line_order(output));
        // SAFETY: the unit is within the staged part; all eight elements are within C, and aligned.
        unsafe {
            let words = ld_shared_v4_u32(staging.address() + swizzled_unit(line, unit, units));
            if eight.line < eight.num_lines && eight.first < eight.length {
                st_global_cs_v4_u32(eight.address(output).cast(), words);
            }
        }
        index += num_readers;
    }
}

/// What the general way makes of eights, all of a part alike.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pieces {
    /// 16 bytes each, where they are aligned: f32 that are neighbours in C, which is not read.
    Fours,
    /// One by one.
    Ones,
}

impl Pieces {
    #[inline(always)]
    fn of(output: &Output) -> Self {
        let elements = if OutputKind::is_cols(output.kind) { output.row_order } else { output.col_order };
        let whole = OutputKind::is_float(output.kind) && output.beta == 0.0 && elements.is_null();
        if whole { Self::Fours } else { Self::Ones }
    }
}

/// Either layout, the general way: a loop over groups of eight registers (16 columns).
///
/// PERF: written out like the fast way it is 5 times the code, spills 2.6 KB and takes ptxas 16 s.
#[inline(always)]
unsafe fn store_general<E: Half, const REGISTERS: usize>(
    output: &Output,
    accumulator: &mut Accumulator<REGISTERS>,
    place: Place,
) where
    [f32; REGISTERS]: Registers,
{
    let (lane, cols, registers) = (lane_id(), OutputKind::is_cols(output.kind), accumulator.read());
    // Its row stays the same, and is looked up once.
    let eight_of_rows = eight_of_two_rows(output, place, lane);
    let (pieces, mut index) = (Pieces::of(output), 0);
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
                    eight_of_col(output, place, lane, index * 16),
                )
            } else {
                (
                    transpose_quad([u0, u2, d0, d2]),
                    transpose_quad([u1, u3, d1, d3]),
                    Eight { first: eight_of_rows.first + index * 16, ..eight_of_rows },
                )
            };
            store_floats::<E>(output, pieces, eight, interleave(even, odd));
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

/// Stores alpha times eight sums, plus beta times what was there, or as many as are in C. Beta = 0 does not read C.
///
/// # Safety
/// C is as [`Output`] says.
#[inline(always)]
unsafe fn store_floats<E: Half>(output: &Output, pieces: Pieces, eight: Eight, mut sums: [f32; 8]) {
    let (line_start, count) = (eight.line_start(output), eight.count());
    let address = output.c.wrapping_add(eight.position(output) * 4);
    if pieces == Pieces::Fours && count == 8 && (address as usize).is_multiple_of(16) {
        let [a, b, c, d, e, f, g, h] = sums.map(|sum| (output.alpha * sum).to_bits());
        // SAFETY: all eight are within C, and aligned.
        unsafe {
            st_global_v4_u32(address.cast(), [a, b, c, d]);
            st_global_v4_u32(address.wrapping_add(16).cast(), [e, f, g, h]);
        }
        return;
    }
    let (mut index, mut elements) = (0, eight.elements());
    while index < count {
        // SAFETY: this one is within C.
        unsafe { store_one::<E>(output, (line_start + u64::from(elements[0])) as usize, sums[0]) };
        // The arrays are moved, not indexed: an index that is not constant would put them into memory.
        sums = [sums[1], sums[2], sums[3], sums[4], sums[5], sums[6], sums[7], 0.0];
        elements = [elements[1], elements[2], elements[3], elements[4], elements[5], elements[6], elements[7], 0];
        index = opaque(index + 1);
    }
}

/// Stores one element: that number `at` from the base of C, f32 or of the type `E`.
///
/// # Safety
/// It is within C.
#[inline(always)]
pub unsafe fn store_one<E: Half>(output: &Output, at: usize, sum: f32) {
    let mut value = output.alpha * sum;
    // SAFETY: the caller's promise.
    unsafe {
        if OutputKind::is_float(output.kind) {
            let address = output.c.cast::<u32>().wrapping_add(at);
            if output.beta != 0.0 {
                value += output.beta * f32::from_bits(ld_global_u32(address)[0]);
            }
            st_global_u32(address, [value.to_bits()]);
        } else {
            let address = output.c.cast::<u16>().wrapping_add(at);
            if output.beta != 0.0 {
                value += output.beta * E::unpack(u32::from(ld_global_u16(address))).0;
            }
            st_global_u16(address, E::pack(value, 0.0) as u16);
        }
    }
}
