//! Linear layers in three layers: Y = X W^T + bias, half or more of W's elements zero, in bf16 or f16, accumulated in fp32.
//!
//! Source of the idea: arXiv 2607.08786. Layout and kernel are our own.
//!
//! # Mathematics
//!
//! W is M x K, X is N x K. Of each group of four columns of a row two nonzeros are in S1, a third and a fourth one in S2, so both are two
//! of four: what sparse tensor cores multiply. Surplus for which a tile has no room is in R.
//!
//! ```text
//! W = S1 + S2 + R        Y^T = S1 X^T + S2 X^T + R X^T + bias
//!                              tensor cores      CUDA cores
//! ```
//!
//! S2 is not stored: its values lie in S1's free slots, those of groups with one nonzero or none. A tile, 128 x 128, is as
//! [`layout`] says. Its entries are values in the order of slots; the distance of each, four bits, is the number of groups from the last
//! entry's to its own in S2, 0 for the second one of a group, in the order of memory. The metadata says which slots are free, and the
//! metadata of S2 is that of S1 with each place two further on.
//!
//! ```text
//! S1, groups of four columns       |a b|c .|d e|. .|f g|     two values of each; three free slots
//! as stored                        |a b|c x|d e|y z|f g|     distances of x, y, z: 1 2 0
//! S2, as lifted                    |x .|. .|y z|. .|. .|     groups 1, 1 + 2, 3 again (counted from 1)
//! ```
//!
//! # Pseudo-code
//!
//! ```text
//! for piece in my pieces:                       # of one row block, runs of columns: a list made by the host
//!     producer, one thread                      consumers, two warp groups of 64 rows
//!     for tile in piece:                        D = 0
//!         slot = acquire()                      for tile in piece:
//!         copy the tile    -> slot                  slot = wait()
//!         copy X's columns -> slot                  each warp, of its 16 rows:
//!                                                       copy what is in free slots to a list, leave zeros
//!                                                       running sums of distances: place the list's values in S2
//!                                                   wait for the products of the tile before, release its slot
//!                                                   meet; clear S2 of the tile before
//!                                                   D += S1 X^T, D += S2 X^T
//!                                               D += R X^T in the row block's first part; store or put aside
//! ```
//!
//! # Pipeline
//!
//! ```text
//!  copy engine |W X 0|W X 1|W X 2|  (waits for a release)  |W X 3| ...   runs up to STAGES ahead, across pieces
//!  warps             |lift 0 |lift 1 |lift 2 |lift 3 | ...
//!  tensor cores              |= 0 =| |= 1 =| |= 2 =| ...                 the products of a tile under the lifting of the next
//! ```
//!
//! A tile without surplus is not touched: what is two of four runs as that alone.
//!
//! Where W has a zero, X's element may be multiplied by a stored zero or by nothing: NaN and infinity of X come through in either way.
//!
//! # Contract
//!
//! [`Arguments`] says what the host passes, [`CONFIGURATIONS`] what each kernel is made for. M, N and K are free: X is read as zero beyond
//! its edges, W's tiles are padded with zeros, and the epilogue does not store beyond Y.

mod config;
mod consumer;
mod kernel;
pub mod layout;
mod lift;
mod producer;
mod residual;

pub use config::{Arguments, Configuration};
pub use hopper_std::ptx::tensor::CachePolicy;
pub use kernel::{CONFIGURATIONS, entries};
