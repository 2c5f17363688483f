//! Lists of blocks: which blocks of keys each block of queries sees.

use core::fmt;

use rayon::prelude::*;

use super::{KeyListError, KeyListName, ListPlace};
use crate::formats::BcsrPattern;

/// Tokens of a block, of queries and of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockSize {
    /// 64.
    B64,
    /// 128.
    B128,
}

impl BlockSize {
    /// The number.
    pub const fn tokens(self) -> usize {
        match self {
            Self::B64 => 64,
            Self::B128 => 128,
        }
    }
}

impl fmt::Display for BlockSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tokens().fmt(f)
    }
}

/// What there are lists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListExtents {
    /// Sequences; 1 where all have the same lists.
    pub sequences: usize,
    /// Heads of Q; 1 where all have the same lists.
    pub heads: usize,
    /// Blocks of queries of the longest sequence.
    pub query_blocks: usize,
}

impl ListExtents {
    /// Blocks of queries of all heads of all sequences; past the address space it saturates.
    pub(super) fn rows(self) -> usize {
        self.sequences.saturating_mul(self.heads).saturating_mul(self.query_blocks)
    }

    /// The block of queries with a number, in the order of the arrays.
    pub(super) fn place(self, row: usize) -> ListPlace {
        let (head, query_block) = (row / self.query_blocks, row % self.query_blocks);
        ListPlace { sequence: head / self.heads, head: head % self.heads, query_block }
    }

    /// The number of a block of queries, where one sequence or head may stand for all.
    pub(super) fn row_of(self, ListPlace { sequence, head, query_block }: ListPlace) -> usize {
        let sequence = if self.sequences == 1 { 0 } else { sequence };
        let head = if self.heads == 1 { 0 } else { head };
        (sequence * self.heads + head) * self.query_blocks + query_block
    }
}

/// A list for each block of queries, padded to one length.
///
/// Without any element it stands for lists that are all empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedLists {
    /// How long each list is: `[sequences, heads, query blocks]`.
    pub counts: Vec<i32>,
    /// The lists: `[sequences, heads, query blocks, most]`. What lies behind a list's count is not looked at.
    pub indices: Vec<i32>,
}

impl CountedLists {
    /// Pads lists with -1.
    pub fn of_rows(rows: &[Vec<i32>]) -> Self {
        let width = rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut indices = vec![-1; width * rows.len()];
        for (to, row) in indices.chunks_exact_mut(width.max(1)).zip(rows) {
            to[..row.len()].copy_from_slice(row);
        }
        Self { counts: rows.iter().map(|row| row.len() as i32).collect(), indices }
    }

    /// The list of a block of queries.
    pub(super) fn row(&self, row: usize) -> &[i32] {
        match self.counts.get(row) {
            None => &[],
            Some(&count) => &self.indices[self.indices.len() / self.counts.len() * row..][..count as usize],
        }
    }

    /// As [`row`](Self::row), ascending.
    pub(super) fn sorted_row(&self, row: usize) -> Vec<usize> {
        let mut list: Vec<usize> = self.row(row).iter().map(|&index| index as usize).collect();
        list.sort_unstable();
        list
    }

    /// Entries of all lists together.
    pub(super) fn num_entries(&self) -> u64 {
        self.counts.iter().map(|&count| count as u64).sum()
    }

    /// Whether there is a list for each of `extents`, within its room, with numbers under `end`.
    fn check(&self, list: KeyListName, extents: ListExtents, end: usize) -> Result<(), KeyListError> {
        if self.counts.is_empty() && self.indices.is_empty() {
            return Ok(());
        }
        let (rows, found) = (extents.rows(), self.indices.len());
        if self.counts.len() != rows {
            return Err(KeyListError::NumCounts { list, expected: rows as u64, found: self.counts.len() as u64 });
        }
        if rows == 0 || !found.is_multiple_of(rows) {
            return Err(KeyListError::NumIndices { list, rows: rows as u64, found: found as u64 });
        }
        let width = found / rows;
        let bad_count = |&row: &usize| usize::try_from(self.counts[row]).map_or(true, |count| count > width);
        if let Some(row) = (0..rows).find(bad_count) {
            let found = i64::from(self.counts[row]);
            return Err(KeyListError::Count { list, place: extents.place(row), found, most: width as u64 });
        }
        let bad_index = |&index: &i32| usize::try_from(index).map_or(true, |index| index >= end);
        let wrong = (0..rows)
            .into_par_iter()
            .find_map_first(|row| self.row(row).iter().copied().find(bad_index).map(|index| (row, i64::from(index))));
        match wrong {
            Some((row, found)) => Err(KeyListError::Index { list, place: extents.place(row), found, end: end as u64 }),
            None => Ok(()),
        }
    }
}

/// Whether two lists of each of `extents` are within their room and under `end`, and no keys count twice: `find_twice` looks
/// at a block of queries.
pub(super) fn check_lists(
    extents: ListExtents,
    end: usize,
    lists: [(KeyListName, &CountedLists); 2],
    find_twice: impl Fn(usize) -> Option<KeyListError> + Sync + Send,
) -> Result<(), KeyListError> {
    for (name, list) in lists {
        list.check(name, extents, end)?;
    }
    let twice = (0..extents.rows()).into_par_iter().find_map_first(find_twice);
    twice.map_or(Ok(()), Err)
}

/// For each block of queries, the blocks of keys that its rows see: full ones, and partial ones.
///
/// These are the arrays of FlexAttention and FlashAttention-4 (`full_block_cnt`, `full_block_idx`, `mask_block_cnt`,
/// `mask_block_idx`). The problem's window holds in every listed block, full or partial: to kernels the two are the same,
/// and a block that it hides from every row costs nothing.
///
/// Invariants, all checked: counts are within the lists, indices under [`num_key_blocks`](Self::num_key_blocks), and no block
/// of queries has a block of keys twice. The order of a list is free, and does not change a bit of the result.
///
/// ```
/// use hopper_sparse::ops::attention::blocks::{BlockLists, BlockSize, CountedLists, ListExtents};
///
/// // Two blocks of queries of one head: the first sees block 0, the second blocks 2 and 0.
/// let full = CountedLists { counts: vec![1, 2], indices: vec![0, -1, 2, 0] };
/// let extents = ListExtents { sequences: 1, heads: 1, query_blocks: 2 };
/// let lists = BlockLists::try_new(BlockSize::B64, extents, 3, full, CountedLists::default())?;
/// assert_eq!(lists.to_mask(), [true, false, false, true, false, true]);
/// # Ok::<(), hopper_sparse::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockLists {
    block: BlockSize,
    extents: ListExtents,
    num_key_blocks: usize,
    full: CountedLists,
    partial: CountedLists,
}

impl BlockLists {
    /// Takes the lists of full and of partial blocks.
    ///
    /// # Errors
    /// Where an invariant of the type does not hold: [`KeyListError::NumCounts`], [`KeyListError::NumIndices`],
    /// [`KeyListError::Count`], [`KeyListError::Index`] or [`KeyListError::Duplicate`].
    pub fn try_new(
        block: BlockSize,
        extents: ListExtents,
        num_key_blocks: usize,
        full: CountedLists,
        partial: CountedLists,
    ) -> Result<Self, KeyListError> {
        let lists = Self { block, extents, num_key_blocks, full, partial };
        let named = [(KeyListName::FullBlocks, &lists.full), (KeyListName::PartialBlocks, &lists.partial)];
        check_lists(extents, num_key_blocks, named, |row| lists.find_duplicate(row))?;
        Ok(lists)
    }

    fn find_duplicate(&self, row: usize) -> Option<KeyListError> {
        let (full, partial) = (self.full.row(row), self.partial.row(row));
        let mut all: Vec<(i32, bool)> = full.iter().map(|&index| (index, false)).collect();
        all.extend(partial.iter().map(|&index| (index, true)));
        all.sort_unstable();
        let [_, (index, is_partial)] = all.array_windows().find(|[(a, _), (b, _)]| a == b)?;
        let list = if *is_partial { KeyListName::PartialBlocks } else { KeyListName::FullBlocks };
        Some(KeyListError::Duplicate { list, place: self.extents.place(row), index: i64::from(*index) })
    }

    /// The blocks that `mask` holds `true` for, as full ones: `[sequences, heads, query blocks, key blocks]`, row-major.
    ///
    /// # Errors
    /// [`KeyListError::MaskLength`] where `mask` has another length.
    pub fn from_mask(
        block: BlockSize,
        extents: ListExtents,
        num_key_blocks: usize,
        mask: &[bool],
    ) -> Result<Self, KeyListError> {
        let expected = extents.rows().saturating_mul(num_key_blocks);
        if mask.len() != expected {
            return Err(KeyListError::MaskLength { expected: expected as u64, found: mask.len() as u64 });
        }
        let of_row = |row: usize| -> Vec<i32> {
            let row = &mask[row * num_key_blocks..][..num_key_blocks];
            row.iter().enumerate().filter(|(_, seen)| **seen).map(|(block, _)| block as i32).collect()
        };
        let rows: Vec<_> = (0..extents.rows()).into_par_iter().map(of_row).collect();
        Ok(Self::of_distinct(block, extents, num_key_blocks, &rows))
    }

    /// The blocks of a pattern of queries by keys, as full ones, for all heads of all sequences. The pattern's blocks are
    /// square:
    ///
    /// ```compile_fail
    /// # use hopper_sparse::formats::BcsrPattern;
    /// # use hopper_sparse::ops::attention::blocks::BlockLists;
    /// let pattern = BcsrPattern::<128, 64>::try_new(0, 0, vec![0], vec![]).unwrap();
    /// let lists = BlockLists::from_pattern(&pattern);
    /// ```
    ///
    /// ```
    /// # use hopper_sparse::formats::BcsrPattern;
    /// # use hopper_sparse::ops::attention::blocks::BlockLists;
    /// let pattern = BcsrPattern::<64, 64>::try_new(100, 200, vec![0, 1, 3], vec![2, 0, 3])?;
    /// let lists = BlockLists::from_pattern(&pattern);
    /// assert_eq!(lists.to_mask(), [false, false, true, false, true, false, false, true]);
    /// # Ok::<(), hopper_sparse::Error>(())
    /// ```
    pub fn from_pattern<const BR: usize, const BC: usize>(pattern: &BcsrPattern<BR, BC>) -> Self {
        const { assert!(BR == BC && (BR == 64 || BR == 128), "lists are of square blocks of 64 or 128 tokens") };
        let block = if BR == 64 { BlockSize::B64 } else { BlockSize::B128 };
        let of_row = |ends: &[u64]| -> Vec<i32> {
            let columns = &pattern.col_indices()[ends[0] as usize..ends[1] as usize];
            columns.iter().map(|&column| column as i32).collect()
        };
        let rows: Vec<_> = pattern.row_offsets().windows(2).map(of_row).collect();
        let extents = ListExtents { sequences: 1, heads: 1, query_blocks: rows.len() };
        Self::of_distinct(block, extents, pattern.num_cols().div_ceil(BC), &rows)
    }

    /// Full blocks from lists that keep the invariants.
    pub(super) fn of_distinct(
        block: BlockSize,
        extents: ListExtents,
        num_key_blocks: usize,
        rows: &[Vec<i32>],
    ) -> Self {
        let full = CountedLists::of_rows(rows);
        Self { block, extents, num_key_blocks, full, partial: CountedLists::default() }
    }

    /// Whether each block of queries sees each block of keys: `[sequences, heads, query blocks, key blocks]`, row-major.
    pub fn to_mask(&self) -> Vec<bool> {
        let mut mask = vec![false; self.extents.rows() * self.num_key_blocks];
        for row in 0..self.extents.rows() {
            let seen = &mut mask[row * self.num_key_blocks..][..self.num_key_blocks];
            for &block in self.full.row(row).iter().chain(self.partial.row(row)) {
                seen[block as usize] = true;
            }
        }
        mask
    }

    /// Tokens of a block.
    pub fn block(&self) -> BlockSize {
        self.block
    }

    /// What there are lists of.
    pub fn extents(&self) -> ListExtents {
        self.extents
    }

    /// Blocks of keys of the longest sequence.
    pub fn num_key_blocks(&self) -> usize {
        self.num_key_blocks
    }

    /// Pairs of a block of queries and a block of keys that it lists.
    pub fn num_blocks(&self) -> u64 {
        self.full.num_entries() + self.partial.num_entries()
    }

    /// Where the listed blocks of a block of queries begin, ascending.
    pub(super) fn starts_of(&self, row: usize) -> Vec<usize> {
        let all = self.full.row(row).iter().chain(self.partial.row(row));
        let mut starts: Vec<usize> = all.map(|&block| block as usize * self.block.tokens()).collect();
        starts.sort_unstable();
        starts
    }
}

#[cfg(test)]
mod tests;
