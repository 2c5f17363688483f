//! Files: [Matrix Market](matrix_market) in and out, [packed matrices](packed) as safetensors, and the [weights of a
//! model](checkpoint) as they come, pruned and packed.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::formats::FormatError;

mod atomic;
pub mod checkpoint;
mod excerpt;
pub mod matrix_market;
pub mod packed;
mod tensors;

pub use checkpoint::CheckpointError;
pub use excerpt::Excerpt;
pub use matrix_market::MatrixMarketError;
pub use packed::PackedError;

/// What to do where the file to write exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Leave it, and fail.
    #[default]
    Refuse,
    /// Put the new file in its place, once it is complete.
    Replace,
}

/// How far a reader has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the file read so far; of a compressed file, its compressed bytes.
    pub bytes_done: u64,
    /// Bytes of the file.
    pub bytes_total: u64,
}

/// What was being done to a file when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Opening it.
    Open,
    /// Reading it.
    Read,
    /// Undoing its gzip compression.
    Decompress,
    /// Writing it.
    Write,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Read => "read",
            Self::Decompress => "decompress",
            Self::Write => "write",
        })
    }
}

/// Why a file was refused, or what failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum IoError {
    /// The operating system refused.
    System {
        /// What was tried.
        action: Action,
        /// On which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A directory stands where a file is wanted.
    IsDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// The file to write exists, and [`Existing::Refuse`] was asked for.
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file is not good Matrix Market.
    MatrixMarket {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0 where it is the file as a whole.
        line: u64,
        /// What is wrong there.
        error: MatrixMarketError,
    },
    /// A file is not a packed matrix, or not of the kind asked for.
    Packed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: PackedError,
    },
    /// A directory or a file is not the weights of a model, or not all of them.
    Checkpoint {
        /// The directory, or the file in it.
        path: PathBuf,
        /// What is wrong with it.
        error: CheckpointError,
    },
    /// A file is well formed, but what it holds is not a matrix.
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: FormatError,
    },
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System { action, path, source } => write!(f, "cannot {action} {}: {source}", path.display()),
            Self::IsDirectory { path } => write!(f, "{} is a directory, not a file", path.display()),
            Self::Exists { path } => write!(f, "{} exists already", path.display()),
            Self::MatrixMarket { path, line: 0, error } => write!(f, "{}: {error}", path.display()),
            Self::MatrixMarket { path, line, error } => write!(f, "{}, line {line}: {error}", path.display()),
            Self::Packed { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Checkpoint { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Format { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for IoError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Makes an [`IoError::System`] of what the operating system said.
fn system(action: Action, path: &Path) -> impl FnOnce(io::Error) -> IoError {
    let path = path.to_owned();
    move |source| IoError::System { action, path, source }
}

/// Opens a file to read; a directory is refused here, because reading one fails with a worse sentence.
fn open(path: &Path) -> Result<(std::fs::File, u64), IoError> {
    let file = std::fs::File::open(path).map_err(system(Action::Open, path))?;
    let metadata = file.metadata().map_err(system(Action::Open, path))?;
    if metadata.is_dir() {
        return Err(IoError::IsDirectory { path: path.to_owned() });
    }
    Ok((file, metadata.len()))
}
