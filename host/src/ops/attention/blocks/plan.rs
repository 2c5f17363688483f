//! Which kernel, which tiles, which keys for each tile.

use core::ops::Range;

use kernels_gpu::attention::{COLUMNS, CONFIGURATIONS, Configuration, Serves, TileWork};
use rayon::prelude::*;

use super::{KeyListError, ListPlace, SparseAttention};
use crate::ops::attention::plan::{KeyEntries, kernel_dtype};
use crate::ops::attention::{AttentionError, AttentionPlan, Pass};

/// The most entries of all lists, and the most columns: the bit above marks columns.
const MAX_ENTRIES: u64 = COLUMNS as u64 - 1;

/// The lists of one head, or of all heads, of a sequence.
#[derive(Default)]
struct HeadLists {
    entries: KeyEntries,
    /// Where the entries of each block of queries are.
    ranges: Vec<Range<usize>>,
}

impl SparseAttention {
    /// Chooses kernel and tiles for a device with `multiprocessors` multiprocessors.
    ///
    /// # Errors
    /// As [`check`](Self::check); [`KeyListError::NoKernel`], [`KeyListError::TooLong`] and [`AttentionError::TooMany`] with
    /// the reason.
    pub fn plan(&self, multiprocessors: u32) -> Result<AttentionPlan, AttentionError> {
        self.plan_among(CONFIGURATIONS, multiprocessors)
    }

    /// As [`plan`](Self::plan), by one of the given kernels.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn plan_among(
        &self,
        configurations: &'static [Configuration],
        multiprocessors: u32,
    ) -> Result<AttentionPlan, AttentionError> {
        self.check()?;
        let (problem, block) = (&self.attention, self.lists.block());
        let configuration = configurations
            .iter()
            .filter(|configuration| self.can_use(configuration))
            // The least padding.
            .min_by_key(|configuration| configuration.head_dim)
            .ok_or(KeyListError::NoKernel { head_dim: problem.head_dim, dtype: problem.dtype, block })
            .map_err(AttentionError::Lists)?;
        problem.check_counts(|sequence| (problem.num_query_tiles(configuration.rows, sequence), 0))?;
        let (tiles, entries) = self.tiles(configuration)?;
        let pass = Pass::of_lists(configuration, tiles, entries, multiprocessors);
        Ok(AttentionPlan::of_pass(problem.clone(), pass))
    }

    fn can_use(&self, configuration: &Configuration) -> bool {
        let tokens = self.lists.block().tokens();
        configuration.serves == Serves::Blocks
            && kernel_dtype(self.attention.dtype) == Some(configuration.dtype)
            && self.attention.head_dim <= configuration.head_dim
            && (configuration.rows, configuration.keys) == (tokens, tokens)
    }

    /// The tiles by sequence and head, in each the last rows first, and their lists.
    fn tiles(&self, configuration: &Configuration) -> Result<(Vec<TileWork>, KeyEntries), AttentionError> {
        let problem = &self.attention;
        let (num_sequences, list_heads) = (problem.queries.num_sequences(), self.lists.extents().heads);
        let heads_per_list = if list_heads == 1 { problem.num_query_heads } else { 1 };
        let lists: Vec<HeadLists> = (0..num_sequences * list_heads)
            .into_par_iter()
            .map(|index| self.lists_of(index / list_heads, index % list_heads))
            .collect();
        let count = |of: fn(&HeadLists) -> usize| lists.iter().map(|lists| of(lists) as u64).sum::<u64>();
        let found = count(|lists| lists.entries.blocks.len()).max(count(|lists| lists.entries.columns.len()));
        if found > MAX_ENTRIES {
            return Err(AttentionError::Lists(KeyListError::TooLong { found, most: MAX_ENTRIES }));
        }
        let (mut tiles, mut all) = (Vec::new(), KeyEntries::default());
        for (index, HeadLists { entries, ranges }) in lists.iter().enumerate() {
            let (sequence, list_head) = (index / list_heads, index % list_heads);
            let base = all.blocks.len();
            for head in list_head * heads_per_list..(list_head + 1) * heads_per_list {
                // Of causal rows the last meet the most keys: what is short fills the gaps at the end.
                for (block, range) in ranges.iter().enumerate().rev() {
                    let tile = problem.tile(configuration, sequence, head, block * configuration.rows);
                    let (first_tile, end_tile) = ((base + range.start) as u32, (base + range.end) as u32);
                    tiles.push(TileWork { first_tile, end_tile, ..tile });
                }
            }
            all.append(entries);
        }
        Ok((tiles, all))
    }

    /// The lists of the blocks of queries that a sequence has, without what its window hides from all rows of a block.
    fn lists_of(&self, sequence: usize, head: usize) -> HeadLists {
        let problem = &self.attention;
        let (num_queries, num_keys) = (problem.queries.len_of(sequence), problem.keys.len_of(sequence));
        let tokens = self.lists.block().tokens();
        let mut lists = HeadLists::default();
        for query_block in 0..num_queries.div_ceil(tokens) {
            let rows = query_block * tokens..((query_block + 1) * tokens).min(num_queries);
            let window = problem.keys_of_rows(sequence, rows);
            let row = self.lists.extents().row_of(ListPlace { sequence, head, query_block });
            let (starts, mut columns) = self.lists.keys_of(row);
            columns.retain(|column| window.contains(column));
            let HeadLists { entries, ranges } = &mut lists;
            let begin = entries.blocks.len();
            entries.push_columns(&columns, tokens, num_keys);
            let seen = starts.iter().filter(|&&start| start < window.end && start + tokens > window.start);
            entries.blocks.extend(seen.map(|&start| start as u32));
            if entries.blocks.len() == begin {
                // A tile meets at least one tile of keys. Behind the sequence's end there are zeros, whatever the keys are.
                entries.blocks.push(num_keys as u32);
            }
            ranges.push(begin..entries.blocks.len());
        }
        lists
    }
}

impl KeyEntries {
    /// Single keys, in tiles of `tokens`; the last is filled up with a key behind the sequence's end.
    fn push_columns(&mut self, columns: &[usize], tokens: usize, num_keys: usize) {
        for chunk in columns.chunks(tokens) {
            self.blocks.push(COLUMNS | self.columns.len() as u32);
            self.columns.extend(chunk.iter().map(|&column| column as u32));
            self.columns.extend(core::iter::repeat_n(num_keys as u32, tokens - chunk.len()));
        }
    }

    /// Entries of further lists.
    fn append(&mut self, other: &Self) {
        let base = self.columns.len() as u32;
        self.blocks.extend(other.blocks.iter().map(|&entry| if entry & COLUMNS == 0 { entry } else { entry + base }));
        self.columns.extend_from_slice(&other.columns);
    }
}

#[cfg(test)]
mod tests;
