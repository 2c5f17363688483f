//! What attention refuses.

use core::fmt;

use super::blocks::KeyListError;
use crate::element::Dtype;
use crate::formats::{HeadsAxis, HeadsShape};

/// A tensor of O = softmax(scale Q K^T) V.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttentionTensor {
    /// Queries.
    Q,
    /// Keys.
    K,
    /// Values.
    V,
    /// The result.
    O,
}

impl fmt::Display for AttentionTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Q => "Q",
            Self::K => "K",
            Self::V => "V",
            Self::O => "O",
        })
    }
}

/// Why a problem, or a tensor of it, is refused.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum AttentionError {
    /// The kernels do not take the element type.
    Dtype {
        /// The type asked for.
        dtype: Dtype,
    },
    /// The kernels do not take rows of so many elements.
    HeadDim {
        /// The elements asked for.
        head_dim: usize,
    },
    /// The kernels at hand do not take rows of so many elements of the type.
    NoKernel {
        /// The elements asked for.
        head_dim: usize,
        /// The type asked for.
        dtype: Dtype,
    },
    /// Query heads do not divide among the heads of keys.
    Heads {
        /// Heads of Q and O.
        query: usize,
        /// Heads of K and V.
        key: usize,
    },
    /// The scale is not a positive number.
    Scale {
        /// The scale.
        scale: f32,
    },
    /// The softcap is not a positive number.
    Softcap {
        /// The softcap.
        softcap: f32,
    },
    /// The lists of keys, or that they are lists of another problem.
    Lists(KeyListError),
    /// There are not as many sequences of queries as of keys.
    NumSequences {
        /// Of queries.
        queries: usize,
        /// Of keys.
        keys: usize,
    },
    /// The first offset of packed sequences is not 0.
    FirstOffset {
        /// Whose sequences: of Q, or of K and V.
        tensor: AttentionTensor,
        /// The offset; `None` where there is none at all.
        found: Option<u64>,
    },
    /// A packed sequence ends before it begins.
    OffsetsDecrease {
        /// Whose sequences: of Q, or of K and V.
        tensor: AttentionTensor,
        /// The sequence, from 0.
        sequence: u64,
        /// Where it begins.
        begin: u64,
        /// Where it ends.
        end: u64,
    },
    /// A sequence has more tokens than there is room for.
    OverCapacity {
        /// Whose sequences: of Q, or of K and V.
        tensor: AttentionTensor,
        /// The sequence, from 0.
        sequence: u64,
        /// Its tokens.
        len: u64,
        /// The tokens that there is room for.
        capacity: u64,
    },
    /// Sequences with room to spare do not lie a whole number of tokens apart.
    BatchStride {
        /// The tensor.
        tensor: AttentionTensor,
        /// From sequence to sequence, in bytes.
        batch_bytes: u64,
        /// From token to token, in bytes.
        token_bytes: u64,
    },
    /// Sequences with room to spare lie otherwise in one tensor than in the other that has the same coordinates.
    OtherSteps {
        /// The tensors.
        tensors: [AttentionTensor; 2],
        /// From sequence to sequence of each, in steps from token to token.
        steps: [u32; 2],
    },
    /// There is more of something than a kernel can number.
    TooMany {
        /// Of what.
        what: AttentionCount,
        /// How many.
        found: u64,
        /// The most.
        most: u64,
    },
    /// The tensors have another type than was planned for.
    OtherDtype {
        /// The type planned for.
        expected: Dtype,
        /// The type found.
        found: Dtype,
    },
    /// A tensor has another shape than the problem.
    OtherShape {
        /// The tensor.
        tensor: AttentionTensor,
        /// The problem's.
        expected: HeadsShape,
        /// The tensor's.
        found: HeadsShape,
    },
    /// The array of log-sum-exps has another shape than the problem, or space between its rows.
    LseShape {
        /// Rows (heads of all sequences) and columns (queries).
        expected: [usize; 2],
        /// Rows, columns, and from row to row.
        found: [usize; 3],
    },
    /// A tensor does not begin where tensor copies can begin.
    Address {
        /// The tensor.
        tensor: AttentionTensor,
        /// Where it begins.
        address: u64,
    },
    /// A tensor's rows do not lie where tensor copies can fetch them.
    Stride {
        /// The tensor.
        tensor: AttentionTensor,
        /// The axis.
        axis: HeadsAxis,
        /// The stride, in bytes.
        bytes: u64,
    },
    /// A tensor's rows lie further apart than tensor copies can step.
    StrideTooWide {
        /// The tensor.
        tensor: AttentionTensor,
        /// The axis.
        axis: HeadsAxis,
        /// The stride, in bytes.
        bytes: u64,
        /// It must be less.
        end: u64,
    },
}

/// What there may be too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttentionCount {
    /// Queries of one sequence.
    Queries,
    /// Keys of one sequence.
    Keys,
    /// Queries or keys of all packed sequences together.
    Tokens,
    /// Sequences.
    Sequences,
    /// Heads.
    Heads,
    /// Rows of O.
    Rows,
    /// Tiles of O.
    Tiles,
    /// Rows that are parts of rows of O.
    PartialRows,
    /// Steps from token to token, from the first sequence's begin to the last one's end.
    Steps,
}

impl AttentionCount {
    const fn plural(self) -> &'static str {
        match self {
            Self::Queries => "queries in a sequence",
            Self::Keys => "keys in a sequence",
            Self::Tokens => "packed tokens",
            Self::Sequences => "sequences",
            Self::Heads => "heads",
            Self::Rows => "rows of O",
            Self::Tiles => "tiles of O",
            Self::PartialRows => "parts of rows of O",
            Self::Steps => "steps from token to token before the last sequence's end",
        }
    }
}

impl fmt::Display for AttentionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Dtype { dtype } => write!(f, "the attention kernels take bf16 and f16, not {dtype}"),
            Self::HeadDim { head_dim } => {
                write!(
                    f,
                    "the attention kernels take head dimensions that are multiples of 8 up to 256, not {head_dim}"
                )
            }
            Self::NoKernel { head_dim, dtype } => {
                write!(f, "no attention kernel takes a head dimension of {head_dim} in {dtype}")
            }
            Self::Heads { query, key } => write!(
                f,
                "{query} query heads cannot be divided among {key} heads of keys: give one or more, and a multiple"
            ),
            Self::Scale { scale } => write!(f, "the scale is {scale}, but must be a positive number"),
            Self::Softcap { softcap } => write!(f, "the softcap is {softcap}, but must be a positive number"),
            Self::Lists(error) => error.fmt(f),
            Self::NumSequences { queries, keys } => {
                write!(f, "there are queries of {queries} sequences, but keys of {keys}")
            }
            Self::FirstOffset { tensor, found: Some(found) } => {
                write!(f, "the first packed sequence of {tensor} begins at token {found}, but must begin at 0")
            }
            Self::FirstOffset { tensor, found: None } => {
                write!(
                    f,
                    "packed sequences have one offset more than there are sequences, but {tensor} has none at all"
                )
            }
            Self::OffsetsDecrease { tensor, sequence, begin, end } => write!(
                f,
                "sequence {sequence} of {tensor} begins at token {begin} and ends at {end}: offsets must not decrease"
            ),
            Self::OverCapacity { tensor, sequence, len, capacity } => {
                write!(f, "sequence {sequence} of {tensor} has {len} tokens, but there is room for {capacity}")
            }
            Self::BatchStride { tensor, batch_bytes, token_bytes } => write!(
                f,
                "from sequence to sequence of {tensor} there are {batch_bytes} bytes, but with room to spare it must be a multiple \
                of the {token_bytes} from token to token"
            ),
            Self::OtherSteps { tensors: [first, second], steps: [one, other] } => write!(
                f,
                "from sequence to sequence there are {one} tokens in {first}, but {other} in {second}: with room to spare they must be \
                as many"
            ),
            Self::TooMany { what, found, most } => {
                write!(f, "there are {found} {}, but a kernel can number {most} at most", what.plural())
            }
            Self::OtherDtype { expected, found } => {
                write!(f, "the problem is of {expected}, but the tensors are of {found}")
            }
            Self::OtherShape { tensor, expected, found } => {
                write!(f, "{tensor} has {found}, but the problem has {expected}")
            }
            Self::LseShape { expected: [rows, cols], found: [found_rows, found_cols, lines] } => write!(
                f,
                "the log-sum-exps are {found_rows} rows of {found_cols}, {lines} apart, but the problem has {rows} of {cols}, \
                row-major and without space between them"
            ),
            Self::Address { tensor, address } => {
                write!(f, "{tensor} begins at {address:#x}, but must begin at a multiple of 16 bytes")
            }
            Self::Stride { tensor, axis, bytes } => {
                write!(f, "from {axis} to {axis} of {tensor} there are {bytes} bytes, but it must be a multiple of 16")
            }
            Self::StrideTooWide { tensor, axis, bytes, end } => {
                write!(f, "from {axis} to {axis} of {tensor} there are {bytes} bytes, but it must be less than {end}")
            }
        }
    }
}

impl std::error::Error for AttentionError {}

impl From<KeyListError> for AttentionError {
    fn from(error: KeyListError) -> Self {
        Self::Lists(error)
    }
}
