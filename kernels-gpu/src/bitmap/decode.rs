//! From a mask and a stream to the left operand of four products.

// `seq!` writes an expression out for each index, and for index 0 it says what nobody would write by hand.
#![allow(clippy::erasing_op, clippy::identity_op, clippy::eq_op)]

use hopper_std::ptx::bits::{dp4a_u32_u32, prmt_b32, shf_r_clamp_b32, shf_r_wrap_b32};
use hopper_std::sm90::{LeftFragment, WarpStream};

use super::config::RING_GROUPS;

/// Bits of a word of the stream.
const WORD_BITS: u32 = 32;

/// For each pair of bits (neither, first, second, both) two nibbles: which bytes of the next two values the first element is, or of
/// zeros (4).
const FIRST: u32 = 0x1044_1044;

/// The same of the second element.
const SECOND: u32 = 0x3210_4444;

/// The same: how many bits of the stream the pair takes.
const TAKEN: u32 = 0x2010_1000;

/// A lane's elements of 64 columns: four products' worth. `mask` says which are stored, and `position` where in the stream the first
/// of these lies, in bits from the first row ever copied; it goes on behind the last. Thread.
///
/// Bits of the mask, of the products' columns 16 s to 16 s + 15: pair i at `16 (s / 2) + 4 i + 2 (s % 2)`, its first element below
/// its second.
///
/// # Safety
/// The stream's windows from the position on, to that of the last value, have arrived.
#[inline(always)]
pub(super) unsafe fn decode(stream: &WarpStream<RING_GROUPS>, mask: u32, position: &mut u32) -> LeftFragment<16> {
    let mut words = [0; 16];
    hopper_std::seq!(S in 0..4 {
        let pairs = mask >> (S / 2 * 16 + S % 2 * 2) & 0x3333;
        // SAFETY: the caller's promise.
        let [a, b, c, d] = unsafe { sixteen_columns(stream, pairs, position) };
        words[S * 4] = a;
        words[S * 4 + 1] = b;
        words[S * 4 + 2] = c;
        words[S * 4 + 3] = d;
    });
    LeftFragment::new(words)
}

/// The same of 16 columns; `pairs` has a pair's two bits in each of four nibbles.
///
/// # Safety
/// As [`decode`].
#[inline(always)]
unsafe fn sixteen_columns(stream: &WarpStream<RING_GROUPS>, pairs: u32, position: &mut u32) -> [u32; 4] {
    // SAFETY: the caller's promise; selectors have no nibble above 7.
    unsafe {
        let at = *position;
        let [w0, w1, w2, w3, w4] = stream.window(at / WORD_BITS);
        let (first, second) = (prmt_b32(FIRST, 0, pairs), prmt_b32(SECOND, 0, pairs));
        let taken = prmt_b32(TAKEN, 0, pairs);
        *position = dp4a_u32_u32(taken, 0x0101_0101, at);
        // Eight values from the position on: what a pair takes is shifted out before the next one looks.
        let (a0, a1) = (shf_r_wrap_b32(w0, w1, at), shf_r_wrap_b32(w1, w2, at));
        let (a2, a3) = (shf_r_wrap_b32(w2, w3, at), shf_r_wrap_b32(w3, w4, at));
        let count = taken & 0xff;
        let (b0, b1) = (shf_r_clamp_b32(a0, a1, count), shf_r_clamp_b32(a1, a2, count));
        let b2 = shf_r_clamp_b32(a2, a3, count);
        let count = prmt_b32(taken, 0, 0x4441);
        let (c0, c1) = (shf_r_clamp_b32(b0, b1, count), shf_r_clamp_b32(b1, b2, count));
        let count = prmt_b32(taken, 0, 0x4442);
        let d0 = shf_r_clamp_b32(c0, c1, count);
        [
            prmt_b32(a0, 0, prmt_b32(first, second, 0x40)),
            prmt_b32(b0, 0, prmt_b32(first, second, 0x51)),
            prmt_b32(c0, 0, prmt_b32(first, second, 0x62)),
            prmt_b32(d0, 0, prmt_b32(first, second, 0x73)),
        ]
    }
}
