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
//! for (part, run of short rows or row of entries P, chunk of columns) in parallel:    # a team of 1, 2, 4, .. or 32 threads each
//!     each thread of the team, for its 1, 2, 4 or 8 columns J of the chunk:
//!         s = 0
//!         for group of up to four (k, a) in P:    # four loads of B; the next group's entries; then the additions
//!             s += a * B[k, J]                    # one fused multiply-add each, in the order of k
//!         C[i, J] = alpha * s + beta * C[i, J]    # of a part: workspace[part, J] = s
//! for (long row i, four columns J) in parallel:   # another kernel, where there are long rows
//!     C[i, J] = alpha * (sum over the parts of i, in order) + beta * C[i, J]
//! ```
//!
//! # Who does what
//!
//! ```text
//!             | ------------------ a chunk of columns ------------------ |
//!   part or   | thread 0 | thread 1 | thread 2 |  ...  | thread TEAM - 1 |   Packed: each has neighbours, one load
//!   row       | 0 1 2 .. TEAM-1 | 0 1 2 .. TEAM-1 | 0 1 2 .. | ..        |   Spread: each has every TEAM-th column
//! ```
//!
//! All threads of a team read the same four entries at the same time, by one load of 16 bytes: the memory system broadcasts
//! it. Parts and rows are the fast axis of the grid, so that what runs at the same time shares one chunk of columns of B in
//! the L2 cache; parts come first, since they take longest. Where rows are short, a team takes a run of neighbours and reads
//! their entries as one sequence.
//!
//! No thread waits for another. The additions of one element have one order, and it depends on the length of its row of A
//! alone: neither on other rows, nor on the order in which rows are done, nor on N.
//!
//! # Contract
//!
//! [`Arguments`] and [`CombineArguments`] say what the host passes; [`Columns`] and [`Geometry`] how work is shared out. M, N
//! and K are free, up to [`MAX_SIZE`]. B and C lie in memory by two strides each, so every layout and leading dimension is
//! served.

mod combine;
mod config;
mod element;
mod epilogue;
mod kernel;
mod reader;
mod row;
mod run;

pub use combine::{
    COMBINED, COMBINED_COLUMNS, CombineArguments, CombineDestination, CombineWork, Combined, FAN_IN, combine_entries,
};
pub use config::{
    Arguments, Columns, Configuration, Dtype, GROUP, Geometry, MAX_RUN_LOG2, MAX_RUN_PART_LOG2, MAX_SIZE, OutputKind,
    RowKind, THREADS, UNSPLIT_LOG2, Ways, workspace_stride,
};
pub use kernel::{CONFIGURATIONS, entries};
