//! How `config.json` says that weights are compressed.

use std::path::Path;

use serde_json::Value;

use super::CheckpointError;
use super::folder::read_json;
use crate::io::{Excerpt, IoError};

/// Formats of sparsity that are read. The names of the tensors say which weights are compressed: a format that is named
/// here need not be used by any.
const READ: [&str; 3] = ["dense", "sparse-bitmask", "sparse-24-bitmask"];

/// Where a sparsity's description lies, by the version that wrote it.
const PLACES: [&str; 3] = ["", "/quantization_config", "/compression_config"];

/// Refuses a checkpoint whose configuration names another compression. There may be no configuration.
pub(super) fn check_compression(folder: &Path) -> Result<(), IoError> {
    let path = folder.join("config.json");
    if !path.exists() {
        return Ok(());
    }
    let config = read_json(&path)?;
    let formats = PLACES.iter().filter_map(|place| config.pointer(&format!("{place}/sparsity_config/format")));
    match formats.filter_map(Value::as_str).find(|format| !READ.contains(format)) {
        Some(format) => {
            let error = CheckpointError::Compression { found: Excerpt::new(format.as_bytes()) };
            Err(IoError::Checkpoint { path, error })
        }
        None => Ok(()),
    }
}
