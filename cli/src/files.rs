//! Files of matrices: what kind a name says, and the calls that read and write them.

use std::path::Path;

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
// SHIM
pub fn write_matrix_market<T: hopper_sparse::Element>(_: &Path, _: &hopper_sparse::formats::Csr<T>) -> Result<()> { Ok(()) }
pub fn write_csr<T: hopper_sparse::Element>(_: &Path, _: &hopper_sparse::formats::Csr<T>) -> Result<()> { Ok(()) }
pub fn write_bcsr<T: hopper_sparse::Element>(_: &Path, _: &hopper_sparse::formats::AnyBcsr<T>) -> Result<()> { Ok(()) }
pub fn save_dense<T: hopper_sparse::Element>(_: &Path, _: &hopper_sparse::formats::Dense<T>) -> Result<()> { Ok(()) }
