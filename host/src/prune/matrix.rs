//! The lowest scores of a whole matrix, without an array of all of them.

use rayon::prelude::*;

use super::score;
use crate::element::Element;

/// Scores have 31 bits. Their order is found in two steps, by the upper bits and then by the lower.
const UPPER_BITS: u32 = 16;
const LOWER_BITS: u32 = 31 - UPPER_BITS;

/// Weights that one task counts; a whole number of rows near it.
const WEIGHTS_PER_TASK: usize = 1 << 18;

/// Removes the `num_removed` lowest scores; of equal ones the first in row-major order.
pub(super) fn remove<T: Element>(weights: &mut [T], num_cols: usize, norms: Option<&[f32]>, num_removed: usize) {
    if num_removed == 0 {
        return;
    }
    let chunk = (WEIGHTS_PER_TASK / num_cols).max(1) * num_cols;
    let Threshold { score: threshold, num_removed: num_equal } =
        Threshold::of(weights, chunk, num_cols, norms, num_removed);
    let equals: Vec<usize> = weights
        .par_chunks(chunk)
        .map(|chunk| scores(chunk, num_cols, norms).filter(|&score| score == threshold).count())
        .collect();
    let before: Vec<usize> = equals
        .iter()
        .scan(0, |sum, &equals| {
            let before = *sum;
            *sum += equals;
            Some(before)
        })
        .collect();
    weights.par_chunks_mut(chunk).zip(before).for_each(|(chunk, before)| {
        let mut left = num_equal.saturating_sub(before);
        for row in chunk.chunks_mut(num_cols) {
            for (col, weight) in row.iter_mut().enumerate() {
                let score = score(*weight, norms, col);
                let is_taken = score == threshold && left > 0;
                left -= usize::from(is_taken);
                if is_taken || score < threshold {
                    *weight = T::ZERO;
                }
            }
        }
    });
}

/// The highest score that is removed, and how many of the weights that have it.
struct Threshold {
    score: u32,
    num_removed: usize,
}

impl Threshold {
    fn of<T: Element>(weights: &[T], chunk: usize, num_cols: usize, norms: Option<&[f32]>, num_removed: usize) -> Self {
        let count = |num_bins: usize, bin: &(dyn Fn(u32) -> Option<usize> + Sync)| {
            let none = || vec![0_usize; num_bins];
            let counted = weights.par_chunks(chunk).fold(none, |mut counts, chunk| {
                scores(chunk, num_cols, norms).filter_map(bin).for_each(|bin| counts[bin] += 1);
                counts
            });
            counted.reduce(none, |mut sums, counts| {
                sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                sums
            })
        };
        let upper_counts = count(1 << UPPER_BITS, &|score| Some((score >> LOWER_BITS) as usize));
        let (upper, left) = bin_of(&upper_counts, num_removed);
        let lower_counts = count(1 << LOWER_BITS, &|score| {
            ((score >> LOWER_BITS) as usize == upper).then_some((score & ((1 << LOWER_BITS) - 1)) as usize)
        });
        let (lower, num_removed) = bin_of(&lower_counts, left);
        Self { score: (upper << LOWER_BITS | lower) as u32, num_removed }
    }
}

/// The bin of the `rank`th lowest, from 1, and its rank in the bin.
fn bin_of(counts: &[usize], mut rank: usize) -> (usize, usize) {
    for (bin, &count) in counts.iter().enumerate() {
        if rank <= count {
            return (bin, rank);
        }
        rank -= count;
    }
    // Not reached: ranks are at most the number of weights, all of which are counted.
    (counts.len() - 1, rank)
}

/// The score of each weight of some rows.
fn scores<'a, T: Element>(
    rows: &'a [T],
    num_cols: usize,
    norms: Option<&'a [f32]>,
) -> impl Iterator<Item = u32> + use<'a, T> {
    rows.chunks(num_cols)
        .flat_map(move |row| row.iter().enumerate().map(move |(col, &weight)| score(weight, norms, col)))
}
