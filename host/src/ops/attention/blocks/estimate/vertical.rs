//! Columns and diagonals.

use rayon::prelude::*;

use super::{check_tensors, dot, extents_of, floats, row_of, rows_of, top};
use crate::element::Element;
use crate::formats::HeadsView;
use crate::ops::attention::blocks::slashes::SLASH_BLOCK;
use crate::ops::attention::blocks::{CountedLists, KeyListError, VerticalSlash};
use crate::ops::attention::{Attention, AttentionError, Window};

/// Keys of a part of a sum, each of which is summed by one thread.
const KEYS_PER_TASK: usize = 4096;

/// How columns and diagonals are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerticalSlashOptions {
    /// Columns.
    pub columns: usize,
    /// Diagonals.
    pub diagonals: usize,
    /// The last queries, whose attention decides.
    pub queries: usize,
    /// Keys that are columns before all others.
    pub sink: usize,
    /// Diagonals, from a row's own on, that are chosen before all others.
    pub local: usize,
}

impl VerticalSlashOptions {
    /// So many columns and diagonals, by the attention of the last 64 queries, first of all the first 30 keys and the nearest
    /// 100 diagonals: MInference's numbers.
    pub const fn new(columns: usize, diagonals: usize) -> Self {
        Self { columns, diagonals, queries: 64, sink: 30, local: 100 }
    }
}

/// For each head, the columns and the diagonals that the last queries attend to most; of equal ones, the first columns and
/// the nearest diagonals.
///
/// A diagonal runs through a block of queries in 64 and some keys; those of neighbouring ones are one run, and each run is
/// cut into blocks of 64 from its first key on. Columns in these blocks are not listed.
///
/// # Errors
/// As [`Attention::check`]; [`AttentionError::OtherShape`]; [`KeyListError::NotCausal`] where rows see keys behind their
/// diagonal, or not all before it.
pub fn vertical_slash<T: Element>(
    problem: &Attention,
    q: HeadsView<'_, T>,
    k: HeadsView<'_, T>,
    options: VerticalSlashOptions,
) -> Result<VerticalSlash, AttentionError> {
    check_tensors(problem, q, k)?;
    if problem.window != Window::CAUSAL {
        return Err(KeyListError::NotCausal.into());
    }
    let (num_sequences, heads) = (problem.queries.num_sequences(), problem.num_query_heads);
    let tokens = SLASH_BLOCK.tokens();
    let extents = extents_of(problem, num_sequences, heads, tokens);
    let (mut blocks, mut columns) = (Vec::new(), Vec::new());
    for (sequence, head) in (0..num_sequences).flat_map(|sequence| (0..heads).map(move |head| (sequence, head))) {
        let sums = Sums::new(problem, q, k, [sequence, head], options.queries);
        let chosen = Chosen::new(sums, options);
        let rows: Vec<_> = (0..extents.query_blocks)
            .into_par_iter()
            .map(|query_block| chosen.keys_of(problem, sequence, query_block))
            .collect();
        for (of_blocks, of_columns) in rows {
            blocks.push(of_blocks);
            columns.push(of_columns);
        }
    }
    let (blocks, columns) = (CountedLists::of_rows(&blocks), CountedLists::of_rows(&columns));
    Ok(VerticalSlash::try_new(extents, problem.keys.longest(), blocks, columns)?)
}

/// What the last queries of a head attend to, summed over them.
pub(super) struct Sums {
    /// By key.
    pub(super) columns: Vec<f64>,
    /// By distance from the diagonal.
    pub(super) diagonals: Vec<f64>,
}

impl Sums {
    pub(super) fn new<T: Element>(
        problem: &Attention,
        q: HeadsView<'_, T>,
        k: HeadsView<'_, T>,
        [sequence, head]: [usize; 2],
        queries: usize,
    ) -> Self {
        let (num_queries, num_keys) = (problem.queries.len_of(sequence), problem.keys.len_of(sequence));
        let count = queries.min(num_queries);
        let rows: Vec<Vec<f32>> = (num_queries - count..num_queries)
            .map(|row| floats(row_of(q, &problem.queries, sequence, head, row)).collect())
            .collect();
        if count == 0 || num_keys == 0 {
            return Self { columns: vec![0.0; num_keys], diagonals: vec![0.0; num_keys] };
        }
        // The last row's diagonal is the last key.
        let sees = |row: usize, key: usize| key + count <= num_keys + row;
        let key_head = problem.key_head_of(head);
        let mut scores = vec![f32::NEG_INFINITY; num_keys * count];
        scores.par_chunks_exact_mut(count).enumerate().for_each(|(key, scores)| {
            let values: Vec<f32> = floats(row_of(k, &problem.keys, sequence, key_head, key)).collect();
            for (row, score) in scores.iter_mut().enumerate().filter(|&(row, _)| sees(row, key)) {
                let scaled = problem.scale * dot(&rows[row], &values);
                *score = problem.softcap.map_or(scaled, |cap| cap * (scaled / cap).tanh());
            }
        });
        let normalizers = normalizers(&scores, count);
        scores.par_chunks_exact_mut(count).for_each(|scores| {
            for (score, &(largest, sum)) in scores.iter_mut().zip(&normalizers) {
                let is_seen = *score > f32::NEG_INFINITY;
                *score = if is_seen { (f64::from(*score - largest).exp() / sum) as f32 } else { 0.0 };
            }
        });
        let probability = |row: usize, key: usize| f64::from(scores[key * count + row]);
        let of_column = |key: usize| (0..count).map(|row| probability(row, key)).sum();
        let of_diagonal = |distance: usize| {
            // Row r has its diagonal at key num_keys - count + r.
            let rows = (0..count).filter(|row| num_keys + row >= count + distance);
            rows.map(|row| probability(row, num_keys + row - count - distance)).sum()
        };
        Self {
            columns: (0..num_keys).into_par_iter().map(of_column).collect(),
            diagonals: (0..num_keys).into_par_iter().map(of_diagonal).collect(),
        }
    }
}

/// Each row's largest score, and the sum of its exponentials. Scores are `count` to a key.
fn normalizers(scores: &[f32], count: usize) -> Vec<(f32, f64)> {
    let largest_of = |part: &[f32]| {
        let mut largest = vec![f32::NEG_INFINITY; count];
        for scores in part.chunks_exact(count) {
            largest.iter_mut().zip(scores).for_each(|(largest, &score)| *largest = largest.max(score));
        }
        largest
    };
    let parts: Vec<_> = scores.par_chunks(KEYS_PER_TASK * count).map(largest_of).collect();
    let largest = largest_of(&parts.concat());
    let sums_of = |part: &[f32]| {
        let mut sums = vec![0f64; count];
        for scores in part.chunks_exact(count) {
            let seen = sums.iter_mut().zip(scores).zip(&largest).filter(|((_, score), _)| **score > f32::NEG_INFINITY);
            seen.for_each(|((sum, score), largest)| *sum += f64::from(score - largest).exp());
        }
        sums
    };
    let parts: Vec<_> = scores.par_chunks(KEYS_PER_TASK * count).map(sums_of).collect();
    let sum_of = |row: usize| parts.iter().map(|part| part[row]).sum();
    largest.iter().enumerate().map(|(row, &largest)| (largest, sum_of(row))).collect()
}

/// The columns and diagonals of a head, ascending.
struct Chosen {
    columns: Vec<usize>,
    diagonals: Vec<usize>,
}

impl Chosen {
    fn new(mut sums: Sums, options: VerticalSlashOptions) -> Self {
        let first = |sums: &mut [f64], count: usize| {
            let count = count.min(sums.len());
            sums[..count].fill(f64::INFINITY);
        };
        first(&mut sums.columns, options.sink);
        first(&mut sums.diagonals, options.local);
        Self { columns: top(&sums.columns, options.columns), diagonals: top(&sums.diagonals, options.diagonals) }
    }

    /// Where the blocks begin that a block of queries sees, and its columns outside of them.
    fn keys_of(&self, problem: &Attention, sequence: usize, query_block: usize) -> (Vec<i32>, Vec<i32>) {
        let tokens = SLASH_BLOCK.tokens();
        let Some((rows, window)) = rows_of(problem, sequence, query_block, tokens) else { return Default::default() };
        let offset = problem.keys.len_of(sequence) as i64 - problem.queries.len_of(sequence) as i64;
        let (first, last) = (rows.start as i64 + offset, rows.end as i64 - 1 + offset);
        let mut blocks: Vec<usize> = Vec::new();
        let mut columns = self.columns.iter().copied().filter(|&column| column < window.end).peekable();
        let mut single = Vec::new();
        let mut covered = 0;
        // From the furthest diagonal on, so that keys ascend.
        for &distance in self.diagonals.iter().rev() {
            let end = (last - distance as i64 + 1).max(0) as usize;
            let mut start = ((first - distance as i64).max(0) as usize).max(covered);
            while start < end {
                while let Some(column) = columns.next_if(|&column| column < start) {
                    if column >= covered {
                        single.push(column as i32);
                    }
                }
                blocks.push(start);
                start += tokens;
                covered = start;
            }
        }
        single.extend(columns.filter(|&column| column >= covered).map(|column| column as i32));
        (blocks.into_iter().map(|start| start as i32).collect(), single)
    }
}
