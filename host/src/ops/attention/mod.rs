//! O = softmax(scale Q K^T) V, by sequence and head.
//!
//! [`Attention`] is the problem, [`AttentionPlan`] the choice of kernel and tiles; both print, and planning needs no GPU. On
//! a device a plan is prepared (`AttentionPlan::prepare`, feature `gpu`) and then launched many times; in the simulator
//! (`AttentionPlan::simulate`, feature `sim`) it runs at once.
//!
//! ```text
//! Attention::new(sequences, num_heads, head_dim, dtype)       full, from a sequence to itself, scale 1 / sqrt(D)
//!     .with_keys(sequences) .with_key_heads(n) .with_window(window) .with_scale(s) .with_softcap(cap)
//! Attention::check(&self) -> Result<(), AttentionError>
//! Attention::plan(&self, multiprocessors) -> Result<AttentionPlan, AttentionError>
//!
//! AttentionPlan::prepare::<T>(&self, &Device) -> Result<AttentionPrepared<T>, Error>
//! unsafe AttentionPrepared::launch(&self, &Stream, q, k, v: DeviceHeadsView<T>, o: &mut DeviceHeadsViewMut<T>,
//!     lse: Option<&mut DeviceDenseViewMut<f32>>) -> Result<(), Error>
//! AttentionPlan::simulate(&self, &Simulated, q, k, v: HeadsView<T>, o: &mut HeadsViewMut<T>,
//!     lse: Option<&mut DenseViewMut<f32>>) -> Result<Report, Error>
//! ```
//!
//! A plan is one launch or several, each a [`Pass`] with tiles: sequences of several queries have a kernel whose tiles are
//! rows of one head; those of one query have one whose tiles are the heads that share a head of keys, and many keys are
//! split into parts, which a last launch combines.
//!
//! Q and O have the shape [`Attention::query_shape`], K and V [`Attention::key_shape`]; where rows lie is free, as long as
//! each begins at a multiple of 16 bytes. Log-sum-exps are natural logarithms, [`Attention::lse_shape`].
//!
//! Sequences lie side by side, packed end to end, or each with room for more ([`Sequences`]).
//!
//! Lists of the keys that blocks of queries see, estimated or given: [`blocks`].
//!
//! Which kernel a sequence gets, which tiles and in which order each tile takes its keys depends on that sequence and the
//! problem's options alone: its part of O has the same bits in any batch.

pub mod blocks;
mod error;
#[cfg(any(feature = "gpu", feature = "sim"))]
mod launch;
mod plan;
#[cfg(feature = "gpu")]
mod prepared;
mod problem;
#[cfg(any(feature = "gpu", feature = "sim"))]
mod room;
mod schedule;
mod sequences;
#[cfg(feature = "sim")]
mod simulated;

pub use error::{AttentionCount, AttentionError, AttentionTensor};
pub use plan::{AttentionPlan, Pass, PassKind};
#[doc(hidden)]
pub use plan::{OneQuery, Whole};
#[cfg(feature = "gpu")]
pub use prepared::AttentionPrepared;
pub use problem::{Attention, MAX_HEAD_DIM, Window};
pub use sequences::Sequences;
