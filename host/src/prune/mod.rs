//! Pruning: weights of a dense matrix become exact zeros, in place.
//!
//! A matrix of M rows (outputs) and K columns (inputs) lies row-major, as checkpoints hold it. Each weight w of column j has
//! a score: |w| by magnitude, |w| * ||x_j|| where the norms of the inputs are given. The lowest scores are removed, as many of
//! a row, of the matrix or of four neighbours as the [`Pattern`] says. Zeros of both signs score 0, NaN more than
//! infinity; of equal scores the first is removed. So the same weights give the same mask on any number of threads.
//!
//! Source of the scores by norms, and of their removal row by row: Sun, Liu, Bair and Kolter, "A simple and effective
//! pruning approach for large language models" (Wanda), ICLR 2024.

mod error;
mod matrix;

pub use error::PruneError;

use rayon::prelude::*;

use crate::element::Element;

/// Neighbours of which a 2:4 pattern keeps [`KEPT_OF_GROUP`].
const GROUP: usize = 4;

/// Weights that a 2:4 pattern keeps of a group.
const KEPT_OF_GROUP: usize = 2;

/// Which weights compete with each other, and how many are removed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Of the K weights of each row the share `sparsity`, rounded down to whole weights.
    Rows {
        /// The share to remove, 0 to 1.
        sparsity: f64,
    },
    /// Of the M * K weights of the matrix the share `sparsity`, rounded down to whole weights: rows may be unlike.
    Matrix {
        /// The share to remove, 0 to 1.
        sparsity: f64,
    },
    /// Of each four neighbours in a row all but two; of a last group of fewer, all but two too.
    TwoOfFour,
}

/// Removes the smallest weights.
///
/// `weights` holds rows of `num_cols` elements.
///
/// # Errors
/// [`PruneError::Sparsity`], [`PruneError::Length`] or [`PruneError::TooManyColumns`]; no weight is changed then.
pub fn magnitude<T: Element>(weights: &mut [T], num_cols: usize, pattern: Pattern) -> Result<(), PruneError> {
    check_weights(weights.len(), num_cols)?;
    remove(weights, num_cols, None, pattern)
}

/// Removes the weights of least |w| * ||x_j||: exactly the whole part of `num_cols * sparsity` of each row.
///
/// `weights` holds rows of `num_cols` elements, `norms` the norm of each column's input. Scores are f32.
///
/// # Errors
/// As [`by_norms`].
pub fn wanda<T: Element>(weights: &mut [T], num_cols: usize, norms: &[f32], sparsity: f64) -> Result<(), PruneError> {
    by_norms(weights, num_cols, norms, Pattern::Rows { sparsity })
}

/// Removes the weights of least |w| * ||x_j||, in any pattern.
///
/// `weights` holds rows of `num_cols` elements, `norms` the norm of each column's input. Scores are f32.
///
/// # Errors
/// As [`magnitude`], and [`PruneError::NumNorms`] or [`PruneError::Norm`]; no weight is changed then.
pub fn by_norms<T: Element>(
    weights: &mut [T],
    num_cols: usize,
    norms: &[f32],
    pattern: Pattern,
) -> Result<(), PruneError> {
    check_weights(weights.len(), num_cols)?;
    if norms.len() != num_cols {
        return Err(PruneError::NumNorms { expected: num_cols as u64, found: norms.len() as u64 });
    }
    match norms.iter().position(|norm| !norm.is_finite() || *norm < 0.0) {
        Some(column) => Err(PruneError::Norm { column: column as u64, found: norms[column] }),
        None => remove(weights, num_cols, Some(norms), pattern),
    }
}

fn check_weights(len: usize, num_cols: usize) -> Result<(), PruneError> {
    if num_cols as u64 > u64::from(u32::MAX) {
        return Err(PruneError::TooManyColumns { found: num_cols as u64 });
    }
    if len.checked_rem(num_cols).unwrap_or(len) != 0 {
        return Err(PruneError::Length { num_cols: num_cols as u64, found: len as u64 });
    }
    Ok(())
}

fn remove<T: Element>(
    weights: &mut [T],
    num_cols: usize,
    norms: Option<&[f32]>,
    pattern: Pattern,
) -> Result<(), PruneError> {
    match pattern {
        Pattern::Rows { sparsity } => {
            let num_removed = share(num_cols, sparsity)?;
            for_each_row(weights, num_cols, |row, keys| remove_of(row, norms, 0, num_removed, keys));
        }
        Pattern::Matrix { sparsity } => {
            let num_removed = share(weights.len(), sparsity)?;
            matrix::remove(weights, num_cols, norms, num_removed);
        }
        Pattern::TwoOfFour => for_each_row(weights, num_cols, |row, keys| {
            for (index, group) in row.chunks_mut(GROUP).enumerate() {
                let num_removed = group.len().saturating_sub(KEPT_OF_GROUP);
                remove_of(group, norms, index * GROUP, num_removed, keys);
            }
        }),
    }
    Ok(())
}

/// The whole part of `count * sparsity`.
fn share(count: usize, sparsity: f64) -> Result<usize, PruneError> {
    if !(0.0..=1.0).contains(&sparsity) {
        return Err(PruneError::Sparsity { found: sparsity });
    }
    Ok(((count as f64 * sparsity) as usize).min(count))
}

/// Calls `prune` with each row and memory for its keys.
fn for_each_row<T: Element>(weights: &mut [T], num_cols: usize, prune: impl Fn(&mut [T], &mut Vec<u64>) + Sync) {
    // Rows without columns hold nothing to remove; a chunk must have an element.
    weights.par_chunks_mut(num_cols.max(1)).for_each_init(Vec::new, |keys, row| prune(row, keys));
}

/// Removes the `num_removed` lowest scores of neighbours in a row, the first of which is in column `first_col`.
fn remove_of<T: Element>(
    weights: &mut [T],
    norms: Option<&[f32]>,
    first_col: usize,
    num_removed: usize,
    keys: &mut Vec<u64>,
) {
    let Some(last) = num_removed.checked_sub(1) else { return };
    keys.clear();
    keys.extend(weights.iter().enumerate().map(|(index, &weight)| {
        // The place makes keys unique: which of equal scores goes is no accident of the selection.
        u64::from(score(weight, norms, first_col + index)) << 32 | index as u64
    }));
    keys.select_nth_unstable(last);
    for &key in &keys[..num_removed] {
        weights[key as u32 as usize] = T::ZERO;
    }
}

/// The score of a weight as an integer of the same order: the bits of a float that is not negative.
#[inline(always)]
fn score<T: Element>(weight: T, norms: Option<&[f32]>, col: usize) -> u32 {
    const WITHOUT_SIGN: u32 = 0x7fff_ffff;
    let weight = weight.to_f32();
    match norms {
        None => weight.to_bits() & WITHOUT_SIGN,
        Some(norms) => (weight * norms[col]).to_bits() & WITHOUT_SIGN,
    }
}
