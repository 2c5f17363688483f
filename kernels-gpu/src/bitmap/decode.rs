//! From a mask and a stream to the left operand of four products.

use hopper_std::ptx::bits::{dp4a_u32_u32, prmt_b32, shf_r_clamp_b32, shf_r_wrap_b32};
use hopper_std::sm90::{LeftFragment, WINDOW, WarpStream};

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

/// What a lane reads of its stream for 64 columns: four times 16.
#[derive(Clone, Copy)]
pub(super) struct Windows {
    columns: [Window; 4],
}

/// The same of 16 columns.
#[derive(Clone, Copy)]
struct Window {
    words: [u32; WINDOW],
    /// Where the first value is, in bits.
    position: u32,
    /// A pair's two bits in each of four nibbles.
    pairs: u32,
    /// The bits of the stream that each pair takes.
    taken: u32,
}

impl Windows {
    /// Reads what `mask` says from bit `position` of the stream on, counted from the first row ever copied, and goes on behind it.
    /// Thread.
    ///
    /// Bits of the mask, of the columns 16 s to 16 s + 15: pair i at `16 (s / 2) + 4 i + 2 (s % 2)`, its first element below its second.
    ///
    /// # Safety
    /// The stream's windows from the position on, to that of the last value, have arrived.
    #[inline(always)]
    pub(super) unsafe fn read(stream: &WarpStream<RING_GROUPS>, mask: u32, position: &mut u32) -> Self {
        let column = |shift: u32, position: &mut u32| {
            let pairs = (mask >> shift) & 0x3333;
            // SAFETY: the caller's promise; the selector has no nibble above 3.
            unsafe {
                let taken = prmt_b32(TAKEN, 0, pairs);
                let at = *position;
                *position = dp4a_u32_u32(taken, 0x0101_0101, at);
                Window { words: stream.window(at / WORD_BITS), position: at, pairs, taken }
            }
        };
        Self { columns: [column(0, position), column(2, position), column(16, position), column(18, position)] }
    }

    /// The lane's elements of the 64 columns. Thread.
    #[inline(always)]
    pub(super) fn expand(self) -> LeftFragment<16> {
        let [first, second, third, fourth] = self.columns;
        let ([a, b, c, d], [e, f, g, h]) = (first.expand(), second.expand());
        let ([i, j, k, l], [m, n, o, p]) = (third.expand(), fourth.expand());
        LeftFragment::new([a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p])
    }
}

impl Window {
    /// Eight values from the position on: what a pair takes is shifted out before the next one looks.
    #[inline(always)]
    fn expand(self) -> [u32; 4] {
        let Self { words: [w0, w1, w2, w3, w4], position: at, pairs, taken } = self;
        // SAFETY: selectors have no nibble above 7.
        unsafe {
            let (first, second) = (prmt_b32(FIRST, 0, pairs), prmt_b32(SECOND, 0, pairs));
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
}
