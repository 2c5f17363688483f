//! Pruned checkpoints: the same files, with zeros.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use half::{bf16, f16};
use safetensors::Dtype as TensorDtype;
use serde_json::json;

use super::packed::RowBalance;
use super::shard::{Shard, Tensor, elements};
use super::{Checkpoint, Encoding, Layer, WeightError};
use crate::element::{Dtype, Element};
use crate::io::atomic::try_write_atomically;
use crate::io::tensors::{Listed, header};
use crate::io::{Action, Existing, IoError, system};
use crate::prune::{self, Pattern, PruneError};

/// The key in a pruned file's metadata that says what it was made from.
const SOURCE: &str = "hopper-sparse.pruned";

/// Norms of the inputs of layers: a file of vectors in F32, each named as the weight or as its module.
pub struct Norms {
    file: Shard,
}

impl Norms {
    /// Opens a safetensors file.
    ///
    /// # Errors
    /// [`IoError::System`], [`IoError::IsDirectory`], or [`IoError::Checkpoint`] where it is no such file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, IoError> {
        Ok(Self { file: Shard::open(path.as_ref())? })
    }

    /// The norms of a layer's K inputs.
    ///
    /// # Errors
    /// [`IoError::Checkpoint`] where there are none, not K, or none of type F32.
    pub fn of(&self, layer: &Layer) -> Result<Cow<'_, [f32]>, IoError> {
        let module = layer.name.strip_suffix(".weight").unwrap_or(&layer.name);
        let found = self.file.tensor(&layer.name).or_else(|| self.file.tensor(module));
        let norms = found.ok_or(WeightError::NoNorms).and_then(|tensor| {
            let (expected, found) = (layer.num_cols as u64, tensor.num_elements() as u64);
            match tensor.dtype {
                TensorDtype::F32 if expected == found => Ok(elements(tensor.bytes)),
                TensorDtype::F32 => Err(WeightError::PartLength { part: "norms", expected, found }),
                found => Err(WeightError::PartDtype { part: "norms", expected: TensorDtype::F32, found }),
            }
        });
        norms.map_err(|error| self.file.refuse(error.of(&layer.name)))
    }
}

/// How layers are pruned.
#[derive(Clone, Copy)]
pub struct Pruning<'a> {
    /// Which weights compete, and how many go.
    pub pattern: Pattern,
    /// The norms of inputs that weights are multiplied by; without them the size alone counts.
    pub norms: Option<&'a Norms>,
}

impl Checkpoint {
    /// Writes one of the checkpoint's files with the layers in it pruned; all other tensors, and their order, stay. `report` is
    /// told of each layer. The file appears whole or not at all.
    ///
    /// # Errors
    /// [`IoError::Checkpoint`] where a layer is compressed or cannot be pruned as asked, [`IoError::Exists`],
    /// [`IoError::IsDirectory`] or [`IoError::System`].
    ///
    /// # Panics
    /// Where `shard` is not under [`Checkpoint::num_shards`].
    pub fn write_pruned_shard(
        &self,
        shard: usize,
        path: impl AsRef<Path>,
        pruning: Pruning<'_>,
        existing: Existing,
        mut report: impl FnMut(&Layer, RowBalance),
    ) -> Result<(), IoError> {
        let layers = self.layers_in(shard)?;
        let norms: BTreeMap<&str, Cow<'_, [f32]>> = match pruning.norms {
            None => BTreeMap::new(),
            Some(norms) => layers
                .values()
                .map(|layer| Ok((layer.name.as_str(), norms.of(layer)?)))
                .collect::<Result<_, IoError>>()?,
        };
        let source = &self.files.shards[shard];
        let tensors = source.in_file_order();
        let mut metadata = json!(source.metadata());
        metadata[SOURCE] = json!(self.pruned_from(shard, pruning)?);
        let header = header(&metadata, tensors.iter().map(listed));
        let path = path.as_ref();
        let cannot_write = |error| system(Action::Write, path)(error);
        try_write_atomically(path, existing, |file: &mut File| {
            let mut out = BufWriter::new(file);
            out.write_all(&header).map_err(cannot_write)?;
            for tensor in &tensors {
                let Some(layer) = layers.get(tensor.name) else {
                    out.write_all(tensor.bytes).map_err(cannot_write)?;
                    continue;
                };
                let norms = norms.get(tensor.name).map(Cow::as_ref);
                let (bytes, balance) = pruned(tensor, layer, norms, pruning.pattern)
                    .map_err(|error| source.refuse(WeightError::Prune(error).of(tensor.name)))?;
                out.write_all(&bytes).map_err(cannot_write)?;
                report(layer, balance);
            }
            out.flush().map_err(cannot_write)
        })
    }

    /// What the layers of a pruned file came to, where `path` is one that was made from this checkpoint's file in the same
    /// way; `None` where it is not.
    ///
    /// # Errors
    /// [`IoError::System`] where this checkpoint's file cannot be asked for its state, and as
    /// [`Checkpoint::write_pruned_shard`] where a layer is compressed.
    ///
    /// # Panics
    /// Where `shard` is not under [`Checkpoint::num_shards`].
    pub fn find_pruned_shard(
        &self,
        shard: usize,
        path: impl AsRef<Path>,
        pruning: Pruning<'_>,
    ) -> Result<Option<Vec<(&Layer, RowBalance)>>, IoError> {
        let layers = self.layers_in(shard)?;
        let expected = self.pruned_from(shard, pruning)?;
        let Ok(found) = Shard::open(path.as_ref()) else { return Ok(None) };
        if found.metadata().get(SOURCE) != Some(&expected) {
            return Ok(None);
        }
        let balance = |layer: &'_ Layer| Some(balance(&found.tensor(&layer.name)?, layer));
        Ok(layers.into_values().map(|layer| Some((layer, balance(layer)?))).collect())
    }

    /// The layers whose elements are in one file, by name.
    fn layers_in(&self, shard: usize) -> Result<BTreeMap<&str, &Layer>, IoError> {
        let mut layers = BTreeMap::new();
        for layer in &self.layers {
            if layer.encoding != Encoding::Dense {
                return Err(self.refuse(WeightError::Compressed.of(&layer.name)));
            }
            if self.files.shard_of.get(&layer.name) == Some(&shard) {
                layers.insert(layer.name.as_str(), layer);
            }
        }
        Ok(layers)
    }

    fn pruned_from(&self, shard: usize, pruning: Pruning<'_>) -> Result<String, IoError> {
        let norms = match pruning.norms {
            Some(norms) => norms.file.fingerprint()?,
            None => "no norms".to_owned(),
        };
        Ok(format!("{:?}; {norms}; {}", pruning.pattern, self.files.shards[shard].fingerprint()?))
    }
}

fn listed<'a>(tensor: &Tensor<'a>) -> Listed<'a> {
    let Tensor { name, dtype, shape, bytes } = *tensor;
    Listed { name, dtype, shape, num_bytes: bytes.len() as u64 }
}

/// The bytes of a layer, pruned.
fn pruned(
    tensor: &Tensor<'_>,
    layer: &Layer,
    norms: Option<&[f32]>,
    pattern: Pattern,
) -> Result<(Vec<u8>, RowBalance), PruneError> {
    match layer.dtype {
        Dtype::Bf16 => pruned_as::<bf16>(tensor, layer, norms, pattern),
        Dtype::F16 => pruned_as::<f16>(tensor, layer, norms, pattern),
        Dtype::F32 => pruned_as::<f32>(tensor, layer, norms, pattern),
        Dtype::F64 => pruned_as::<f64>(tensor, layer, norms, pattern),
    }
}

fn pruned_as<T: Element>(
    tensor: &Tensor<'_>,
    layer: &Layer,
    norms: Option<&[f32]>,
    pattern: Pattern,
) -> Result<(Vec<u8>, RowBalance), PruneError> {
    let mut weights = elements::<T>(tensor.bytes).into_owned();
    match norms {
        Some(norms) => prune::by_norms(&mut weights, layer.num_cols, norms, pattern)?,
        None => prune::magnitude(&mut weights, layer.num_cols, pattern)?,
    }
    let balance = RowBalance::of(&weights, layer.num_cols);
    Ok((bytemuck::cast_slice(&weights).to_vec(), balance))
}

fn balance(tensor: &Tensor<'_>, layer: &Layer) -> RowBalance {
    match layer.dtype {
        Dtype::Bf16 => RowBalance::of(&elements::<bf16>(tensor.bytes), layer.num_cols),
        Dtype::F16 => RowBalance::of(&elements::<f16>(tensor.bytes), layer.num_cols),
        Dtype::F32 => RowBalance::of(&elements::<f32>(tensor.bytes), layer.num_cols),
        Dtype::F64 => RowBalance::of(&elements::<f64>(tensor.bytes), layer.num_cols),
    }
}
