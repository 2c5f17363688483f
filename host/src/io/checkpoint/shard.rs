//! One safetensors file of a checkpoint, mapped.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use bytemuck::Pod;
use memmap2::Mmap;
use safetensors::tensor::TensorInfo;
use safetensors::{Dtype as TensorDtype, SafeTensorError, SafeTensors};

use super::CheckpointError;
use crate::io::tensors::map;
use crate::io::{Action, IoError, system};

/// A tensor of a file, borrowed: its elements are bytes of any alignment.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    /// Its name.
    pub name: &'a str,
    /// The type of its elements.
    pub dtype: TensorDtype,
    /// Its sizes, outermost first.
    pub shape: &'a [usize],
    /// Its elements, row-major and little-endian.
    pub bytes: &'a [u8],
}

impl Tensor<'_> {
    /// The number of its elements.
    pub fn num_elements(&self) -> usize {
        self.shape.iter().product()
    }
}

/// A mapped file whose header is checked: every tensor's bytes are in the file.
pub(super) struct Shard {
    path: PathBuf,
    map: Mmap,
    data_begin: usize,
    tensors: BTreeMap<String, TensorInfo>,
    metadata: HashMap<String, String>,
}

impl Shard {
    pub(super) fn open(path: &Path) -> Result<Self, IoError> {
        let map = map(path)?;
        let refuse = |error| IoError::Checkpoint { path: path.to_owned(), error };
        let (header_bytes, header) = SafeTensors::read_metadata(&map).map_err(|error| refuse(explain(error, &map)))?;
        let tensors = header.tensors().into_iter().map(|(name, info)| (name, info.clone())).collect();
        let metadata = header.metadata().clone().unwrap_or_default();
        Ok(Self { path: path.to_owned(), data_begin: LENGTH_BYTES + header_bytes, tensors, metadata, map })
    }

    /// The name in its directory.
    pub(super) fn file_name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    pub(super) fn metadata(&self) -> &HashMap<String, String> {
        &self.metadata
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    pub(super) fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        let (name, info) = self.tensors.get_key_value(name)?;
        let (begin, end) = info.data_offsets;
        let bytes = &self.map[self.data_begin + begin..self.data_begin + end];
        Some(Tensor { name, dtype: info.dtype, shape: &info.shape, bytes })
    }

    /// Every tensor, as they lie in the file.
    pub(super) fn in_file_order(&self) -> Vec<Tensor<'_>> {
        let mut tensors: Vec<_> = self.names().filter_map(|name| self.tensor(name)).collect();
        // Tensors without elements share their place: the name decides, as the sort is stable.
        tensors.sort_by_key(|tensor| self.tensors[tensor.name].data_offsets);
        tensors
    }

    /// What tells this file from another state of it, without reading it whole: its size and when it was written.
    ///
    /// # Errors
    /// [`IoError::System`].
    pub(super) fn fingerprint(&self) -> Result<String, IoError> {
        let metadata = fs::metadata(&self.path).map_err(system(Action::Open, &self.path))?;
        let written = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let written = written.unwrap_or_default().as_nanos();
        Ok(format!("{} of {} bytes, written at {written}", self.file_name(), self.map.len()))
    }

    /// An error about this file.
    pub(super) fn refuse(&self, error: CheckpointError) -> IoError {
        IoError::Checkpoint { path: self.path.clone(), error }
    }
}

/// Bytes before the header, which hold its length.
const LENGTH_BYTES: usize = 8;

/// Finds the numbers where a file has not the length that its header says.
fn explain(error: SafeTensorError, bytes: &[u8]) -> CheckpointError {
    if !matches!(error, SafeTensorError::MetadataIncompleteBuffer) {
        return CheckpointError::NotSafetensors(error);
    }
    let header_bytes = bytes.first_chunk().map_or(0, |length| u64::from_le_bytes(*length)) as usize;
    let header = bytes.get(LENGTH_BYTES..LENGTH_BYTES.saturating_add(header_bytes)).unwrap_or_default();
    let header: BTreeMap<String, serde_json::Value> = serde_json::from_slice(header).unwrap_or_default();
    match header.values().filter_map(|tensor| tensor["data_offsets"][1].as_u64()).max() {
        Some(end) => CheckpointError::FileLength {
            expected: (LENGTH_BYTES + header_bytes) as u64 + end,
            found: bytes.len() as u64,
        },
        None => CheckpointError::NotSafetensors(error),
    }
}

/// Elements where they lie, or copied where another writer has not aligned them.
pub(super) fn elements<T: Pod>(bytes: &[u8]) -> Cow<'_, [T]> {
    match bytemuck::try_cast_slice(bytes) {
        Ok(elements) => Cow::Borrowed(elements),
        Err(_) => Cow::Owned(bytemuck::pod_collect_to_vec(bytes)),
    }
}
