//! The weights of a model: a directory as the Hugging Face libraries save it, [pruned](Checkpoint::write_pruned_shard) and
//! [packed].
//!
//! A [`Checkpoint`] is `model.safetensors`, or the files that `model.safetensors.index.json` lists. Its *layers* are the
//! weights of linear layers in decoder blocks, known by their names (`q_proj`, `k_proj`, `v_proj`, `o_proj`, `out_proj`,
//! `gate_proj`, `up_proj`, `down_proj`, `fc1`, `fc2`), in F32, F16 or BF16; and every weight that `compressed-tensors` has
//! stored as a bitmask, whatever its name. All other tensors (embeddings, `lm_head`, norms, biases) are kept as they
//! are. A weight has M rows (outputs) and K columns (inputs), row-major; nothing is assumed of where its zeros are.
//!
//! Files are mapped, not read whole: a model may be larger than memory, one layer at a time.

mod bitmask;
mod config;
mod error;
mod folder;
mod names;
pub mod packed;
mod pruned;
mod shard;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub use error::{CheckpointError, WeightError};
pub use pruned::{Norms, Pruning};
pub use shard::Tensor;

use super::IoError;
use super::tensors::element_dtype;
use crate::element::{Dtype, Element};
use bitmask::Bitmask;
use folder::Files;
use shard::{Shard, elements};

/// A model's weights in a directory.
pub struct Checkpoint {
    folder: PathBuf,
    files: Files,
    layers: Vec<Layer>,
    /// Names of the tensors that belong to no layer, sorted.
    others: Vec<String>,
}

/// The weight of a linear layer: M rows (outputs) and K columns (inputs).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Its name, as in `model.layers.0.mlp.up_proj.weight`.
    pub name: String,
    /// Number of rows, M.
    pub num_rows: usize,
    /// Number of columns, K.
    pub num_cols: usize,
    /// The type of its elements: never [`Dtype::F64`].
    pub dtype: Dtype,
    encoding: Encoding,
}

/// How a layer is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Encoding {
    /// One tensor of all elements.
    Dense,
    /// The tensors of [`bitmask`], whose names begin with this and a point.
    Bitmask { prefix: String },
}

impl Checkpoint {
    /// Opens a directory, and checks every file's header.
    ///
    /// # Errors
    /// [`IoError::System`], or [`IoError::Checkpoint`] where files or tensors are missing, cut off, or of a kind that is
    /// not read.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, IoError> {
        let folder = folder.as_ref().to_owned();
        let files = Files::open(&folder)?;
        config::check_compression(&folder)?;
        let mut checkpoint = Self { folder, files, layers: Vec::new(), others: Vec::new() };
        let mut taken = BTreeSet::new();
        for (name, shard) in &checkpoint.files.shard_of {
            if let Some(prefix) = name.strip_suffix(".bitmask") {
                checkpoint.layers.push(checkpoint.bitmask_layer(prefix)?);
                taken.extend(bitmask::PARTS.map(|part| format!("{prefix}.{part}")));
            } else if let Some(layer) = dense_layer(&checkpoint.files.shards[*shard], name)? {
                checkpoint.layers.push(layer);
                taken.insert(name.clone());
            }
        }
        checkpoint.others = checkpoint.files.shard_of.keys().filter(|name| !taken.contains(*name)).cloned().collect();
        checkpoint.layers.sort_by(|one, other| one.name.cmp(&other.name));
        if checkpoint.layers.is_empty() {
            return Err(checkpoint.refuse(CheckpointError::NoLayers));
        }
        Ok(checkpoint)
    }

    /// The directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The layers, by name.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The tensors that belong to no layer, by name.
    pub fn others(&self) -> impl Iterator<Item = Tensor<'_>> {
        self.others.iter().filter_map(|name| self.tensor(name))
    }

    /// Number of files.
    pub fn num_shards(&self) -> usize {
        self.files.shards.len()
    }

    /// The name of a file in the directory.
    ///
    /// # Panics
    /// Where `shard` is not under [`Checkpoint::num_shards`].
    pub fn shard_name(&self, shard: usize) -> &str {
        self.files.shards[shard].file_name()
    }

    /// The elements of one of the layers, row-major: where they lie, if they lie aligned and whole.
    ///
    /// # Errors
    /// [`IoError::Checkpoint`] where `T` is not the layer's type, or the tensors of a compressed one do not agree.
    pub fn elements<T: Element>(&self, layer: &Layer) -> Result<Cow<'_, [T]>, IoError> {
        let refuse = |error: WeightError| self.refuse(error.of(&layer.name));
        if T::DTYPE != layer.dtype {
            return Err(refuse(WeightError::ElementType { expected: T::DTYPE, found: layer.dtype }));
        }
        match &layer.encoding {
            Encoding::Dense => match self.tensor(&layer.name) {
                Some(tensor) => Ok(elements(tensor.bytes)),
                None => Err(refuse(WeightError::MissingPart { part: "weight" })),
            },
            Encoding::Bitmask { prefix } => {
                let part = |part| self.part(prefix, part).map_err(&refuse);
                let row_offsets = self.part(prefix, bitmask::ROW_OFFSETS).ok();
                let shape = (layer.num_rows, layer.num_cols);
                let (compressed, bits) = (part(bitmask::COMPRESSED)?, part(bitmask::BITMASK)?);
                let stored = Bitmask::<T>::try_new(shape, compressed, bits, row_offsets).map_err(&refuse)?;
                Ok(Cow::Owned(stored.to_row_major().map_err(&refuse)?))
            }
        }
    }

    fn bitmask_layer(&self, prefix: &str) -> Result<Layer, IoError> {
        // Both the module's name and the weight's are in use.
        let name = format!("{}.weight", prefix.strip_suffix(".weight").unwrap_or(prefix));
        let refuse = |error: WeightError| self.refuse(error.of(&name));
        let shape = self.part(prefix, bitmask::SHAPE).and_then(bitmask::shape);
        let (num_rows, num_cols) = shape.map_err(&refuse)?;
        let found = self.part(prefix, bitmask::COMPRESSED).map_err(&refuse)?.dtype;
        let dtype = weight_dtype(found).map_err(&refuse)?;
        Ok(Layer { num_rows, num_cols, dtype, encoding: Encoding::Bitmask { prefix: prefix.to_owned() }, name })
    }

    fn part(&self, prefix: &str, part: &'static str) -> Result<Tensor<'_>, WeightError> {
        self.tensor(&format!("{prefix}.{part}")).ok_or(WeightError::MissingPart { part })
    }

    fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        self.files.shards[*self.files.shard_of.get(name)?].tensor(name)
    }

    /// What tells a layer's present state from another, without reading its elements.
    ///
    /// # Errors
    /// [`IoError::System`].
    fn fingerprint(&self, layer: &Layer) -> Result<String, IoError> {
        let names = match &layer.encoding {
            Encoding::Dense => vec![layer.name.clone()],
            Encoding::Bitmask { prefix } => bitmask::PARTS.map(|part| format!("{prefix}.{part}")).to_vec(),
        };
        let shards: BTreeMap<_, _> = names.iter().filter_map(|name| self.files.shard_of.get_key_value(name)).collect();
        let mut text = format!("{} {} {}x{}", layer.name, layer.dtype, layer.num_rows, layer.num_cols);
        for (name, shard) in shards {
            text += &format!("; {name} in {}", self.files.shards[*shard].fingerprint()?);
        }
        Ok(text)
    }

    fn refuse(&self, error: CheckpointError) -> IoError {
        IoError::Checkpoint { path: self.folder.clone(), error }
    }
}

/// The layer that a tensor is, where its name and its two dimensions say so.
fn dense_layer(shard: &Shard, name: &str) -> Result<Option<Layer>, IoError> {
    let Some(tensor) = shard.tensor(name).filter(|_| names::is_linear_weight(name)) else { return Ok(None) };
    let &[num_rows, num_cols] = tensor.shape else { return Ok(None) };
    let dtype = weight_dtype(tensor.dtype).map_err(|error| shard.refuse(error.of(name)))?;
    Ok(Some(Layer { name: name.to_owned(), num_rows, num_cols, dtype, encoding: Encoding::Dense }))
}

fn weight_dtype(found: safetensors::Dtype) -> Result<Dtype, WeightError> {
    match element_dtype(found) {
        Some(dtype @ (Dtype::F32 | Dtype::F16 | Dtype::Bf16)) => Ok(dtype),
        Some(Dtype::F64) | None => Err(WeightError::Dtype { found }),
    }
}
