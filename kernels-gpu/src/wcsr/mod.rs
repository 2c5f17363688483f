//! WCSR SpMM: C = alpha A B + beta C, A window-sparse in bf16 or f16, accumulated in fp32.
//!
//! Source of the format: AsyncSparse (arXiv 2604.17834).
//!
//! # Mathematics
//!
//! A is M x K, its rows cut into windows of H. Window w has the union U(w) of its rows' columns, stored dense: V_w, H x |U(w)|.
//! With the columns in groups of eight neighbours (or of one), U(w) is a list of groups G(w). With B in panels of TN columns,
//!
//! ```text
//! C[w, j] = alpha * sum over g in G(w) of V_w[:, g] B[8 g .. 8 g + 8, j]  +  beta * C[w, j]        (H x TN)
//! ```
//!
//! Row w H + r of the windows is a row of A, and of C: that of the same number, or the one that an order names. The sums are the same; the
//! store looks the row up.
//!
//! A stored zero is a zero like any other: times a NaN of B it is NaN, in every row of the window.
//!
//! # Pseudo-code
//!
//! ```text
//! for (w, j, part of G(w)) in my tiles:         # a list made by the host: static, sorted by work
//!     producer, one thread                      consumer warp groups, 64 rows each
//!     for stage in stages of the part:          D = 0
//!         slot = acquire()                      for stage in stages of the part:
//!         copy V_w[:, stage] -> slot                slot = wait()
//!         for g in stage:                           D += V B              (a WGMMA of K = 16 for each panel of V)
//!             copy B[8 g .. 8 g + 8, j] -> slot     release the slot of the stage before
//!                                               store alpha D + beta C, or D into the workspace
//! combine: for each window that was split, C = alpha (D_0 + D_1 + ..) + beta C, in the order of the parts
//! ```
//!
//! # Pipeline
//!
//! ```text
//!  copy engine  |V g0 .. g7|V g8 .. g15|  (waits for a release)  |V ...   runs up to STAGES ahead, across tiles
//!  consumers                 |= mma 0 =|= mma 1 =|..|store C|= mma ..     two blocks a multiprocessor, where they fit: one's store
//!                                                                         under the other's products
//! ```
//!
//! A group's box is eight rows of B and all TN columns of the panel, in chunks of 64: an atom of the 128-byte swizzle for each
//! chunk, so that the copy engine, which spends as long on 128 bytes as on 2048, brings 8 x TN at once, and the tensor cores
//! read it as it lands.
//!
//! With groups of one column the producer is a whole warp group, which gathers B's rows itself: sixteen bytes a copy, eight threads
//! to 128 bytes of a row, the swizzle applied by hand. Such copies are writes of the threads: a stage is published some stages after its
//! copies were issued, when they are done, behind the fence that lets the tensor cores see them ([`Gatherer`](hopper_std::sm90::Gatherer)).
//!
//! Windows of 8 and 16 rows would leave most of a product's 64 rows empty. For them the operands change places: C^T = B^T V^T, the
//! window is the product's columns and 64 columns of B are its rows (`narrow.rs`). What gathers B is the same, and bounds these kernels
//! more than others: a row of B that has come serves 8 or 16 rows of C, not 64 or 128. So a tensor core that is mostly idle costs nothing,
//! and what must not wait is the producer: narrow windows share entries of the list and stages of the ring.
//!
//! | windows | a product's M | its N | a consumer has | tiles of columns |
//! | --- | --- | --- | --- | --- |
//! | 64, 128 | 64 rows of the window | TN columns of B | 64 rows, all columns | 64, 128, with 128 rows 256 |
//! | 8, 16 | 64 columns of B | the window | 64 columns, all rows | 64, 128 |
//!
//! Tiles of 256 columns would take four consumers, or two accumulators of each, for narrow windows; with more than 128 columns they read
//! A twice instead, which is small beside the rows of B.
//!
//! # Contract
//!
//! [`Arguments`] says what the host passes; [`CONFIGURATIONS`] what each kernel is made for. B is row-major, its lines and base
//! aligned to 16 bytes, and with groups of eight readable up to the next multiple of 64 columns. M, N and K are free beside that: groups and rows beyond the
//! edges of A and B are read as zeros, and the epilogue does not store beyond those of C.
//!
//! # Departures from the pseudo-code
//!
//! 1. The producer loads the groups of a stage before it waits for that stage's slot, so that their latency is hidden.
//! 2. A slot is released one stage late: the products of one stage stay in flight under the issue of the next.
//! 3. The last stage of an entry may have fewer panels of V; V's copy brings the next window's panels along, which nobody reads.

mod combine;
mod config;
mod consumer;
mod gather;
mod kernel;
mod narrow;
mod producer;

pub use combine::{COMBINED, CombineArguments, Combined, SplitWork, combine_entries, num_slices};
pub use config::{
    Arguments, Configuration, Dtype, MOST_PANELS, MOST_WINDOWS, PANEL_COLS, STORED, TileWork, WORDS_PER_TILE,
};
pub use hopper_std::ptx::tensor::CachePolicy;
pub use kernel::{CONFIGURATIONS, entries};
