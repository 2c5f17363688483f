//! What is refused as a packed matrix.

use core::fmt;
use std::path::Path;

use safetensors::{Dtype as TensorDtype, SafeTensorError};

use super::{Excerpt, IoError, VERSION};
use crate::element::Dtype;
use crate::formats::FormatError;

/// Why a file is no packed matrix, or not the one asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum PackedError {
    /// Not a safetensors file.
    NotSafetensors(SafeTensorError),
    /// A safetensors file of another kind, such as a model's weights.
    NotPacked,
    /// Written by another version.
    Version {
        /// The version found.
        found: Excerpt,
    },
    /// The metadata lack a key.
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// The metadata have a value that no version writes.
    Key {
        /// The key.
        key: &'static str,
        /// Its value.
        found: Excerpt,
    },
    /// Another kind of matrix than asked for: `csr`, `bcsr` or `wcsr`.
    Kind {
        /// The kind asked for.
        expected: &'static str,
        /// The kind found.
        found: &'static str,
    },
    /// Another type of values than asked for.
    Dtype {
        /// The type asked for.
        expected: Dtype,
        /// The type found.
        found: Dtype,
    },
    /// A tensor is missing.
    MissingTensor {
        /// Its name.
        name: &'static str,
    },
    /// A tensor has another type or number of dimensions than the metadata demand.
    Tensor {
        /// Its name.
        name: &'static str,
        /// The type demanded.
        expected: TensorDtype,
        /// The type found.
        found: TensorDtype,
        /// Dimensions found, of which one is demanded.
        dimensions: u64,
    },
}

impl fmt::Display for PackedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSafetensors(error) => write!(f, "this is not a complete safetensors file ({error})"),
            Self::NotPacked => f.write_str("this safetensors file is not a matrix packed by hopper-sparse"),
            Self::Version { found } => {
                write!(f, "this matrix was packed in version {found}, but only version {VERSION} is read here")
            }
            Self::MissingKey { key } => write!(f, "the metadata do not say `{key}`"),
            Self::Key { key, found } => write!(f, "the metadata say {found} for `{key}`, which is not understood"),
            Self::Kind { expected, found } => write!(f, "a {expected} matrix is expected, but the file holds {found}"),
            Self::Dtype { expected, found } => {
                write!(f, "values of type {expected} are expected, but the file holds {found}")
            }
            Self::MissingTensor { name } => write!(f, "the tensor `{name}` is missing"),
            Self::Tensor { name, expected, found, dimensions } => write!(
                f,
                "the tensor `{name}` is {found:?} with {dimensions} dimensions, but {expected:?} with 1 is expected"
            ),
        }
    }
}

impl std::error::Error for PackedError {}

/// Why bytes are no packed matrix.
#[derive(Debug)]
#[non_exhaustive]
pub enum UnpackError {
    /// They are not the file asked for.
    Packed(PackedError),
    /// They are, but what they hold is not a matrix.
    Format(FormatError),
}

impl UnpackError {
    pub(super) fn at(self, path: &Path) -> IoError {
        let path = path.to_owned();
        match self {
            Self::Packed(error) => IoError::Packed { path, error },
            Self::Format(error) => IoError::Format { path, error },
        }
    }
}

impl fmt::Display for UnpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packed(error) => error.fmt(f),
            Self::Format(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for UnpackError {}

impl From<PackedError> for UnpackError {
    fn from(error: PackedError) -> Self {
        Self::Packed(error)
    }
}

impl From<FormatError> for UnpackError {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}
