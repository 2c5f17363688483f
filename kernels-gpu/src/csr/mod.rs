//! CSR SpMM: C = alpha A B + beta C, A sparse in bf16, f16 or f32, accumulated in fp32 on the CUDA cores.
//!
//! # Mathematics
//!
//! A is M x K, stored by rows: row i has the entries P(i) = {(k, a_ik)}, k ascending. For each row i and column j
//!
//! ```text
//! C[i, j] = alpha * sum over (k, a_ik) in P(i) of a_ik B[k, j]  +  beta * C[i, j]
//! ```
//!
//! # Pseudo-code
//!
//! ```text
//! for (row i, chunk of columns) in parallel:      # a team of 1, 2, 4, .. or 32 threads each
//!     each thread of the team, for its 1, 2, 4 or 8 columns J of the chunk:
//!         s = 0
//!         for (k, a) in P(i):                     # four entries at a time: all their loads, then the additions
//!             s += a * B[k, J]                    # one fused multiply-add each, in the order of k
//!         C[i, J] = alpha * s + beta * C[i, J]
//! ```
//!
//! # Who does what
//!
//! ```text
//!             | ------------------ a chunk of columns ------------------ |
//!   row i     | thread 0 | thread 1 | thread 2 |  ...  | thread TEAM - 1 |   Packed: each has neighbours, one load
//!   row i + 1 | 0 1 2 .. TEAM-1 | 0 1 2 .. TEAM-1 | 0 1 2 .. | ..        |   Spread: each has every TEAM-th column
//! ```
//!
//! All threads of a team read the same entry at the same time: the memory system broadcasts it. Rows are the fast axis of
//! the grid, so that what runs at the same time shares one chunk of columns of B in the L2 cache.
//!
//! No thread waits for another, no sum is split: the additions of one element have one order, and it depends on its row
//! of A alone.
//!
//! # Contract
//!
//! [`Arguments`] says what the host passes; [`Columns`] and [`Geometry`] how work is shared out. M, N and K are free, up to
//! [`MAX_SIZE`]. B and C lie in memory by two strides each, so every layout and leading dimension is served.

mod config;
mod kernel;
mod reader;

pub use config::{Arguments, Columns, Configuration, Dtype, Geometry, MAX_SIZE, OutputKind, THREADS};
pub use kernel::{CONFIGURATIONS, entries};
