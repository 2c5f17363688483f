//! Files of matrices: what kind a name says, and what a name must be, and results as files.

use std::path::Path;

use hopper_sparse::formats::{Dense, Layout};
use hopper_sparse::io::{Action, IoError};
use hopper_sparse::{Dtype, Element};
use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype as TensorDtype, TensorView};

use crate::error::{CliError, Result};

/// What a file holds, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// `.mtx` or `.mtx.gz`
    MatrixMarket,
    /// `.safetensors`
    Packed,
}

impl FileKind {
    /// What the name says.
    ///
    /// # Errors
    /// Usage where it says nothing.
    pub fn of(path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        if name.ends_with(".mtx") || name.ends_with(".mtx.gz") {
            Ok(Self::MatrixMarket)
        } else if name.ends_with(".safetensors") {
            Ok(Self::Packed)
        } else {
            Err(CliError::usage(format_args!("{}: a matrix is a .mtx, .mtx.gz or .safetensors file", path.display())))
        }
    }
}

/// Refuses a name that is not that of a safetensors file.
///
/// # Errors
/// Usage.
pub fn require_safetensors(path: &Path) -> Result<()> {
    match FileKind::of(path) {
        Ok(FileKind::Packed) => Ok(()),
        _ => Err(CliError::usage(format_args!("{}: C is saved in a .safetensors file", path.display()))),
    }
}

/// Refuses what is no file, before its name or its contents say anything worse.
///
/// # Errors
/// A failure that says what is there instead.
pub fn require_file(path: &Path) -> Result<()> {
    match path.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(CliError::failure(format_args!("{}: there is no such file", path.display())))
        }
        Err(error) => Err(CliError::failure(format_args!("{}: cannot read: {error}", path.display()))),
        Ok(metadata) if metadata.is_dir() => {
            Err(CliError::failure(format_args!("{} is a directory, not a matrix file", path.display())))
        }
        Ok(_) => Ok(()),
    }
}

/// Bytes of a file; 0 where it cannot be asked.
pub fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

/// Saves a dense matrix: one tensor `c`, row-major whatever its layout in memory was.
///
/// # Errors
/// What the operating system says.
pub fn save_dense<T: Element>(path: &Path, matrix: &Dense<T>) -> Result<(), IoError> {
    let rows = matrix.to_layout(Layout::RowMajor);
    let dtype = match T::DTYPE {
        Dtype::Bf16 => TensorDtype::BF16,
        Dtype::F16 => TensorDtype::F16,
        Dtype::F32 => TensorDtype::F32,
        Dtype::F64 => TensorDtype::F64,
    };
    let cannot = |source| IoError::System { action: Action::Write, path: path.to_owned(), source };
    let shape = vec![rows.num_rows(), rows.num_cols()];
    let tensor = TensorView::new(dtype, shape, bytemuck::cast_slice(rows.data()));
    let tensor = tensor.map_err(|error| cannot(std::io::Error::other(error)))?;
    safetensors::serialize_to_file([("c", tensor)], None, path).map_err(|error| match error {
        SafeTensorError::IoError(source) => cannot(source),
        error => cannot(std::io::Error::other(error)),
    })
}
