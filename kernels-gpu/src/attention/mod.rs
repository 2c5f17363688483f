//! Attention, forward: O = softmax(scale Q K^T) V for each head of each sequence.
//!
//! # Mathematics
//!
//! A row q of Q meets the keys k_j that it sees (all of them, those around its diagonal, or those of a list of blocks):
//!
//! ```text
//! s_j = scale q k_j         or  s_j = cap tanh(scale q k_j / cap)
//! L   = ln sum_j e^s_j      o = sum_j e^(s_j - L) v_j
//! ```
//!
//! Scores exist for one tile of keys at a time. With m near the greatest score so far and the sum l = sum_j 2^(s_j - m), in
//! powers of 2 (the host folds log2(e) into the scale), a tile that moves m multiplies what has been summed before by
//! 2^(m_before - m): Dao, arXiv 2307.08691; on Hopper: arXiv 2312.11918 and 2407.08608, whose overlap of a tile's softmax with
//! the products of its neighbours this follows.
//!
//! # A block
//!
//! One producer thread and one, two or three consumer warp groups, each with 64 rows of Q. Blocks stay and work through a
//! list of tiles that the host has made.
//!
//! ```text
//! producer:   for each tile of O:                  consumer:  for each tile of O, without a gap between them:
//!                 Q  -> ring of Q                                 S  = Q K_i^T                  \  issued together
//!                 for each tile of keys i:                        O += P V_(i+1)                /
//!                     K_i     -> ring                             wait for S:   mask, maximum, P_i = 2^(S - m)
//!                     V_(i+1) -> ring                             wait for O:   O *= 2^(m_before - m) where m moved
//!                                                                 behind the last tile: O / l -> shared memory -> global
//! ```
//!
//! ```text
//! tensor cores   S_3      O_4      S_2      O_3      S_1      O_2  ..
//! softmax                 P_3               P_2               P_1  ..      the others' products fill the gaps; two
//!                                                                          consumers may take turns
//! ```
//!
//! Keys are met from the last to the first: what a causal row does not see comes first, together with the ragged end. Where
//! Q has two slots the last product of a tile of O runs beside the first of the next, and its store beside the other
//! consumers' products.
//!
//! # Files
//!
//! `config`: tiles, arguments, contract. `producer`, `consumer`: the two roles. `softmax`, `mask`, `turn`: the steps of a
//! consumer. `epilogue`: the store. `kernel`: the entries. `combine`: rows whose keys were split.

mod combine;
mod config;
mod consumer;
mod epilogue;
mod kernel;
mod mask;
mod producer;
mod softmax;
mod turn;

pub use combine::{COMBINED, CombineArguments, Combined, RowWork, WORDS_PER_ROW, combine_entries};
pub use config::{
    Arguments, CHUNK, COLUMNS, CONSUMER_ROWS, Configuration, Dtype, SHIFT, Serves, TileWork, UNBOUNDED, WORDS_PER_TILE,
};
pub use kernel::{CONFIGURATIONS, entries};
