//! Packing a checkpoint: layer by layer into a folder of its own, then all into one file.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde_json::{Map, Value, json};

use super::super::error::WeightError;
use super::super::shard::{Shard, Tensor};
use super::super::{Checkpoint, CheckpointError, Layer};
use super::{FORMAT, FormatRule, LayerEntry, PackedWeight, RowBalance, VERSION, layer_file};
use crate::element::{Dtype, Element};
use crate::io::atomic::write_atomically;
use crate::io::tensors::{Listed, header};
use crate::io::{Action, Excerpt, Existing, IoError, system};
use half::{bf16, f16};

/// How layers are packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConversionOptions {
    /// Which format each gets.
    pub rule: FormatRule,
    /// The type that elements are rounded to (to nearest, ties to even); their own where there is none.
    pub dtype: Option<Dtype>,
}

/// A conversion under way.
///
/// Each finished layer is a file in the folder `<output>.partial`, which says what it was made from. A conversion that was
/// interrupted goes on where it was: layers of the same source and options are not packed again.
///
/// ```no_run
/// use hopper_sparse::io::Existing;
/// use hopper_sparse::io::checkpoint::Checkpoint;
/// use hopper_sparse::io::checkpoint::packed::{Conversion, ConversionOptions};
///
/// let (checkpoint, output) = (Checkpoint::open("model")?, "packed.safetensors");
/// let mut conversion = Conversion::begin(&checkpoint, output, ConversionOptions::default())?;
/// for layer in checkpoint.layers() {
///     println!("{}: {} bytes", layer.name, conversion.pack(layer)?.num_bytes);
/// }
/// conversion.assemble(output, Existing::Refuse)?;
/// conversion.remove_folder()?;
/// # Ok::<(), hopper_sparse::Error>(())
/// ```
pub struct Conversion<'a> {
    checkpoint: &'a Checkpoint,
    options: ConversionOptions,
    folder: PathBuf,
    packed: Vec<(LayerEntry, PathBuf)>,
    num_kept: usize,
}

impl<'a> Conversion<'a> {
    /// Makes the folder beside `output`, or takes up the one that is there.
    ///
    /// # Errors
    /// [`IoError::System`].
    pub fn begin(
        checkpoint: &'a Checkpoint,
        output: impl AsRef<Path>,
        options: ConversionOptions,
    ) -> Result<Self, IoError> {
        let mut folder = output.as_ref().as_os_str().to_owned();
        folder.push(".partial");
        let folder = PathBuf::from(folder);
        fs::create_dir_all(&folder).map_err(system(Action::Write, &folder))?;
        Ok(Self { checkpoint, options, folder, packed: Vec::new(), num_kept: 0 })
    }

    /// Packs one of the checkpoint's layers, or finds it packed.
    ///
    /// # Errors
    /// As [`Checkpoint::elements`]; [`IoError::Checkpoint`] where the format cannot hold it; [`IoError::System`].
    pub fn pack(&mut self, layer: &Layer) -> Result<&LayerEntry, IoError> {
        let path = self.folder.join(format!("{:05}.safetensors", self.packed.len()));
        let source = format!("{:?}; {}", self.options, self.checkpoint.fingerprint(layer)?);
        let entry = match layer_file::read(&path, &source) {
            Some(entry) => {
                self.num_kept += 1;
                entry
            }
            None => match layer.dtype {
                Dtype::Bf16 => self.pack_from::<bf16>(layer, &path, &source)?,
                Dtype::F16 => self.pack_from::<f16>(layer, &path, &source)?,
                Dtype::F32 => self.pack_from::<f32>(layer, &path, &source)?,
                Dtype::F64 => self.pack_from::<f64>(layer, &path, &source)?,
            },
        };
        self.packed.push((entry, path));
        Ok(&self.packed[self.packed.len() - 1].0)
    }

    /// What has been packed or found, in order.
    pub fn entries(&self) -> impl Iterator<Item = &LayerEntry> {
        self.packed.iter().map(|(entry, _)| entry)
    }

    /// How many layers were found packed.
    pub fn num_kept(&self) -> usize {
        self.num_kept
    }

    fn pack_from<T: Element>(&self, layer: &Layer, path: &Path, source: &str) -> Result<LayerEntry, IoError> {
        let elements = self.checkpoint.elements::<T>(layer)?;
        match self.options.dtype.unwrap_or(T::DTYPE) {
            Dtype::Bf16 => self.pack_as(layer, &round::<T, bf16>(&elements), path, source),
            Dtype::F16 => self.pack_as(layer, &round::<T, f16>(&elements), path, source),
            Dtype::F32 => self.pack_as(layer, &round::<T, f32>(&elements), path, source),
            Dtype::F64 => self.pack_as(layer, &round::<T, f64>(&elements), path, source),
        }
    }

    fn pack_as<T: Element>(
        &self,
        layer: &Layer,
        elements: &[T],
        path: &Path,
        source: &str,
    ) -> Result<LayerEntry, IoError> {
        let weight = PackedWeight::pack(elements, layer.num_rows, layer.num_cols, self.options.rule)
            .map_err(|error| self.checkpoint.refuse(WeightError::Format(error).of(&layer.name)))?;
        let entry = LayerEntry {
            name: layer.name.clone(),
            format: weight.format(),
            num_rows: layer.num_rows,
            num_cols: layer.num_cols,
            dtype: T::DTYPE,
            balance: RowBalance::of(elements, layer.num_cols),
            num_bytes: weight.num_bytes(),
        };
        layer_file::write(path, &entry, &weight, source)?;
        Ok(entry)
    }

    /// Puts the layers packed so far, and all other tensors, into one file. It appears whole or not at all.
    ///
    /// # Errors
    /// [`IoError::Exists`] where the file exists and may not be replaced, [`IoError::IsDirectory`], [`IoError::System`], or
    /// [`IoError::Checkpoint`] where another tensor has the name of a layer's part.
    pub fn assemble(&self, output: impl AsRef<Path>, existing: Existing) -> Result<(), IoError> {
        let files = self.packed.iter().map(|(_, path)| Shard::open(path)).collect::<Result<Vec<_>, _>>()?;
        let mut tensors: Vec<Tensor<'_>> = files.iter().flat_map(Shard::in_file_order).collect();
        tensors.extend(self.checkpoint.others());
        tensors.sort_by(|one, other| {
            other.dtype.bitsize().cmp(&one.dtype.bitsize()).then_with(|| one.name.cmp(other.name))
        });
        let mut names: Vec<&str> = tensors.iter().map(|tensor| tensor.name).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(self.checkpoint.refuse(CheckpointError::NameTaken { tensor: Excerpt::name(pair[0]) }));
        }
        let layers: Map<String, Value> = self.entries().map(|entry| (entry.name.clone(), entry.to_json())).collect();
        let metadata = json!({
            "format": FORMAT,
            "kind": "model",
            "version": VERSION,
            "layers": Value::Object(layers).to_string(),
        });
        let header = header(
            &metadata,
            tensors.iter().map(|tensor| Listed {
                name: tensor.name,
                dtype: tensor.dtype,
                shape: tensor.shape,
                num_bytes: tensor.bytes.len() as u64,
            }),
        );
        write_atomically(output.as_ref(), existing, |file: &mut File| {
            let mut out = BufWriter::new(file);
            out.write_all(&header)?;
            tensors.iter().try_for_each(|tensor| out.write_all(tensor.bytes))?;
            out.flush()
        })
    }

    /// Removes the folder of finished layers.
    ///
    /// # Errors
    /// [`IoError::System`].
    pub fn remove_folder(self) -> Result<(), IoError> {
        fs::remove_dir_all(&self.folder).map_err(system(Action::Write, &self.folder))
    }
}

/// Elements of another type; the same ones where it is no other.
fn round<T: Element, U: Element>(elements: &[T]) -> Cow<'_, [U]> {
    match bytemuck::try_cast_slice(elements) {
        Ok(elements) if T::DTYPE == U::DTYPE => Cow::Borrowed(elements),
        _ => Cow::Owned(elements.par_iter().map(|element| U::from_f64(element.to_f64())).collect()),
    }
}
