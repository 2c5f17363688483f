//! A finished layer of a conversion that is not: one file, which says what it was made from.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::super::shard::Shard;
use super::weight::Part;
use super::{FORMAT, LayerEntry, PackedWeight, VERSION};
use crate::element::Element;
use crate::io::atomic::write_atomically;
use crate::io::tensors::{Listed, header};
use crate::io::{Existing, IoError};

/// Writes a layer. What stood at `path` is replaced once the file is whole.
pub(super) fn write<T: Element>(
    path: &Path,
    entry: &LayerEntry,
    weight: &PackedWeight<T>,
    source: &str,
) -> Result<(), IoError> {
    let parts = weight.parts();
    let names: Vec<String> = parts.iter().map(|part| format!("{}.{}", entry.name, part.name)).collect();
    let listed = |(part, name): (&Part<'_>, _)| (part.dtype, part.length, part.bytes.len() as u64, name);
    let tensors: Vec<_> = parts.iter().zip(&names).map(listed).collect();
    let metadata = json!({
        "format": FORMAT,
        "kind": "layer",
        "version": VERSION,
        "source": source,
        "name": entry.name,
        "layer": entry.to_json().to_string(),
    });
    let header = header(
        &metadata,
        tensors.iter().map(|(dtype, length, num_bytes, name)| Listed {
            name,
            dtype: *dtype,
            shape: std::slice::from_ref(length),
            num_bytes: *num_bytes,
        }),
    );
    write_atomically(path, Existing::Replace, |file: &mut File| {
        let mut out = BufWriter::new(file);
        out.write_all(&header)?;
        parts.iter().try_for_each(|part| out.write_all(part.bytes))?;
        out.flush()
    })
}

/// The entry of a layer that was made from `source`; `None` where the file is another's, or no longer whole.
pub(super) fn read(path: &Path, source: &str) -> Option<LayerEntry> {
    let file = Shard::open(path).ok()?;
    let value = |key| file.metadata().get(key).map(String::as_str);
    if value("version") != Some(VERSION) || value("source") != Some(source) {
        return None;
    }
    let entry: Value = serde_json::from_str(value("layer")?).ok()?;
    LayerEntry::from_json(value("name")?, &entry, num_bytes(&file)).ok()
}

/// Bytes of all tensors of a layer's file.
fn num_bytes(file: &Shard) -> u64 {
    file.names().filter_map(|name| file.tensor(name)).map(|tensor| tensor.bytes.len() as u64).sum()
}
