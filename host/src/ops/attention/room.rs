//! Sequences with room to spare: where a launch finds the end of each.
//!
//! As those of packed sequences, token coordinates reach the map's bound where a sequence ends, and the outer coordinate, which
//! steps from token to token, brings them back to the sequence ([`TileWork`]). Sequence b with n tokens is at outer coordinate
//! b s + n, where s is the way from a sequence to the next in such steps. Only a launch knows s: the tiles of a plan name b.

use kernels_gpu::attention::TileWork;

use super::launch::Tensors;
use super::{Attention, AttentionCount, AttentionError, AttentionTensor, Pass, PassKind, Sequences};
use crate::formats::HeadsShape;
use crate::ops::PlacedHeads;

/// From sequence to sequence, in steps from token to token; 0 where no step is taken, or sequences have no room to spare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Steps {
    /// Of Q and O.
    queries: u32,
    /// Of K and V.
    keys: u32,
}

impl Steps {
    /// Those of a launch.
    ///
    /// # Errors
    /// [`AttentionError::BatchStride`], [`AttentionError::OtherSteps`], [`AttentionError::TooMany`].
    pub(super) fn of(problem: &Attention, tensors: Tensors) -> Result<Self, AttentionError> {
        use AttentionTensor::{K, O, Q, V};
        let Tensors { q, k, v, o } = tensors;
        Ok(Self {
            queries: common(&problem.queries, [(Q, q), (O, o)])?,
            keys: common(&problem.keys, [(K, k), (V, v)])?,
        })
    }

    /// Whether there is one launch's way only: no sequence has room to spare.
    #[cfg(feature = "gpu")]
    pub(super) fn are_known(problem: &Attention) -> bool {
        ![&problem.queries, &problem.keys].into_iter().any(|sequences| matches!(sequences, Sequences::WithRoom { .. }))
    }

    /// A pass's tile with the outer coordinates of this launch.
    pub(super) fn placed(self, problem: &Attention, pass: &Pass, tile: TileWork) -> TileWork {
        // All fit: `step_of` has passed.
        let outer = |sequences: &Sequences, step: u32, outer: i32| match sequences {
            Sequences::WithRoom { lengths, .. } => outer * step as i32 + lengths[outer as usize] as i32,
            Sequences::Equal { .. } | Sequences::Packed { .. } => outer,
        };
        let query_outer = match pass.kind() {
            PassKind::Queries => outer(&problem.queries, self.queries, tile.query_outer),
            PassKind::Heads | PassKind::Parts => tile.query_outer,
        };
        TileWork { query_outer, key_outer: outer(&problem.keys, self.keys, tile.key_outer), ..tile }
    }
}

/// The steps of two tensors whose tiles have the same coordinates.
fn common(sequences: &Sequences, placed: [(AttentionTensor, PlacedHeads); 2]) -> Result<u32, AttentionError> {
    if !matches!(sequences, Sequences::WithRoom { .. }) {
        return Ok(0);
    }
    let [(first, one), (second, other)] = placed;
    let steps = [step_of(first, one)?, step_of(second, other)?];
    if steps[0] != steps[1] {
        return Err(AttentionError::OtherSteps { tensors: [first, second], steps });
    }
    Ok(steps[0])
}

/// Bytes of the step from token to token of sequences with room: where each has one token, that from sequence to sequence.
pub(super) fn token_bytes(PlacedHeads { shape, strides, dtype, .. }: PlacedHeads) -> u64 {
    let HeadsShape { batch, tokens, head_dim, .. } = shape;
    let stride = match (tokens, batch) {
        (2.., _) => strides.token,
        (_, 2..) => strides.batch,
        _ => head_dim,
    };
    (stride as u64).saturating_mul(dtype.size_bytes() as u64)
}

/// One past the last outer coordinate of a tensor of sequences with room.
pub(super) fn outer_end(placed: PlacedHeads) -> u64 {
    let HeadsShape { batch, tokens, .. } = placed.shape;
    let batch_bytes = (placed.strides.batch as u64).saturating_mul(placed.dtype.size_bytes() as u64);
    let step = batch_bytes.checked_div(token_bytes(placed)).unwrap_or(0);
    let sequences = if batch > 1 { step.saturating_mul(batch as u64 - 1) } else { 0 };
    sequences.saturating_add(tokens as u64 + 1)
}

fn step_of(tensor: AttentionTensor, placed: PlacedHeads) -> Result<u32, AttentionError> {
    /// The last tile may reach over the edge.
    const MOST: u64 = i32::MAX as u64 - 1024;
    let HeadsShape { batch, tokens, heads, .. } = placed.shape;
    if batch <= 1 || tokens.min(heads) == 0 {
        return Ok(0);
    }
    let token_bytes = token_bytes(placed);
    let batch_bytes = (placed.strides.batch as u64).saturating_mul(placed.dtype.size_bytes() as u64);
    if batch_bytes.checked_rem(token_bytes) != Some(0) {
        return Err(AttentionError::BatchStride { tensor, batch_bytes, token_bytes });
    }
    match outer_end(placed) {
        found if found > MOST => Err(AttentionError::TooMany { what: AttentionCount::Steps, found, most: MOST }),
        _ => Ok((batch_bytes / token_bytes) as u32),
    }
}
