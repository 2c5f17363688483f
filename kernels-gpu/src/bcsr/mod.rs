//! BCSR SpMM: C = alpha A B + beta C, A block-sparse in bf16 or f16, accumulated in fp32.
//!
//! # Mathematics
//!
//! A is M x K, stored as dense blocks of BR x BC. Row block i has the blocks P(i) = {(k, A_ik)}. With B in panels
//! of TN columns,
//!
//! ```text
//! C[i, j] = alpha * sum over (k, A_ik) in P(i) of A_ik B[k, j]  +  beta * C[i, j]        (BR x TN)
//! ```
//!
//! # Pseudo-code
//!
//! ```text
//! for (i, j) in my tiles:                       # a list made by the host: static, sorted by work
//!     producer warp group, one thread           consumer warp groups 0 and 1
//!     for stage in stages of P(i):              D = 0
//!         slot = acquire()                      for stage in stages of P(i):
//!         for (k, A_ik) in stage:                   slot = wait()
//!             copy A_ik   -> slot                   D += A B          (4 WGMMAs of K = 16)
//!             copy B[k,j] -> slot                   release the slot of the stage before
//!                                               store alpha D + beta C
//! ```
//!
//! # Pipeline
//!
//! ```text
//!  producer    |A B 0|A B 1|A B 2|A B 3|  (waits for a release)  |A B 4| ...   runs up to STAGES ahead, across tiles
//!  consumer 0        |= mma 0 =|= mma 1 =|= mma 2 =|store C|= mma 3 =| ...
//!  consumer 1           |= mma 0 =|= mma 1 =|= mma 2 =|store C|= mma 3 =| ...   one's store under the other's products
//! ```
//!
//! A stage is 64 of K: one block of 64 columns, two of 32, or four of 16 (a block of 128 columns is two of 64: the
//! host says so). A row block whose number of blocks is no multiple of that is padded with a block index and a column
//! out of bounds: the copy engine fills both with zeros, and zero times zero adds nothing, whatever B holds.
//!
//! With BR = 128 the two consumers split the rows of a tile, and share B. With BR = 64 they split its columns, and
//! share A.
//!
//! # Contract
//!
//! [`Arguments`] says what the host passes; [`CONFIGURATIONS`] what each kernel is made for. M, N and K are free: the copy
//! engine zero-fills beyond the edges of A and B, and the epilogue does not store beyond those of C.
//!
//! # Departures from the pseudo-code
//!
//! 1. The producer loads the indices of a block before it waits for that block's slot, so that their latency is hidden.
//! 2. A slot is released one stage late: the products of one stage stay in flight under the issue of the next.
//! 3. In a cluster of two, both blocks work on the same row block and neighbouring panels. Each loads one half of A
//!    and multicasts it; B is its own.

pub(crate) mod config;
pub(crate) mod consumer;
mod kernel;
pub(crate) mod producer;

pub use config::{Arguments, BLayout, Configuration, Dtype, TileWork, WORDS_PER_BLOCK, WORDS_PER_TILE};
pub use hopper_std::ptx::tensor::CachePolicy;
pub use kernel::{CONFIGURATIONS, entries};
