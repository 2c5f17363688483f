//! Output files that exist whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use hopper_sparse::io::{Existing, IoError};
use tempfile::{TempDir, TempPath};

use crate::error::{CliError, Result};

/// The scratch folder being written to, for the interrupt handler to remove.
static SCRATCH: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Refuses an output path that cannot be written before any work is done.
///
/// # Errors
/// A failure where the path exists (and may not be replaced), is a folder, or lies in a folder that does not exist.
pub fn check(path: &Path, existing: Existing) -> Result<()> {
    if path.is_dir() {
        return Err(CliError::failure(format_args!("{} is a directory, not a file to write", path.display())));
    }
    if existing == Existing::Refuse && path.symlink_metadata().is_ok() {
        return Err(exists(path));
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        return Err(CliError::failure(format_args!("{}: there is no directory {}", path.display(), folder.display())));
    }
    Ok(())
}

/// Calls `write` with a scratch path beside `path`, of the same file name, and moves the file into place once it is whole.
///
/// An interrupt or a failure leaves nothing behind.
///
/// # Errors
/// What [`check`] refuses, what `write` returns, or a failure to move the file.
pub fn write_whole<T>(path: &Path, existing: Existing, write: impl FnOnce(&Path) -> Result<T, IoError>) -> Result<T> {
    check(path, existing)?;
    let cannot = |error: std::io::Error| CliError::failure(format_args!("{}: cannot write: {error}", path.display()));
    let scratch = Scratch::create(folder_of(path)).map_err(cannot)?;
    let name = path.file_name().ok_or_else(|| CliError::usage(format_args!("{} names no file", path.display())))?;
    let partial = scratch.folder.path().join(name);
    let value = write(&partial).map_err(|error| match error {
        IoError::System { source, .. } => cannot(source),
        error => CliError::failure(error),
    })?;
    let partial = TempPath::try_from_path(partial).map_err(cannot)?;
    match existing {
        Existing::Replace => partial.persist(path).map_err(|error| cannot(error.error))?,
        Existing::Refuse => partial.persist_noclobber(path).map_err(|error| match error.error.kind() {
            std::io::ErrorKind::AlreadyExists => exists(path),
            _ => cannot(error.error),
        })?,
    }
    Ok(value)
}

/// Makes an interrupt (Ctrl-C, or a request to terminate) remove what is half written, then exit with code 130.
///
/// # Errors
/// A failure where the handler cannot be installed.
pub fn remove_scratch_on_interrupt() -> Result<()> {
    ctrlc::set_handler(|| {
        // The lock is held for a moment only; a poisoned one still guards a valid path.
        let scratch = SCRATCH.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(folder) = scratch.as_deref() {
            // Nothing can be done about a folder that does not go away: the process ends here.
            let _ = fs::remove_dir_all(folder);
        }
        std::process::exit(130);
    })
    .map_err(|error| CliError::failure(format_args!("the interrupt handler cannot be installed: {error}")))
}

/// A hidden folder beside the output, on the same file system, known to the interrupt handler.
struct Scratch {
    folder: TempDir,
}

impl Scratch {
    fn create(parent: &Path) -> std::io::Result<Self> {
        let mut registered = SCRATCH.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let folder = tempfile::Builder::new().prefix(".hopper-sparse-").tempdir_in(parent)?;
        *registered = Some(folder.path().to_path_buf());
        Ok(Self { folder })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        *SCRATCH.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn exists(path: &Path) -> CliError {
    CliError::failure(format_args!("{} exists already", path.display())).hint("pass --force to replace it")
}
