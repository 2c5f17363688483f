//! Where sequences lie.

use core::fmt;

use super::{AttentionError, AttentionTensor};

/// The sequences of a batch, of queries or of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sequences {
    /// Sequences of one length, each in its own part of the batch axis.
    Equal {
        /// How many.
        batch: usize,
        /// Tokens of each.
        len: usize,
    },
    /// Sequences end to end along the token axis, in a batch of one.
    Packed {
        /// Where each begins, and behind the last where it ends: 0 first, never decreasing.
        offsets: Vec<usize>,
    },
    /// Sequences of lengths of their own, each at the beginning of its own part of the batch axis, where there is room for more: a
    /// cache of keys and values. What lies beyond a length is neither read nor written.
    WithRoom {
        /// Tokens that there is room for in each part.
        capacity: usize,
        /// Tokens of each.
        lengths: Vec<usize>,
    },
}

impl Sequences {
    /// Sequences of these lengths, packed end to end.
    pub fn of_lengths(lengths: &[usize]) -> Self {
        let mut offsets = vec![0];
        let mut end = 0usize;
        for &len in lengths {
            end = end.saturating_add(len);
            offsets.push(end);
        }
        Self::Packed { offsets }
    }

    /// Sequences of these lengths, each with room for `capacity` tokens.
    pub fn with_room(capacity: usize, lengths: &[usize]) -> Self {
        Self::WithRoom { capacity, lengths: lengths.to_vec() }
    }

    /// How many sequences.
    pub fn num_sequences(&self) -> usize {
        match self {
            Self::Equal { batch, .. } => *batch,
            Self::Packed { offsets } => offsets.len().saturating_sub(1),
            Self::WithRoom { lengths, .. } => lengths.len(),
        }
    }

    /// The tokens of a sequence.
    ///
    /// # Panics
    /// Where there is no such sequence.
    pub fn len_of(&self, sequence: usize) -> usize {
        match self {
            Self::Equal { len, .. } => *len,
            Self::Packed { offsets } => offsets[sequence + 1] - offsets[sequence],
            Self::WithRoom { lengths, .. } => lengths[sequence],
        }
    }

    /// The tokens of the longest sequence.
    pub fn longest(&self) -> usize {
        match self {
            Self::Equal { batch: 0, .. } => 0,
            Self::Equal { len, .. } => *len,
            Self::Packed { offsets } => offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0),
            Self::WithRoom { lengths, .. } => lengths.iter().copied().max().unwrap_or(0),
        }
    }

    /// The extents of the batch axis and of the token axis.
    pub fn extents(&self) -> (usize, usize) {
        match self {
            Self::Equal { batch, len } => (*batch, *len),
            Self::Packed { offsets } => (1, offsets.last().copied().unwrap_or(0)),
            Self::WithRoom { capacity, lengths } => (lengths.len(), *capacity),
        }
    }

    /// Where token `at` of a sequence is: its place along the batch axis and along the token axis.
    ///
    /// # Panics
    /// Where there is no such sequence.
    pub fn place(&self, sequence: usize, at: usize) -> (usize, usize) {
        match self {
            Self::Equal { .. } | Self::WithRoom { .. } => (sequence, at),
            Self::Packed { offsets } => (0, offsets[sequence] + at),
        }
    }

    /// Whether offsets begin at 0 and do not decrease, and lengths are within the room.
    pub(super) fn check(&self, tensor: AttentionTensor) -> Result<(), AttentionError> {
        let offsets = match self {
            Self::Equal { .. } => return Ok(()),
            Self::WithRoom { capacity, lengths } => {
                let over = lengths.iter().position(|len| len > capacity);
                return over.map_or(Ok(()), |sequence| {
                    let [len, capacity] = [lengths[sequence], *capacity].map(|tokens| tokens as u64);
                    Err(AttentionError::OverCapacity { tensor, sequence: sequence as u64, len, capacity })
                });
            }
            Self::Packed { offsets } => offsets,
        };
        match offsets.first() {
            Some(0) => {}
            first => return Err(AttentionError::FirstOffset { tensor, found: first.map(|&first| first as u64) }),
        }
        match offsets.windows(2).position(|pair| pair[1] < pair[0]) {
            Some(sequence) => Err(AttentionError::OffsetsDecrease {
                tensor,
                sequence: sequence as u64,
                begin: offsets[sequence] as u64,
                end: offsets[sequence + 1] as u64,
            }),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Sequences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal { batch, len } => write!(f, "{batch} x {len}"),
            Self::Packed { .. } => write!(f, "{} packed, {} in all", self.num_sequences(), self.extents().1),
            Self::WithRoom { capacity, lengths } => {
                let sum = lengths.iter().fold(0usize, |sum, len| sum.saturating_add(*len));
                write!(f, "{} with room for {capacity} each, {sum} in all", lengths.len())
            }
        }
    }
}
