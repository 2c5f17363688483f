//! Reading a packed checkpoint.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use super::super::CheckpointError;
use super::super::error::WeightError;
use super::super::shard::{Shard, Tensor};
use super::{FORMAT, LayerEntry, PackedWeight, VERSION};
use crate::element::Element;
use crate::io::{Excerpt, IoError};

/// A packed checkpoint, mapped: a layer is read when it is asked for.
pub struct PackedModel {
    file: Shard,
    layers: BTreeMap<String, LayerEntry>,
}

impl PackedModel {
    /// Opens a file that a [`Conversion`](super::Conversion) has written.
    ///
    /// # Errors
    /// [`IoError::System`], [`IoError::IsDirectory`], or [`IoError::Checkpoint`] where it is no such file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, IoError> {
        let file = Shard::open(path.as_ref())?;
        let layers = layers(&file).map_err(|error| file.refuse(error))?;
        Ok(Self { file, layers })
    }

    /// What the file says of its layers, by name.
    pub fn layers(&self) -> impl Iterator<Item = &LayerEntry> {
        self.layers.values()
    }

    /// What the file says of one layer.
    pub fn entry(&self, name: &str) -> Option<&LayerEntry> {
        self.layers.get(name)
    }

    /// A layer, whose elements are of type `T`; every invariant of its format is checked.
    ///
    /// # Errors
    /// [`IoError::Checkpoint`] where there is no such layer, its type is another, or its arrays are not what its entry says.
    pub fn layer<T: Element>(&self, name: &str) -> Result<PackedWeight<T>, IoError> {
        let no_layer = || self.file.refuse(CheckpointError::NoLayer { weight: Excerpt::name(name) });
        let entry = self.entry(name).ok_or_else(no_layer)?;
        let refuse = |error: WeightError| self.file.refuse(error.of(name));
        if entry.dtype != T::DTYPE {
            return Err(refuse(WeightError::ElementType { expected: T::DTYPE, found: entry.dtype }));
        }
        PackedWeight::from_parts(&self.file, name, entry.format, (entry.num_rows, entry.num_cols)).map_err(refuse)
    }

    /// A tensor that was kept as it was.
    pub fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        self.file.tensor(name).filter(|_| !self.is_part(name))
    }

    /// The tensors that were kept as they were, by name.
    pub fn others(&self) -> impl Iterator<Item = Tensor<'_>> {
        self.file.names().filter_map(|name| self.tensor(name))
    }

    fn is_part(&self, name: &str) -> bool {
        name.rsplit_once('.').is_some_and(|(weight, _)| self.layers.contains_key(weight))
    }
}

/// The entries of the metadata.
fn layers(file: &Shard) -> Result<BTreeMap<String, LayerEntry>, CheckpointError> {
    let value = |key| file.metadata().get(key).map(String::as_str);
    if value("format") != Some(FORMAT) || value("kind") != Some("model") {
        return Err(CheckpointError::NotPacked);
    }
    match value("version") {
        Some(VERSION) => {}
        found => return Err(CheckpointError::Version { found: Excerpt::new(found.unwrap_or_default().as_bytes()) }),
    }
    let entries: Map<String, Value> =
        serde_json::from_str(value("layers").unwrap_or_default()).map_err(CheckpointError::Json)?;
    let mut num_bytes = BTreeMap::<&str, u64>::new();
    for tensor in file.names().filter_map(|name| file.tensor(name)) {
        let Some((weight, _)) = tensor.name.rsplit_once('.') else { continue };
        *num_bytes.entry(weight).or_default() += tensor.bytes.len() as u64;
    }
    entries
        .iter()
        .map(|(name, entry)| {
            let num_bytes = num_bytes.get(name.as_str()).copied().unwrap_or(0);
            let entry = LayerEntry::from_json(name, entry, num_bytes).map_err(|error| error.of(name))?;
            Ok((name.clone(), entry))
        })
        .collect()
}
