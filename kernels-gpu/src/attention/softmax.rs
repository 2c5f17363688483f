//! Softmax of a row, a tile of keys after the other.
//!
//! With the scores s of a row so far, in tiles, it holds m, near the greatest of them, and l = sum 2^(scale (s - m)); what has
//! been summed up under an earlier m is multiplied by 2^(scale (m_before - m)). Milakov and Gimelshein, arXiv 1805.02867.
//!
//! Any m that keeps the powers within their format gives the same quotient: so m stays as it is until a score is over it by
//! more than [`SLACK`] powers of 2, which after the first tiles seldom happens, and the multiplication is left out. A row's m
//! depends on its own scores alone.

#![allow(clippy::eq_op, clippy::erasing_op, clippy::identity_op)]

use hopper_std::half::Half;
use hopper_std::hint::computed;
use hopper_std::ptx::convert::{ex2_approx_ftz_f32, fma_rn_f32, lg2_approx_ftz_f32, max_f32, rcp_approx_ftz_f32};
use hopper_std::ptx::warp::shfl_sync_bfly;
use hopper_std::seq;
use hopper_std::sm90::LeftFragment;
use hopper_std::warp::any;

/// How far a score may be over m, as a power of 2: 2^8 is within the range of binary16, and sums of 2^8 within that of f32.
const SLACK: f32 = 8.0;

/// The state of this thread's two rows: the upper one (registers 0 and 1 of every four) and the lower one.
#[derive(Clone, Copy)]
pub(super) struct Softmax {
    /// m: no score is over it by more than [`SLACK`]. The same in a quad.
    reference: [f32; 2],
    /// This thread's part of the sum.
    sum: [f32; 2],
}

/// What a finished row is multiplied by, and its log-sum-exp.
pub(super) struct Finished {
    pub(super) factors: [f32; 2],
    pub(super) lse: [f32; 2],
}

impl Softmax {
    /// Of no score.
    pub(super) const EMPTY: Self = Self { reference: [f32::NEG_INFINITY; 2], sum: [0.0; 2] };

    /// Takes a tile's scores in, replaces each by 2^(scale (s - m)), and returns what earlier sums are to be multiplied by,
    /// mostly 1. Warp.
    ///
    /// # Safety
    /// All 32 lanes call it together.
    #[inline(always)]
    pub(super) unsafe fn update<const S: usize>(&mut self, scores: &mut [f32; S], scale: f32) -> [f32; 2] {
        // SAFETY: arithmetic, and shuffles of the whole warp.
        unsafe {
            let before = self.reference;
            let max = row_maxima(scores, before);
            // Not true of a row that has seen nothing and sees nothing: both are minus infinity.
            let is_over = |row: usize| (max[row] - before[row]) * scale > SLACK;
            self.reference = [0, 1].map(|row| if is_over(row) { max[row] } else { before[row] });
            let reference = self.reference.map(finite);
            let factors = [0, 1].map(|row| ex2_approx_ftz_f32((before[row] - reference[row]) * scale));
            let shift = reference.map(|reference| -(reference * scale));
            // Two sums a row: half the latency.
            let mut sums = [self.sum[0] * factors[0], self.sum[1] * factors[1], 0.0, 0.0];
            seq!(J in 0..32 {
                if J * 4 < S {
                    seq!(I in 0..4 {
                        let power = ex2_approx_ftz_f32(fma_rn_f32(scores[J * 4 + I], scale, shift[I / 2]));
                        scores[J * 4 + I] = power;
                        sums[I % 2 * 2 + I / 2] += power;
                    });
                }
            });
            self.sum = [sums[0] + sums[2], sums[1] + sums[3]];
            factors
        }
    }

    /// Keeps the wait that follows behind the powers of 2, which then run beside the products that it is for.
    #[inline(always)]
    pub(super) fn finish_before_wait(&self) {
        computed(self.sum[0].to_bits() ^ self.sum[1].to_bits());
    }

    /// The sums of whole rows. A row that has seen nothing gets the factor 0. Warp.
    ///
    /// # Safety
    /// All 32 lanes call it together.
    #[inline(always)]
    pub(super) unsafe fn finish(self, scale: f32) -> Finished {
        // SAFETY: arithmetic, and shuffles of the whole warp.
        unsafe {
            let sum = self.sum.map(|sum| quad(sum, |a, b| a + b));
            let factor = |row: usize| if sum[row] == 0.0 { 0.0 } else { rcp_approx_ftz_f32(sum[row]) };
            let lse = |row: usize| {
                (finite(self.reference[row]) * scale + lg2_approx_ftz_f32(sum[row])) * core::f32::consts::LN_2
            };
            Finished { factors: [factor(0), factor(1)], lse: [lse(0), lse(1)] }
        }
    }
}

/// Scores as the left operand of the product with V. Register order is that of the fragment.
#[inline(always)]
pub(super) fn pack<E: Half, const S: usize, const P: usize>(powers: &[f32; S]) -> LeftFragment<P> {
    let mut words = [0; P];
    seq!(J in 0..64 {
        if J < P {
            words[J] = E::pack(powers[J * 2], powers[J * 2 + 1]);
        }
    });
    LeftFragment::new(words)
}

/// As [`scale_rows`], unless every factor of the warp is 1. Warp.
///
/// # Safety
/// All 32 lanes call it together.
#[inline(always)]
pub(super) unsafe fn rescale_rows<const O: usize>(output: &mut [f32; O], factors: [f32; 2]) {
    // SAFETY: the caller's promise.
    if unsafe { any(factors != [1.0; 2]) } {
        scale_rows(output, factors);
    }
}

/// Multiplies the rows by a factor each.
#[inline(always)]
pub(super) fn scale_rows<const O: usize>(output: &mut [f32; O], factors: [f32; 2]) {
    seq!(J in 0..32 {
        if J * 4 < O {
            seq!(I in 0..4 {
                output[J * 4 + I] *= factors[I / 2];
            });
        }
    });
}

/// The greatest scores of both rows, or `max` where that is greater.
#[inline(always)]
unsafe fn row_maxima<const S: usize>(scores: &[f32; S], max: [f32; 2]) -> [f32; 2] {
    // SAFETY: arithmetic, and shuffles of the whole warp: the caller's promise.
    unsafe {
        let mut maxima = [max[0], max[1], scores[1], scores[3]];
        seq!(J in 0..32 {
            if J * 4 < S {
                seq!(I in 0..4 {
                    maxima[I % 2 * 2 + I / 2] = max_f32(maxima[I % 2 * 2 + I / 2], scores[J * 4 + I]);
                });
            }
        });
        [max_f32(maxima[0], maxima[2]), max_f32(maxima[1], maxima[3])].map(|max| quad(max, |a, b| max_f32(a, b)))
    }
}

/// Joins the values of a quad, which hold parts of one row.
#[inline(always)]
unsafe fn quad(value: f32, join: impl Fn(f32, f32) -> f32) -> f32 {
    // SAFETY: the whole warp is here: the caller's promise.
    unsafe {
        let value = join(value, f32::from_bits(shfl_sync_bfly(value.to_bits(), 1)));
        join(value, f32::from_bits(shfl_sync_bfly(value.to_bits(), 2)))
    }
}

/// 0 for a row that has seen no key, so that differences are no NaN.
#[inline(always)]
fn finite(max: f32) -> f32 {
    if max == f32::NEG_INFINITY { 0.0 } else { max }
}
