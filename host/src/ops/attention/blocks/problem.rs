//! What is computed.

use core::fmt;
use core::ops::Range;

use super::slashes::SLASH_BLOCK;
use super::{BlockLists, BlockSize, KeyListError, ListExtents, ListPlace, VerticalSlash};
use crate::ops::attention::{Attention, AttentionError};

/// The keys that blocks of queries see, apart from the problem's window.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyLists {
    /// Blocks.
    Blocks(BlockLists),
    /// Blocks from any key on, and single keys.
    VerticalSlash(VerticalSlash),
}

impl From<BlockLists> for KeyLists {
    fn from(lists: BlockLists) -> Self {
        Self::Blocks(lists)
    }
}

impl From<VerticalSlash> for KeyLists {
    fn from(lists: VerticalSlash) -> Self {
        Self::VerticalSlash(lists)
    }
}

impl KeyLists {
    /// Queries, and consecutive keys, that are listed together.
    pub fn block(&self) -> BlockSize {
        match self {
            Self::Blocks(lists) => lists.block(),
            Self::VerticalSlash(_) => SLASH_BLOCK,
        }
    }

    /// What there are lists of.
    pub fn extents(&self) -> ListExtents {
        match self {
            Self::Blocks(lists) => lists.extents(),
            Self::VerticalSlash(lists) => lists.extents(),
        }
    }

    /// Where the blocks of a list begin, ascending, and single keys outside of them, ascending.
    pub(super) fn keys_of(&self, row: usize) -> (Vec<usize>, Vec<usize>) {
        match self {
            Self::Blocks(lists) => (lists.starts_of(row), Vec::new()),
            Self::VerticalSlash(lists) => lists.keys_of(row),
        }
    }
}

/// A problem: O = softmax(scale Q K^T) V, where each block of queries sees the keys of its list, as far as the window shows
/// them.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseAttention {
    /// The problem without lists.
    pub attention: Attention,
    /// The lists.
    pub lists: KeyLists,
}

impl SparseAttention {
    /// A problem with lists.
    pub fn new(attention: Attention, lists: impl Into<KeyLists>) -> Self {
        Self { attention, lists: lists.into() }
    }

    /// Whether the lists are for the problem, and the problem one that kernels serve.
    ///
    /// # Errors
    /// The reason, where it is not: [`AttentionError`], of which [`AttentionError::Lists`] is about the lists.
    pub fn check(&self) -> Result<(), AttentionError> {
        self.attention.check()?;
        self.check_lists().map_err(AttentionError::Lists)
    }

    fn check_lists(&self) -> Result<(), KeyListError> {
        let (problem, block) = (&self.attention, self.lists.block());
        let ListExtents { sequences, heads, query_blocks } = self.lists.extents();
        let num_sequences = problem.queries.num_sequences();
        if sequences != 1 && sequences != num_sequences {
            return Err(KeyListError::Sequences { expected: num_sequences, found: sequences });
        }
        if heads != 1 && heads != problem.num_query_heads {
            return Err(KeyListError::Heads { expected: problem.num_query_heads, found: heads });
        }
        let expected = problem.queries.longest().div_ceil(block.tokens());
        if query_blocks != expected {
            return Err(KeyListError::QueryBlocks { expected, found: query_blocks, block });
        }
        let longest = problem.keys.longest();
        match &self.lists {
            KeyLists::Blocks(lists) if lists.num_key_blocks() != longest.div_ceil(block.tokens()) => {
                let expected = longest.div_ceil(block.tokens());
                Err(KeyListError::KeyBlocks { expected, found: lists.num_key_blocks(), block })
            }
            KeyLists::VerticalSlash(lists) if lists.num_keys() != longest => {
                Err(KeyListError::Keys { expected: longest, found: lists.num_keys() })
            }
            _ => Ok(()),
        }
    }

    /// The keys that a row of O sees, ascending.
    ///
    /// # Panics
    /// Where there is no such row, or the lists are not the problem's.
    pub fn keys_of(&self, sequence: usize, head: usize, row: usize) -> Vec<usize> {
        self.keys_of_rows(sequence, head, row..row + 1)
    }

    /// The keys that some of these rows of O see, ascending. There is one, and all are in one block of queries.
    pub(crate) fn keys_of_rows(&self, sequence: usize, head: usize, rows: Range<usize>) -> Vec<usize> {
        let tokens = self.lists.block().tokens();
        let place = ListPlace { sequence, head, query_block: rows.start / tokens };
        let window = self.attention.keys_of_rows(sequence, rows);
        let (starts, columns) = self.lists.keys_of(self.lists.extents().row_of(place));
        let mut keys = columns;
        keys.extend(starts.iter().flat_map(|&start| start..start + tokens));
        keys.retain(|key| window.contains(key));
        keys.sort_unstable();
        keys
    }
}

impl fmt::Display for SparseAttention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ListExtents { sequences, heads, .. } = self.lists.extents();
        write!(f, "{}, ", self.attention)?;
        match &self.lists {
            KeyLists::Blocks(lists) => write!(f, "{} listed blocks of {}", lists.num_blocks(), lists.block())?,
            KeyLists::VerticalSlash(lists) => {
                let (blocks, columns) = lists.num_blocks_and_columns();
                write!(f, "{blocks} listed blocks of {} and {columns} columns", self.lists.block())?;
            }
        }
        write!(f, " in {sequences} x {heads} heads")
    }
}
