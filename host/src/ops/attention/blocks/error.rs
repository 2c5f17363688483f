//! What lists of keys refuse.

use core::fmt;

use super::BlockSize;
use crate::element::Dtype;

/// A list that a block of queries has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyListName {
    /// Blocks that its rows see whole.
    FullBlocks,
    /// Blocks of which its rows see a part.
    PartialBlocks,
    /// Blocks that begin at any key.
    Blocks,
    /// Single keys.
    Columns,
}

impl fmt::Display for KeyListName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FullBlocks => "full blocks",
            Self::PartialBlocks => "partial blocks",
            Self::Blocks => "blocks",
            Self::Columns => "columns",
        })
    }
}

/// The block of queries that a list belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListPlace {
    /// The sequence, from 0; 0 where all sequences share lists.
    pub sequence: usize,
    /// The head of Q, from 0; 0 where all heads share lists.
    pub head: usize,
    /// The block of queries, from 0.
    pub query_block: usize,
}

impl fmt::Display for ListPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "query block {} of head {} of sequence {}", self.query_block, self.head, self.sequence)
    }
}

/// Why lists of keys, or a problem with them, are refused.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum KeyListError {
    /// There is not a count for each block of queries.
    NumCounts {
        /// Of the list.
        list: KeyListName,
        /// Blocks of queries of all heads of all sequences.
        expected: u64,
        /// Counts.
        found: u64,
    },
    /// The indices do not divide among the blocks of queries.
    NumIndices {
        /// Of the list.
        list: KeyListName,
        /// Blocks of queries of all heads of all sequences.
        rows: u64,
        /// Indices.
        found: u64,
    },
    /// A mask has another number of elements.
    MaskLength {
        /// Sequences times heads times blocks of queries times blocks of keys.
        expected: u64,
        /// Elements.
        found: u64,
    },
    /// A count is negative, or more than there is room for.
    Count {
        /// Of the list.
        list: KeyListName,
        /// Where.
        place: ListPlace,
        /// The count.
        found: i64,
        /// Places that each block of queries has.
        most: u64,
    },
    /// An index is negative, or past the last block or key.
    Index {
        /// Of the list.
        list: KeyListName,
        /// Where.
        place: ListPlace,
        /// The index.
        found: i64,
        /// One more than the largest.
        end: u64,
    },
    /// A block or a key is listed twice: its keys would count twice.
    Duplicate {
        /// The second time in the list.
        list: KeyListName,
        /// Where.
        place: ListPlace,
        /// The index.
        index: i64,
    },
    /// Two blocks have keys in common, which would count twice.
    Overlap {
        /// Where.
        place: ListPlace,
        /// Where the first block begins.
        first: i64,
        /// Where the second begins.
        second: i64,
    },
    /// Lists are neither of one sequence, for all, nor of as many as the problem has.
    Sequences {
        /// The problem's.
        expected: usize,
        /// The lists'.
        found: usize,
    },
    /// Lists are neither of one head, for all, nor of as many query heads as the problem has.
    Heads {
        /// The problem's.
        expected: usize,
        /// The lists'.
        found: usize,
    },
    /// Lists are not of as many blocks of queries as the longest sequence has.
    QueryBlocks {
        /// The problem's.
        expected: usize,
        /// The lists'.
        found: usize,
        /// Of so many queries.
        block: BlockSize,
    },
    /// Lists are not of as many blocks of keys as the longest sequence has.
    KeyBlocks {
        /// The problem's.
        expected: usize,
        /// The lists'.
        found: usize,
        /// Of so many keys.
        block: BlockSize,
    },
    /// Lists are not of as many keys as the longest sequence has.
    Keys {
        /// The problem's.
        expected: usize,
        /// The lists'.
        found: usize,
    },
    /// No kernel takes such rows with lists of such blocks.
    NoKernel {
        /// Elements of a row.
        head_dim: usize,
        /// Their type.
        dtype: Dtype,
        /// The blocks.
        block: BlockSize,
    },
    /// Diagonals are estimated where rows see the keys up to their own alone.
    NotCausal,
    /// All lists together are longer than a kernel can number.
    TooLong {
        /// Entries.
        found: u64,
        /// The most.
        most: u64,
    },
}

impl fmt::Display for KeyListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NumCounts { list, expected, found } => {
                write!(f, "there are {found} counts of {list}, but {expected} blocks of queries")
            }
            Self::NumIndices { list, rows, found } => {
                write!(f, "{found} indices of {list} cannot be divided among {rows} blocks of queries")
            }
            Self::MaskLength { expected, found } => {
                write!(f, "the mask has {found} elements, but {expected} pairs of blocks")
            }
            Self::Count { list, place, found, most } => {
                write!(f, "{place} has {found} {list}, but room for {most}")
            }
            Self::Index { list, place, found, end } => {
                write!(f, "{place} lists {found} among its {list}, but they are numbered from 0 to less than {end}")
            }
            Self::Duplicate { list, place, index } => {
                write!(f, "{place} lists {index} twice, the second time among its {list}")
            }
            Self::Overlap { place, first, second } => {
                write!(f, "{place} lists blocks from key {first} and from key {second} on, which have keys in common")
            }
            Self::Sequences { expected, found } => {
                write!(
                    f,
                    "the lists are of {found} sequences, but the problem has {expected}: give one, for all, or as many"
                )
            }
            Self::Heads { expected, found } => {
                write!(
                    f,
                    "the lists are of {found} heads, but the problem has {expected}: give one, for all, or as many"
                )
            }
            Self::QueryBlocks { expected, found, block } => {
                write!(f, "the lists are of {found} blocks of {block} queries, but the longest sequence has {expected}")
            }
            Self::KeyBlocks { expected, found, block } => {
                write!(f, "the lists are of {found} blocks of {block} keys, but the longest sequence has {expected}")
            }
            Self::Keys { expected, found } => {
                write!(f, "the lists are of {found} keys, but the longest sequence has {expected}")
            }
            Self::NoKernel { head_dim, dtype, block } => write!(
                f,
                "no attention kernel takes lists of blocks of {block} keys with a head dimension of {head_dim} in {dtype}"
            ),
            Self::NotCausal => f.write_str("diagonals are estimated for causal attention alone"),
            Self::TooLong { found, most } => {
                write!(f, "the lists have {found} entries together, but a kernel can number {most} at most")
            }
        }
    }
}

impl std::error::Error for KeyListError {}
