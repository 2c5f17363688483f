//! What each part of a BCSR kernel is worth: kernels that lack some. Feature `ablation`.
//!
//! C = alpha A B + beta C as in [`bcsr`](crate::bcsr), with blocks of 128 x 64 in bf16 and B column-major, so that the lines of A and of B
//! run along K alike. All of them work off the same lists of tiles, one block to a multiprocessor, and [store](crate::store) in the same way.
//!
//! | kernel | what it adds to the one before |
//! | --- | --- |
//! | `ablation_cores` | nothing: all threads copy a stage through registers, wait, and multiply it on the CUDA cores |
//! | `ablation_wgmma` | the tensor cores multiply: the threads' writes need a fence, and be swizzled as descriptors say |
//! | `ablation_tma` | the copy engine brings the stage: one thread asks for it, all wait for its bytes |
//! | `ablation_depth1` | a producer warp group asks for it, two consumers have its registers; still one stage |
//! | `ablation_depth2` .. `ablation_depth6` | stages: copies run ahead of the products, and these one behind another |
//! | `ablation_n8` .. `ablation_n256` | of four stages: other columns of a tile, WGMMA's N, where all above have 128 |
//!
//! ```text
//!               one stage                                      STAGES
//!  cores, wgmma |copy|sync|mma|sync|copy|sync|mma|
//!  tma          |ask, wait ..|mma|ask, wait ..|mma|
//!  depth1       |ask|      |ask|                               |ask|ask|ask|ask|   producer
//!                 wait ..|mma| wait ..|mma|                      wait|mma|mma|mma| consumers
//! ```
//!
//! What the real kernels have beside all this (rows of B, clusters, tiles of 256 columns, hints for L2) is not taken apart here. The
//! producer, the products of a stage, shared memory and the store are theirs; the consumer differs by what one stage and tiles of
//! eight columns want.
//!
//! # Contract
//!
//! [`Arguments`] says what the host passes, [`CONFIGURATIONS`] what each kernel is made for.

mod by_hand;
mod config;
mod consumer;
mod kernel;

pub use config::{Arguments, Configuration};
pub use kernel::{CONFIGURATIONS, entries};
