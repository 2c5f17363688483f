//! Which keys a row sees, and the cap of scores.

#![allow(clippy::eq_op, clippy::erasing_op, clippy::identity_op)]

use hopper_std::hint::opaque;
use hopper_std::ptx::convert::{ex2_approx_ftz_f32, rcp_approx_ftz_f32};
use hopper_std::seq;
use hopper_std::sm90::AccumulatorFragment;

use super::config::{Arguments, Keys, Source, TileWork};

/// What is done to scores before the softmax takes them, for the 64 rows of a consumer.
#[derive(Clone, Copy)]
pub(super) struct Mask {
    /// The diagonal of the first row.
    diagonal: i32,
    /// From a row's diagonal to the next row's.
    step: i32,
    num_keys: i32,
    left: i32,
    right: i32,
    /// Factor of scores before they are capped, or 0: they are not.
    cap_scale: f32,
}

impl Mask {
    /// Of the rows from `row` of the tile on.
    #[inline(always)]
    pub(super) const fn new(arguments: &Arguments, work: &TileWork, row: u32) -> Self {
        Self {
            diagonal: work.diagonal + row as i32 * arguments.diagonal_step,
            step: arguments.diagonal_step,
            num_keys: work.num_keys as i32,
            left: arguments.left,
            right: arguments.right,
            cap_scale: if arguments.softcap == 0.0 { 0.0 } else { arguments.scale },
        }
    }

    /// Caps the scores of a tile of keys, and hides those that a row does not see.
    #[inline(always)]
    pub(super) fn prepare<K: Source, const S: usize>(
        self,
        arguments: &Arguments,
        scores: &mut [f32; S],
        keys: Keys,
        warp: u32,
        lane: u32,
    ) {
        if self.cap_scale != 0.0 {
            cap(scores, self.cap_scale);
        }
        match keys {
            Keys::Columns(begin) if K::GATHERS => {
                let (row, col) = (AccumulatorFragment::row(warp, lane), AccumulatorFragment::col(lane));
                self.hide_columns(arguments, scores, row, begin + col);
            }
            Keys::From(first) | Keys::Columns(first) => {
                if self.cuts(first, S as u32 * 2) {
                    // Opaque: what follows from the lane alone would be kept through the steps that hide nothing.
                    let lane = opaque(lane);
                    let (row, col) = (AccumulatorFragment::row(warp, lane), AccumulatorFragment::col(lane));
                    self.hide(scores, row, first + col);
                }
            }
        }
    }

    /// Whether some of the 64 rows do not see some of the `count` keys from `first` on.
    #[inline(always)]
    const fn cuts(self, first: u32, count: u32) -> bool {
        let (first, end) = (first as i32, (first + count) as i32);
        end > self.num_keys
            || end - 1 > self.diagonal + self.right
            || first < self.diagonal + 63 * self.step - self.left
    }

    /// The first and the last key that this thread's rows see. `row` is the upper row among the 64.
    #[inline(always)]
    fn bounds(self, row: u32) -> ([i32; 2], [i32; 2]) {
        let diagonals = [0, 8].map(|lower| self.diagonal + (row as i32 + lower) * self.step);
        (
            diagonals.map(|diagonal| diagonal - self.left),
            diagonals.map(|diagonal| least(diagonal + self.right, self.num_keys - 1)),
        )
    }

    /// Minus infinity where a row does not see a key. `key` is that of this thread's first register.
    #[inline(always)]
    fn hide<const S: usize>(self, scores: &mut [f32; S], row: u32, key: u32) {
        // Counted from this thread's first key: every comparison is with a constant.
        let (first, last) = self.bounds(row);
        let (first, last) = (first.map(|first| first - key as i32), last.map(|last| last - key as i32));
        seq!(J in 0..32 {
            if J * 4 < S {
                seq!(I in 0..4 {
                    let at = J * 8 + I % 2;
                    if at > last[I / 2] || at < first[I / 2] {
                        scores[J * 4 + I] = f32::NEG_INFINITY;
                    }
                });
            }
        });
    }

    /// As [`hide`](Self::hide), of single keys, whose numbers this thread has from `begin` on.
    #[inline(always)]
    fn hide_columns<const S: usize>(self, arguments: &Arguments, scores: &mut [f32; S], row: u32, begin: u32) {
        let (first, last) = self.bounds(row);
        let columns = arguments.columns.cast::<[u32; 2]>();
        seq!(J in 0..32 {
            if J * 4 < S {
                // SAFETY: a tile's columns are in the array; `begin` is even.
                let keys = unsafe { columns.get(begin / 2 + J * 4) }.map(|key| key as i32);
                seq!(I in 0..4 {
                    if keys[I % 2] > last[I / 2] || keys[I % 2] < first[I / 2] {
                        scores[J * 4 + I] = f32::NEG_INFINITY;
                    }
                });
            }
        });
    }
}

/// Replaces scores s by tanh(scale s).
#[inline(always)]
fn cap<const S: usize>(scores: &mut [f32; S], scale: f32) {
    // tanh x = 1 - 2 / (e^2x + 1).
    let scale = scale * (2.0 * core::f32::consts::LOG2_E);
    seq!(J in 0..128 {
        if J < S {
            // SAFETY: arithmetic.
            let inverse = unsafe { rcp_approx_ftz_f32(ex2_approx_ftz_f32(scores[J] * scale) + 1.0) };
            scores[J] = 1.0 - 2.0 * inverse;
        }
    });
}

#[inline(always)]
const fn least(a: i32, b: i32) -> i32 {
    if a < b { a } else { b }
}
