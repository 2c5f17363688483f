//! Attention of blocks of queries to lists of keys.
//!
//! [`SparseAttention`] is an [`Attention`](super::Attention) problem in which each block of queries sees the keys of its list
//! alone. Lists are of one of two kinds:
//!
//! - [`BlockLists`]: blocks of 64 or 128 keys, as FlexAttention and FlashAttention-4 have them; also from a boolean mask of
//!   blocks, or from the pattern of a block-sparse matrix;
//! - [`VerticalSlash`]: runs of 64 keys from any key on, and single keys, as MInference has them.
//!
//! ```text
//! SparseAttention::new(attention, lists)
//! SparseAttention::plan(&self, multiprocessors) -> Result<AttentionPlan, AttentionError>
//! ```
//!
//! The plan is prepared, launched and simulated as that of any other attention. [`estimate`] makes lists out of Q and K.
//!
//! A row sees a key that is in its list and in the problem's window: a causal problem needs no lists of its own. A row that
//! sees no key gets O = 0 and a log-sum-exp of minus infinity. K and V at keys that no list of a block of queries has are not
//! read for it, whatever they hold; inside a listed block, NaN in V reaches every row of the block of queries, in or out of
//! the window.
//!
//! ```
//! use hopper_sparse::Dtype;
//! use hopper_sparse::ops::attention::blocks::{BlockLists, BlockSize, ListExtents, SparseAttention};
//! use hopper_sparse::ops::attention::{Attention, Sequences, Window};
//!
//! let attention = Attention::new(Sequences::Equal { batch: 1, len: 192 }, 7, 128, Dtype::Bf16).with_window(Window::CAUSAL);
//! // Every block of queries sees the first block and itself, in all heads.
//! let extents = ListExtents { sequences: 1, heads: 1, query_blocks: 3 };
//! let mask = [true, false, false, true, true, false, true, false, true];
//! let lists = BlockLists::from_mask(BlockSize::B64, extents, 3, &mask)?;
//! let plan = SparseAttention::new(attention, lists).plan(132)?;
//! assert_eq!((plan.num_tiles(), plan.num_key_tiles()), (21, 35));
//! # Ok::<(), hopper_sparse::Error>(())
//! ```

mod error;
pub mod estimate;
mod lists;
mod plan;
mod problem;
mod slashes;

pub use error::{KeyListError, KeyListName, ListPlace};
pub use lists::{BlockLists, BlockSize, CountedLists, ListExtents};
pub use problem::{KeyLists, SparseAttention};
pub use slashes::VerticalSlash;
