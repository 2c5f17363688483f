//! What lies beside a checkpoint's weights: configuration, tokenizer, index.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use hopper_sparse::io::{Action, Existing, IoError};

use crate::error::{CliError, Result};
use crate::output;

/// Endings of files that hold weights, of this or another kind.
const WEIGHTS: [&str; 10] =
    [".safetensors", ".bin", ".bin.index.json", ".pt", ".pth", ".h5", ".msgpack", ".onnx", ".gguf", ".ot"];

/// The largest file that is copied; a tokenizer has some MiB.
const MAX_BYTES: u64 = 64 << 20;

/// What makes several files one checkpoint: it comes last.
const INDEX: &str = "model.safetensors.index.json";

/// Copies the small files of a directory to another; hidden files and directories stay behind. A file that is there
/// already, with the same bytes, is left alone.
///
/// # Errors
/// A failure where a file cannot be read or written, or another file of its name may not be replaced.
pub fn copy(from: &Path, to: &Path, existing: Existing) -> Result<()> {
    for name in names(from).map_err(CliError::failure)? {
        let (source, target) = (from.join(&name), to.join(&name));
        let bytes = fs::read(&source).map_err(system(Action::Read, &source)).map_err(CliError::failure)?;
        if fs::read(&target).is_ok_and(|found| found == bytes) {
            continue;
        }
        output::write_whole(&target, existing, |path| fs::write(path, &bytes).map_err(system(Action::Write, path)))?;
    }
    Ok(())
}

/// The names of the small files, sorted, the index last.
fn names(folder: &Path) -> Result<Vec<OsString>, IoError> {
    let cannot_read = || system(Action::Read, folder);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot_read())? {
        let entry = entry.map_err(cannot_read())?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        let is_wanted = !text.starts_with('.') && !WEIGHTS.iter().any(|ending| text.ends_with(ending));
        // Caches hold links to files, so links are followed.
        let is_small = || entry.path().metadata().is_ok_and(|found| found.is_file() && found.len() <= MAX_BYTES);
        if is_wanted && is_small() {
            names.push(name);
        }
    }
    names.sort_by_key(|name| (name == INDEX, name.clone()));
    Ok(names)
}

fn system(action: Action, path: &Path) -> impl FnOnce(std::io::Error) -> IoError {
    let path = path.to_owned();
    move |source| IoError::System { action, path, source }
}
