//! Packed matrices: the arrays of a [`Csr`], a block-sparse or a windowed matrix in a safetensors file.
//!
//! The file holds three tensors of one dimension, `row_offsets` (U64), `col_indices` (U32) and `values`; for windows
//! `window_offsets` (U64), `groups` (U32), `values` and, where the rows have an order, `rows` (U32). It says in its metadata
//! what they are:
//!
//! | key | value |
//! | --- | --- |
//! | `format` | `hopper-sparse` |
//! | `version` | `1` |
//! | `kind` | `csr`, `bcsr` or `wcsr` |
//! | `shape` | rows and columns, as in `8192x4096` |
//! | `block` | rows and columns of a block (`bcsr` only) |
//! | `window` | rows of a window and columns of a group, as in `64x8` (`wcsr` only) |
//! | `dtype` | `bf16`, `f16`, `f32` or `f64` |
//!
//! The same matrix gives the same file, byte for byte.

mod error;
mod windows;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use safetensors::{Dtype as TensorDtype, SafeTensors};
use serde_json::json;

pub use error::{PackedError, UnpackError};
pub use windows::{load_wcsr, save_wcsr, wcsr_from_bytes};

use super::atomic::write_atomically;
use super::tensors::{self, Listed, map, tensor_dtype};
use super::{Excerpt, Existing, IoError};
use crate::element::{Dtype, Element};
use crate::formats::{AnyBcsr, BcsrView, BlockShape, Csr, CsrView, WindowShape};

/// The version of the metadata that is written, and the only one that is read.
const VERSION: &str = "1";

/// What a packed matrix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Compressed sparse rows.
    Csr,
    /// Block compressed sparse rows, of this block shape.
    Bcsr(BlockShape),
    /// Windowed compressed sparse rows, of this window shape.
    Wcsr(WindowShape),
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Csr => "csr",
            Self::Bcsr(_) => "bcsr",
            Self::Wcsr(_) => "wcsr",
        }
    }
}

/// What the metadata of a packed matrix says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedInfo {
    /// What the matrix is.
    pub kind: Kind,
    /// Number of rows.
    pub num_rows: usize,
    /// Number of columns.
    pub num_cols: usize,
    /// The type of its values.
    pub dtype: Dtype,
}

/// Saves a CSR matrix. The file appears whole or not at all.
///
/// # Errors
/// [`IoError::Exists`] where the file exists and may not be replaced, [`IoError::IsDirectory`], [`IoError::System`].
pub fn save_csr<T: Element>(path: impl AsRef<Path>, matrix: CsrView<'_, T>, existing: Existing) -> Result<(), IoError> {
    let CsrView { num_rows, num_cols, row_offsets, col_indices, values } = matrix;
    let info = PackedInfo { kind: Kind::Csr, num_rows, num_cols, dtype: T::DTYPE };
    save(path.as_ref(), &info, &compressed(row_offsets, col_indices, values), existing)
}

/// Saves a block-sparse matrix. The file appears whole or not at all.
///
/// # Errors
/// As [`save_csr`].
pub fn save_bcsr<T: Element>(
    path: impl AsRef<Path>,
    matrix: BcsrView<'_, T>,
    existing: Existing,
) -> Result<(), IoError> {
    let BcsrView { num_rows, num_cols, block, row_offsets, col_indices, values } = matrix;
    let info = PackedInfo { kind: Kind::Bcsr(block), num_rows, num_cols, dtype: T::DTYPE };
    save(path.as_ref(), &info, &compressed(row_offsets, col_indices, values), existing)
}

/// Says what a file holds, without reading its arrays.
///
/// # Errors
/// [`IoError::System`], [`IoError::IsDirectory`] or [`IoError::Packed`].
pub fn inspect(path: impl AsRef<Path>) -> Result<PackedInfo, IoError> {
    let path = path.as_ref();
    let map = map(path)?;
    PackedInfo::read(&map).map_err(|error| IoError::Packed { path: path.to_owned(), error })
}

/// Loads a CSR matrix whose values are of type `T`; every invariant is checked.
///
/// # Errors
/// [`IoError::System`], [`IoError::IsDirectory`], [`IoError::Packed`], or [`IoError::Format`] where an invariant of
/// the format does not hold.
pub fn load_csr<T: Element>(path: impl AsRef<Path>) -> Result<Csr<T>, IoError> {
    let path = path.as_ref();
    csr_from_bytes(&map(path)?).map_err(|error| error.at(path))
}

/// Loads a block-sparse matrix whose values are of type `T`; every invariant is checked.
///
/// # Errors
/// As [`load_csr`].
pub fn load_bcsr<T: Element>(path: impl AsRef<Path>) -> Result<AnyBcsr<T>, IoError> {
    let path = path.as_ref();
    bcsr_from_bytes(&map(path)?).map_err(|error| error.at(path))
}

/// As [`load_csr`], from a file's bytes.
///
/// # Errors
/// [`UnpackError`].
pub fn csr_from_bytes<T: Element>(bytes: &[u8]) -> Result<Csr<T>, UnpackError> {
    let arrays = Arrays::read(bytes)?;
    match arrays.info.kind {
        Kind::Csr => Ok(Csr::try_new(
            arrays.info.num_rows,
            arrays.info.num_cols,
            arrays.row_offsets,
            arrays.col_indices,
            arrays.values,
        )?),
        kind => Err(PackedError::Kind { expected: Kind::Csr.name(), found: kind.name() }.into()),
    }
}

/// As [`load_bcsr`], from a file's bytes.
///
/// # Errors
/// [`UnpackError`].
pub fn bcsr_from_bytes<T: Element>(bytes: &[u8]) -> Result<AnyBcsr<T>, UnpackError> {
    let arrays = Arrays::read(bytes)?;
    match arrays.info.kind {
        Kind::Bcsr(block) => Ok(AnyBcsr::try_new(
            arrays.info.num_rows,
            arrays.info.num_cols,
            block,
            arrays.row_offsets,
            arrays.col_indices,
            arrays.values,
        )?),
        kind => Err(PackedError::Kind { expected: "bcsr", found: kind.name() }.into()),
    }
}

/// One tensor of a file: its name, type, number of elements and bytes.
struct Array<'a> {
    name: &'static str,
    dtype: TensorDtype,
    length: usize,
    bytes: &'a [u8],
}

impl<'a> Array<'a> {
    fn of<E: bytemuck::Pod>(name: &'static str, dtype: TensorDtype, elements: &'a [E]) -> Self {
        Self { name, dtype, length: elements.len(), bytes: bytemuck::cast_slice(elements) }
    }
}

/// The arrays of compressed rows. The widest elements come first, so that every array is aligned in a mapped file.
fn compressed<'a, T: Element>(row_offsets: &'a [u64], col_indices: &'a [u32], values: &'a [T]) -> [Array<'a>; 3] {
    let row_offsets = Array::of("row_offsets", TensorDtype::U64, row_offsets);
    let col_indices = Array::of("col_indices", TensorDtype::U32, col_indices);
    let values = Array::of("values", tensor_dtype(T::DTYPE), values);
    if size_of::<T>() >= size_of::<u32>() {
        [row_offsets, values, col_indices]
    } else {
        [row_offsets, col_indices, values]
    }
}

/// Writes arrays one behind the other, in the order given.
fn save(path: &Path, info: &PackedInfo, arrays: &[Array<'_>], existing: Existing) -> Result<(), IoError> {
    let header = tensors::header(
        &info.metadata(),
        arrays.iter().map(|array| Listed {
            name: array.name,
            dtype: array.dtype,
            shape: std::slice::from_ref(&array.length),
            num_bytes: array.bytes.len() as u64,
        }),
    );
    write_atomically(path, existing, |file: &mut File| -> io::Result<()> {
        let mut out = BufWriter::new(file);
        out.write_all(&header)?;
        for array in arrays {
            out.write_all(array.bytes)?;
        }
        out.flush()
    })
}

impl PackedInfo {
    fn metadata(&self) -> serde_json::Value {
        let mut metadata = json!({
            "format": "hopper-sparse",
            "version": VERSION,
            "kind": self.kind.name(),
            "shape": format!("{}x{}", self.num_rows, self.num_cols),
            "dtype": self.dtype.name(),
        });
        match self.kind {
            Kind::Csr => {}
            Kind::Bcsr(block) => metadata["block"] = json!(block.to_string()),
            Kind::Wcsr(window) => metadata["window"] = json!(window.to_string()),
        }
        metadata
    }

    fn read(bytes: &[u8]) -> Result<Self, PackedError> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(PackedError::NotSafetensors)?;
        let metadata = header.metadata().as_ref().ok_or(PackedError::NotPacked)?;
        let value = |key| metadata.get(key).map(String::as_str).ok_or(PackedError::MissingKey { key });
        let refuse = |key, text: &str| PackedError::Key { key, found: Excerpt::new(text.as_bytes()) };
        if metadata.get("format").map(String::as_str) != Some("hopper-sparse") {
            return Err(PackedError::NotPacked);
        }
        let version = value("version")?;
        if version != VERSION {
            return Err(PackedError::Version { found: Excerpt::new(version.as_bytes()) });
        }
        let kind = match value("kind")? {
            "csr" => Kind::Csr,
            "bcsr" => {
                let block = value("block")?;
                Kind::Bcsr(BlockShape::parse(block).map_err(|_| refuse("block", block))?)
            }
            "wcsr" => {
                let window = value("window")?;
                Kind::Wcsr(WindowShape::parse(window).map_err(|_| refuse("window", window))?)
            }
            other => return Err(refuse("kind", other)),
        };
        let shape = value("shape")?;
        let (num_rows, num_cols) = shape
            .split_once('x')
            .and_then(|(rows, cols)| Some((rows.parse().ok()?, cols.parse().ok()?)))
            .ok_or_else(|| refuse("shape", shape))?;
        let dtype = match value("dtype")? {
            "bf16" => Dtype::Bf16,
            "f16" => Dtype::F16,
            "f32" => Dtype::F32,
            "f64" => Dtype::F64,
            other => return Err(refuse("dtype", other)),
        };
        Ok(Self { kind, num_rows, num_cols, dtype })
    }
}

/// The three arrays of a file, not yet checked for what they mean.
struct Arrays<T> {
    info: PackedInfo,
    row_offsets: Vec<u64>,
    col_indices: Vec<u32>,
    values: Vec<T>,
}

impl<T: Element> Arrays<T> {
    fn read(bytes: &[u8]) -> Result<Self, PackedError> {
        let (info, tensors) = open_tensors::<T>(bytes)?;
        Ok(Self {
            info,
            row_offsets: array(&tensors, "row_offsets", TensorDtype::U64)?,
            col_indices: array(&tensors, "col_indices", TensorDtype::U32)?,
            values: array(&tensors, "values", tensor_dtype(T::DTYPE))?,
        })
    }
}

/// What a file whose values are of type `T` says of itself, and its tensors.
fn open_tensors<T: Element>(bytes: &[u8]) -> Result<(PackedInfo, SafeTensors<'_>), PackedError> {
    let info = PackedInfo::read(bytes)?;
    if info.dtype != T::DTYPE {
        return Err(PackedError::Dtype { expected: T::DTYPE, found: info.dtype });
    }
    Ok((info, SafeTensors::deserialize(bytes).map_err(PackedError::NotSafetensors)?))
}

/// One tensor's elements, wherever they lie: another writer's file may not be aligned.
fn array<E: bytemuck::Pod>(
    tensors: &SafeTensors<'_>,
    name: &'static str,
    expected: TensorDtype,
) -> Result<Vec<E>, PackedError> {
    let tensor = tensors.tensor(name).map_err(|_| PackedError::MissingTensor { name })?;
    if tensor.dtype() != expected || tensor.shape().len() != 1 {
        let dimensions = tensor.shape().len() as u64;
        return Err(PackedError::Tensor { name, expected, found: tensor.dtype(), dimensions });
    }
    Ok(bytemuck::pod_collect_to_vec(tensor.data()))
}
