//! Attention as a workload: the library's problem, and what it costs.

use core::fmt;

use hopper_sparse::ops::attention::blocks::{BlockLists, BlockSize, ListExtents, SparseAttention};
use hopper_sparse::ops::attention::{Attention, Sequences, Window};
use serde::Deserialize;
use serde_json::{Value, json};

use super::implementation::Refusal;
use super::record::Row;
use crate::random::Random;

/// Makes lists independent of Q, K and V.
const LISTS: u64 = 0x6c69_7374;

/// Which keys a row sees, as workload files name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mask {
    /// All.
    #[default]
    Full,
    /// None after its diagonal; the last row's is the last key.
    Causal,
}

impl Mask {
    /// The name in workload files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Causal => "causal",
        }
    }
}

impl From<Mask> for Window {
    fn from(mask: Mask) -> Self {
        match mask {
            Mask::Full => Self::FULL,
            Mask::Causal => Self::CAUSAL,
        }
    }
}

/// Random blocks of keys that each block of queries of each head sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Queries and keys of a block.
    pub block: BlockSize,
    /// Blocks of keys for each block of queries, or all that there are.
    pub count: usize,
}

/// One attention. All of Q, K, V and O lie as `[batch, tokens, heads, head_dim]`.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionWorkload {
    /// What is computed.
    pub problem: Attention,
    /// The lists of blocks, where not every block is seen.
    pub listed: Option<Listed>,
    /// Draws Q, K and V, and lists.
    pub seed: u64,
}

impl AttentionWorkload {
    /// Operations of Q K^T and P V for the pairs of a row and a key that the mask shows, listed or not, a multiply-add being
    /// two.
    pub fn flops(&self) -> u64 {
        (4 * self.problem.num_pairs() * self.problem.head_dim as u128) as u64
    }

    /// Whether an implementation that takes no lists of blocks can serve the workload.
    ///
    /// # Errors
    /// The reason, where none can.
    pub fn check_dense(&self) -> Result<(), Refusal> {
        match self.listed {
            None => Ok(self.problem.check()?),
            Some(_) => Err(Refusal::NoLists),
        }
    }

    /// The problem with its lists, where it has lists: for each block of queries different blocks, every choice equally
    /// likely.
    pub fn sparse(&self) -> Option<SparseAttention> {
        let Listed { block, count } = self.listed?;
        let blocks_of = |sequences: &Sequences| sequences.longest().div_ceil(block.tokens());
        let num_key_blocks = blocks_of(&self.problem.keys);
        let extents = ListExtents {
            sequences: self.problem.queries.num_sequences(),
            heads: self.problem.num_query_heads,
            query_blocks: blocks_of(&self.problem.queries),
        };
        let mut random = Random::new(self.seed ^ LISTS);
        let num_lists = extents.sequences * extents.heads * extents.query_blocks;
        let mut mask = vec![false; num_lists * num_key_blocks];
        for list in mask.chunks_exact_mut(num_key_blocks.max(1)) {
            // Floyd's sampling without repetition (Bentley and Floyd, 1987).
            for end in num_key_blocks.saturating_sub(count)..num_key_blocks {
                let drawn = random.below(end as u64 + 1) as usize;
                list[if list[drawn] { end } else { drawn }] = true;
            }
        }
        let lists = BlockLists::from_mask(block, extents, num_key_blocks, &mask);
        lists.ok().map(|lists| SparseAttention::new(self.problem.clone(), lists))
    }

    /// Elements of Q, which are as many as those of O.
    pub fn num_query_elements(&self) -> usize {
        num_tokens(&self.problem.queries) * self.problem.num_query_heads * self.problem.head_dim
    }

    /// Elements of K, which are as many as those of V.
    pub fn num_key_elements(&self) -> usize {
        num_tokens(&self.problem.keys) * self.problem.num_key_heads * self.problem.head_dim
    }

    /// Bytes of Q, K, V and O, once each.
    pub fn bytes(&self) -> u64 {
        (2 * (self.num_query_elements() + self.num_key_elements()) * self.problem.dtype.size_bytes()) as u64
    }

    /// Fills in the columns of a record that name the problem.
    pub fn describe(&self, row: &mut Row) {
        let Attention { queries, keys, num_query_heads, num_key_heads, head_dim, dtype, window, .. } = &self.problem;
        row.batch = Some(queries.num_sequences() as u64);
        row.queries = Some(queries.longest() as u64);
        row.keys = Some(keys.longest() as u64);
        row.tokens = Some(num_tokens(keys) as u64);
        (row.heads, row.kv_heads) = (Some(*num_query_heads as u64), Some(*num_key_heads as u64));
        row.head_dim = Some(*head_dim as u64);
        row.mask = match self.listed {
            None => window.to_string(),
            Some(Listed { block, count }) => format!("{window} of {count} blocks of {block}"),
        };
        row.dtype = dtype.to_string();
        row.c_dtype = dtype.to_string();
        row.seed = self.seed;
    }

    /// As a peer's script reads it.
    pub fn to_json(&self) -> Value {
        let problem = &self.problem;
        let lengths = |sequences: &Sequences| -> Vec<usize> {
            (0..sequences.num_sequences()).map(|sequence| sequences.len_of(sequence)).collect()
        };
        json!({
            "queries": lengths(&problem.queries),
            "keys": lengths(&problem.keys),
            "packed": matches!(problem.queries, Sequences::Packed { .. }),
            "heads": problem.num_query_heads,
            "kv_heads": problem.num_key_heads,
            "head_dim": problem.head_dim,
            "dtype": problem.dtype.name(),
            "mask": problem.window.to_string(),
            "scale": problem.scale,
            "softcap": problem.softcap,
            "seed": self.seed,
        })
    }
}

impl fmt::Display for AttentionWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

/// Tokens of all sequences together.
pub fn num_tokens(sequences: &Sequences) -> usize {
    let (batch, tokens) = sequences.extents();
    batch * tokens
}

#[cfg(test)]
mod tests {
    use hopper_sparse::Dtype;

    use super::*;

    #[test]
    fn the_cost_counts_the_pairs_that_are_seen_and_the_heads_of_each() {
        let problem = Attention::new(Sequences::of_lengths(&[3, 5]), 4, 8, Dtype::Bf16).with_key_heads(2);
        let full = AttentionWorkload { problem, listed: None, seed: 1 };
        assert_eq!(full.flops(), 4 * (9 + 25) * 8 * 4);
        assert_eq!(full.bytes(), 2 * (2 * 8 * 4 * 8 + 2 * 8 * 2 * 8));
        let causal = AttentionWorkload { problem: full.problem.with_window(Window::CAUSAL), listed: None, seed: 1 };
        assert_eq!(causal.flops(), 4 * (6 + 15) * 8 * 4);
        let json = causal.to_json();
        assert_eq!((&json["queries"], &json["mask"]), (&json!([3, 5]), &json!("causal")));
        let mut row = Row::default();
        causal.describe(&mut row);
        assert_eq!((row.batch, row.keys, row.tokens, row.kv_heads), (Some(2), Some(5), Some(8), Some(2)));
    }
    #[test]
    fn each_block_of_queries_lists_as_many_blocks() {
        let problem = Attention::new(Sequences::Equal { batch: 2, len: 1000 }, 3, 64, Dtype::Bf16);
        let listed = |count| AttentionWorkload {
            problem: problem.clone(),
            listed: Some(Listed { block: BlockSize::B64, count }),
            seed: 1,
        };
        for (count, expected) in [(0, 0), (1, 1), (5, 5), (16, 16), (20, 16)] {
            let sparse = listed(count).sparse().expect("it has lists");
            assert_eq!(sparse.check(), Ok(()));
            let plan = sparse.plan(132).expect("a plan");
            // A tile without a listed block meets one that no row sees.
            assert_eq!(plan.num_key_tiles(), 2 * 3 * 16 * expected.max(1));
        }
        assert_eq!(listed(5).sparse(), listed(5).sparse());
        let mut row = Row::default();
        listed(5).describe(&mut row);
        assert_eq!(row.mask, "full of 5 blocks of 64");
    }
}
