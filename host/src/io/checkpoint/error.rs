//! What is refused as a checkpoint.

use core::fmt;

use safetensors::{Dtype as TensorDtype, SafeTensorError};

use super::packed::VERSION;
use crate::element::Dtype;
use crate::formats::FormatError;
use crate::io::Excerpt;
use crate::prune::PruneError;

/// Why a directory is no checkpoint, a checkpoint is not whole, or a packed one cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum CheckpointError {
    /// A file stands where a directory is wanted.
    NotADirectory,
    /// The directory has neither a safetensors file nor an index of such.
    NoWeights,
    /// The directory has its weights as pickles alone.
    OnlyPickles {
        /// Files whose name is that of a pickle.
        found: u64,
    },
    /// A file is not JSON, or not what is expected of it.
    Json(serde_json::Error),
    /// The index does not say which tensor is in which file.
    NoWeightMap,
    /// The index names a file that is none of the directory's.
    ShardName {
        /// The name.
        found: Excerpt,
    },
    /// Files that the index names are missing.
    MissingShards {
        /// The first of them.
        first: Excerpt,
        /// How many are missing.
        missing: u64,
        /// How many are named.
        listed: u64,
    },
    /// A tensor that the index names is not in its file.
    MissingTensor {
        /// The tensor.
        tensor: Excerpt,
        /// The file that should hold it.
        shard: Excerpt,
    },
    /// Not a safetensors file.
    NotSafetensors(SafeTensorError),
    /// A file is shorter or longer than its header says.
    FileLength {
        /// Bytes that the header speaks of.
        expected: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// `config.json` names a compression that is not read.
    Compression {
        /// Its name.
        found: Excerpt,
    },
    /// No weight of a linear layer is among the tensors.
    NoLayers,
    /// No weight has that name.
    NoLayer {
        /// The name.
        weight: Excerpt,
    },
    /// Two tensors of the output would have the same name.
    NameTaken {
        /// The name.
        tensor: Excerpt,
    },
    /// A safetensors file that no conversion wrote.
    NotPacked,
    /// A packed checkpoint of another version.
    Version {
        /// The version found.
        found: Excerpt,
    },
    /// One weight cannot be read, pruned or packed.
    Weight {
        /// Its name.
        weight: Excerpt,
        /// Why.
        error: WeightError,
    },
}

/// Why one weight cannot be read, pruned or packed.
#[derive(Debug)]
#[non_exhaustive]
pub enum WeightError {
    /// It is compressed where dense ones are wanted.
    Compressed,
    /// Its element type is neither F32, F16 nor BF16.
    Dtype {
        /// The type found.
        found: TensorDtype,
    },
    /// Another type of elements than asked for.
    ElementType {
        /// The type asked for.
        expected: Dtype,
        /// The type found.
        found: Dtype,
    },
    /// One of the tensors that make it is missing.
    MissingPart {
        /// The part.
        part: &'static str,
    },
    /// One of the tensors that make it has another type than it must.
    PartDtype {
        /// The part.
        part: &'static str,
        /// The type demanded.
        expected: TensorDtype,
        /// The type found.
        found: TensorDtype,
    },
    /// One of the tensors that make it has another number of elements than it must.
    PartLength {
        /// The part.
        part: &'static str,
        /// The number demanded.
        expected: u64,
        /// The number found.
        found: u64,
    },
    /// Its shape is not two sizes.
    Shape,
    /// A row of its bitmask has bits behind the last column.
    StrayBits {
        /// The row, from 0.
        row: u64,
    },
    /// A row's values do not begin where the bitmask says.
    RowOffset {
        /// The row, from 0.
        row: u64,
        /// Bits set in the rows before.
        expected: u64,
        /// The offset found.
        found: i64,
    },
    /// There are no norms of its inputs.
    NoNorms,
    /// What the metadata say of it is not understood.
    Entry {
        /// The key.
        key: &'static str,
    },
    /// It does not have the structure that its format demands.
    Format(FormatError),
    /// It cannot be pruned as asked.
    Prune(PruneError),
}

impl WeightError {
    /// The same, about the weight of that name.
    pub(super) fn of(self, weight: &str) -> CheckpointError {
        CheckpointError::Weight { weight: Excerpt::name(weight), error: self }
    }
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotADirectory => f.write_str("a checkpoint is a directory, and this is a file"),
            Self::NoWeights => {
                f.write_str("there is neither model.safetensors nor model.safetensors.index.json in this directory")
            }
            Self::OnlyPickles { found } => write!(
                f,
                "the weights are pickles ({found} files), which are not read: load the model with transformers, and \
                 save it with `model.save_pretrained(DIR, safe_serialization=True)`"
            ),
            Self::Json(error) => write!(f, "this is not the JSON that is expected ({error})"),
            Self::NoWeightMap => f.write_str("the index has no `weight_map` of tensors and files"),
            Self::ShardName { found } => write!(f, "the index names {found}, which is no file of the directory"),
            Self::MissingShards { first, missing, listed } => {
                write!(f, "{missing} of the {listed} files that the index names are missing, the first is {first}")
            }
            Self::MissingTensor { tensor, shard } => {
                write!(f, "the index says that {tensor} is in {shard}, but it is not")
            }
            Self::NotSafetensors(error) => write!(f, "this is not a complete safetensors file ({error})"),
            Self::FileLength { expected, found } => write!(
                f,
                "the header speaks of {expected} bytes, but the file has {found}: it was not copied or downloaded whole"
            ),
            Self::Compression { found } => write!(
                f,
                "the weights are compressed as {found}, but only dense, sparse-bitmask and sparse-24-bitmask are read"
            ),
            Self::NoLayers => f.write_str("there is no weight of a linear layer in this checkpoint"),
            Self::NoLayer { weight } => write!(f, "there is no packed weight {weight}"),
            Self::NameTaken { tensor } => write!(f, "two tensors of the output would be named {tensor}"),
            Self::NotPacked => f.write_str("this safetensors file is not a checkpoint packed by hopper-sparse"),
            Self::Version { found } => {
                write!(f, "this checkpoint was packed in version {found}, but only version {VERSION} is read here")
            }
            Self::Weight { weight, error } => write!(f, "{weight}: {error}"),
        }
    }
}

impl fmt::Display for WeightError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compressed => f.write_str("this weight is compressed already, but only a dense checkpoint is pruned"),
            Self::Dtype { found } => {
                write!(f, "the weight is of type {found:?}, but only F32, F16 and BF16 are read")
            }
            Self::ElementType { expected, found } => {
                write!(f, "elements of type {expected} are expected, but these are {found}")
            }
            Self::MissingPart { part } => write!(f, "the tensor `{part}` is missing"),
            Self::PartDtype { part, expected, found } => {
                write!(f, "the tensor `{part}` is {found:?}, but {expected:?} is expected")
            }
            Self::PartLength { part, expected, found } => {
                write!(f, "the tensor `{part}` has {found} elements, but {expected} are expected")
            }
            Self::Shape => f.write_str("the shape is not a number of rows and one of columns"),
            Self::StrayBits { row } => write!(f, "row {row} of the bitmask has bits behind the last column"),
            Self::RowOffset { row, expected, found } => {
                write!(f, "row {row} begins at value {found} by its offset, but at {expected} by the bitmask")
            }
            Self::NoNorms => f.write_str("there are no norms of this weight's inputs"),
            Self::Entry { key } => write!(f, "what the metadata say for `{key}` is not understood"),
            Self::Format(error) => error.fmt(f),
            Self::Prune(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CheckpointError {}

impl std::error::Error for WeightError {}
