//! Vertical and slash: blocks along diagonals, and single columns.

use super::lists::check_lists;
use super::{BlockSize, CountedLists, KeyListError, KeyListName, ListExtents};

/// Keys of a block.
pub(super) const SLASH_BLOCK: BlockSize = BlockSize::B64;

/// For each block of 64 queries, the 64 consecutive keys from certain ones on, and single keys.
///
/// These are the arrays of MInference's vertical-slash attention (Jiang et al., arXiv 2407.02490): `block_count`,
/// `block_offset`, `column_count` and `column_index`. There rows are causal in blocks; here the problem's window holds in
/// blocks and for columns.
///
/// Invariants, all checked: counts are within the lists, keys under [`num_keys`](Self::num_keys), no two blocks of a block of
/// queries have a key in common, and no column is listed twice. A column that a block covers, too, is seen once: it is left
/// out of what a kernel is given. The order of a list is free, and does not change a bit of the result.
///
/// ```
/// use hopper_sparse::ops::attention::blocks::{CountedLists, ListExtents, VerticalSlash};
///
/// // Two blocks of queries of one head, each with the block that ends with its last query; the second with two columns.
/// let blocks = CountedLists { counts: vec![1, 1], indices: vec![0, 64] };
/// let columns = CountedLists { counts: vec![0, 2], indices: vec![0, 0, 17, 3] };
/// let extents = ListExtents { sequences: 1, heads: 1, query_blocks: 2 };
/// VerticalSlash::try_new(extents, 128, blocks, columns)?;
/// # Ok::<(), hopper_sparse::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerticalSlash {
    extents: ListExtents,
    num_keys: usize,
    blocks: CountedLists,
    columns: CountedLists,
}

impl VerticalSlash {
    /// Takes the keys where blocks begin, and single keys.
    ///
    /// # Errors
    /// Where an invariant of the type does not hold: [`KeyListError::NumCounts`], [`KeyListError::NumIndices`],
    /// [`KeyListError::Count`], [`KeyListError::Index`], [`KeyListError::Overlap`] or [`KeyListError::Duplicate`].
    pub fn try_new(
        extents: ListExtents,
        num_keys: usize,
        blocks: CountedLists,
        columns: CountedLists,
    ) -> Result<Self, KeyListError> {
        let lists = Self { extents, num_keys, blocks, columns };
        let named = [(KeyListName::Blocks, &lists.blocks), (KeyListName::Columns, &lists.columns)];
        check_lists(extents, num_keys, named, |row| lists.find_twice(row))?;
        Ok(lists)
    }

    /// A key that would count twice.
    fn find_twice(&self, row: usize) -> Option<KeyListError> {
        let place = self.extents.place(row);
        let blocks = self.blocks.sorted_row(row);
        if let Some(&[first, second]) = blocks.array_windows().find(|[a, b]| b - a < SLASH_BLOCK.tokens()) {
            return Some(KeyListError::Overlap { place, first: first as i64, second: second as i64 });
        }
        let columns = self.columns.sorted_row(row);
        let &[index, _] = columns.array_windows().find(|[a, b]| a == b)?;
        Some(KeyListError::Duplicate { list: KeyListName::Columns, place, index: index as i64 })
    }

    /// What there are lists of.
    pub fn extents(&self) -> ListExtents {
        self.extents
    }

    /// Keys of the longest sequence.
    pub fn num_keys(&self) -> usize {
        self.num_keys
    }

    /// Blocks that all blocks of queries list together, and columns.
    pub fn num_blocks_and_columns(&self) -> (u64, u64) {
        (self.blocks.num_entries(), self.columns.num_entries())
    }

    /// Where the blocks of a block of queries begin, ascending, and its columns outside of them, ascending.
    pub(super) fn keys_of(&self, row: usize) -> (Vec<usize>, Vec<usize>) {
        let (blocks, mut columns) = (self.blocks.sorted_row(row), self.columns.sorted_row(row));
        columns.retain(|&column| {
            let before = blocks.partition_point(|&start| start <= column);
            before == 0 || column - blocks[before - 1] >= SLASH_BLOCK.tokens()
        });
        (blocks, columns)
    }
}

#[cfg(test)]
mod tests;
