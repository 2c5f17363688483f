//! Lists of keys out of Q and K: what a long prompt's rows are likely to attend to.
//!
//! The three patterns are those of MInference (Jiang et al., arXiv 2407.02490): a sink and what is near ([`a_shape`]);
//! columns and diagonals that the last queries attend to most ([`vertical_slash`]); and the blocks whose means agree most
//! ([`top_blocks`]). All are computed on the CPU, and the same input gives the same lists on any number of threads.

mod vertical;

use core::ops::Range;

use rayon::prelude::*;

use super::{BlockLists, BlockSize, ListExtents};
use crate::element::Element;
use crate::formats::HeadsView;
use crate::ops::attention::{Attention, AttentionError, AttentionTensor, Sequences};

pub use vertical::{VerticalSlashOptions, vertical_slash};

/// Blocks of keys that hold one of the first `sink` keys, or a key less than `local` keys from some row's diagonal; for all
/// heads.
///
/// # Errors
/// As [`Attention::check`].
pub fn a_shape(problem: &Attention, block: BlockSize, sink: usize, local: usize) -> Result<BlockLists, AttentionError> {
    problem.check()?;
    let tokens = block.tokens();
    let sequences = match problem.queries {
        _ if problem.queries.num_sequences() == 0 => 0,
        // One stands for all where all are of one length.
        Sequences::Equal { .. } if matches!(problem.keys, Sequences::Equal { .. }) => 1,
        _ => problem.queries.num_sequences(),
    };
    let extents = extents_of(problem, sequences, 1, tokens);
    let of_row = |row: usize| -> Vec<i32> {
        let place = extents.place(row);
        let Some((rows, window)) = rows_of(problem, place.sequence, place.query_block, tokens) else {
            return Vec::new();
        };
        let offset = problem.keys.len_of(place.sequence) as i64 - problem.queries.len_of(place.sequence) as i64;
        let first = rows.start as i64 + offset - local as i64 + 1;
        let last = (rows.end as i64 - 1) + offset + local as i64 - 1;
        let is_near = |block: i64| (block + 1) * tokens as i64 > first && block * tokens as i64 <= last && local > 0;
        blocks_of(&window, tokens)
            .filter(|&block| block * tokens < sink || is_near(block as i64))
            .map(|block| block as i32)
            .collect()
    };
    Ok(lists_of(problem, block, extents, of_row))
}

/// For each block of queries of each head, the `count` blocks of keys in its window whose mean has the greatest product with
/// the mean of the queries; of equal ones, the first.
///
/// # Errors
/// As [`Attention::check`]; [`AttentionError::OtherShape`].
pub fn top_blocks<T: Element>(
    problem: &Attention,
    q: HeadsView<'_, T>,
    k: HeadsView<'_, T>,
    block: BlockSize,
    count: usize,
) -> Result<BlockLists, AttentionError> {
    check_tensors(problem, q, k)?;
    let tokens = block.tokens();
    let (num_sequences, heads) = (problem.queries.num_sequences(), problem.num_query_heads);
    let key_heads = problem.num_key_heads;
    let means: Vec<Vec<Vec<f32>>> = (0..num_sequences * key_heads)
        .into_par_iter()
        .map(|index| means_of(k, &problem.keys, index / key_heads, index % key_heads, tokens))
        .collect();
    let extents = extents_of(problem, num_sequences, heads, tokens);
    let of_row = |row: usize| -> Vec<i32> {
        let place = extents.place(row);
        let Some((rows, window)) = rows_of(problem, place.sequence, place.query_block, tokens) else {
            return Vec::new();
        };
        let query = mean(q, &problem.queries, place.sequence, place.head, rows);
        let key_means = &means[place.sequence * key_heads + problem.key_head_of(place.head)];
        let candidates = blocks_of(&window, tokens);
        let scores: Vec<f64> = candidates.clone().map(|block| f64::from(dot(&query, &key_means[block]))).collect();
        top(&scores, count).into_iter().map(|index| (candidates.start + index) as i32).collect()
    };
    Ok(lists_of(problem, block, extents, of_row))
}

/// The numbers of the `count` greatest scores, ascending; of equal ones, the first.
fn top(scores: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    if count < order.len() {
        order.select_nth_unstable_by(count, |&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
        order.truncate(count);
    }
    order.sort_unstable();
    order
}

fn check_tensors<T: Element>(
    problem: &Attention,
    q: HeadsView<'_, T>,
    k: HeadsView<'_, T>,
) -> Result<(), AttentionError> {
    problem.check()?;
    problem.check_shape(AttentionTensor::Q, q.shape())?;
    problem.check_shape(AttentionTensor::K, k.shape())
}

fn extents_of(problem: &Attention, sequences: usize, heads: usize, tokens: usize) -> ListExtents {
    ListExtents { sequences, heads, query_blocks: problem.queries.longest().div_ceil(tokens) }
}

/// The rows of a block of queries of a sequence and the keys in their window; `None` where there are no rows.
fn rows_of(
    problem: &Attention,
    sequence: usize,
    query_block: usize,
    tokens: usize,
) -> Option<(Range<usize>, Range<usize>)> {
    let num_queries = problem.queries.len_of(sequence);
    let rows = query_block * tokens..((query_block + 1) * tokens).min(num_queries);
    (rows.start < rows.end).then(|| (rows.clone(), problem.keys_of_rows(sequence, rows)))
}

/// Blocks of keys that have one of a window.
fn blocks_of(window: &Range<usize>, tokens: usize) -> Range<usize> {
    if window.is_empty() { 0..0 } else { window.start / tokens..window.end.div_ceil(tokens) }
}

/// Lists of a problem's blocks, from a function of the number of a block of queries that lists each block once.
fn lists_of(
    problem: &Attention,
    block: BlockSize,
    extents: ListExtents,
    of_row: impl Fn(usize) -> Vec<i32> + Sync + Send,
) -> BlockLists {
    let rows: Vec<Vec<i32>> = (0..extents.rows()).into_par_iter().map(of_row).collect();
    BlockLists::of_distinct(block, extents, problem.keys.longest().div_ceil(block.tokens()), &rows)
}

fn row_of<'a, T: Element>(
    tensor: HeadsView<'a, T>,
    sequences: &Sequences,
    sequence: usize,
    head: usize,
    at: usize,
) -> &'a [T] {
    let (batch, token) = sequences.place(sequence, at);
    tensor.row(batch, token, head)
}

fn floats<T: Element>(row: &[T]) -> impl Iterator<Item = f32> {
    row.iter().map(|element| element.to_f32())
}

/// The mean of each block of a head's rows.
fn means_of<T: Element>(
    tensor: HeadsView<'_, T>,
    sequences: &Sequences,
    sequence: usize,
    head: usize,
    tokens: usize,
) -> Vec<Vec<f32>> {
    let len = sequences.len_of(sequence);
    let block = |start: usize| mean(tensor, sequences, sequence, head, start..(start + tokens).min(len));
    (0..len).step_by(tokens).map(block).collect()
}

/// The mean of some rows of a head, of which there is one.
fn mean<T: Element>(
    tensor: HeadsView<'_, T>,
    sequences: &Sequences,
    sequence: usize,
    head: usize,
    rows: Range<usize>,
) -> Vec<f32> {
    let count = rows.len() as f32;
    let mut sum = vec![0f32; tensor.shape().head_dim];
    for row in rows {
        let row = row_of(tensor, sequences, sequence, head, row);
        sum.iter_mut().zip(floats(row)).for_each(|(sum, value)| *sum += value);
    }
    sum.iter().map(|sum| sum / count).collect()
}

/// The product of two rows, in eight sums that the processor computes side by side. Rows have a multiple of 8 elements.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0f32; 8];
    for (a, b) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests;
