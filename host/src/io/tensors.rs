//! What all safetensors files share: the header, the map in memory, the names of types.

use std::path::Path;

use memmap2::Mmap;
use safetensors::Dtype as TensorDtype;
use serde_json::{Value, json};

use super::{Action, IoError, open, system};
use crate::element::Dtype;

#[cfg(target_endian = "big")]
compile_error!("safetensors files are little-endian, and arrays are written as they lie in memory");

/// A tensor as a header lists it.
pub(super) struct Listed<'a> {
    pub name: &'a str,
    pub dtype: TensorDtype,
    pub shape: &'a [usize],
    pub num_bytes: u64,
}

/// The first bytes of a file whose tensors follow one behind the other in the order given. The same tensors give the same
/// bytes, and the tensors begin at a multiple of eight.
pub(super) fn header<'a>(metadata: &Value, tensors: impl IntoIterator<Item = Listed<'a>>) -> Vec<u8> {
    let mut header = json!({ "__metadata__": metadata });
    let mut end = 0;
    for Listed { name, dtype, shape, num_bytes } in tensors {
        let begin = end;
        end += num_bytes;
        header[name] = json!({ "dtype": dtype, "shape": shape, "data_offsets": [begin, end] });
    }
    let mut text = header.to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.append(&mut text);
    bytes
}

/// A file's bytes, read as they are needed.
pub(super) fn map(path: &Path) -> Result<Mmap, IoError> {
    let (file, _) = open(path)?;
    // SAFETY: the map is read only, and whatever its bytes say is checked before it is trusted. A file that another
    // process shortens meanwhile raises a bus error, and one that it overwrites gives other bytes: both are its own
    // doing, and files written here are replaced by renaming, never in place.
    unsafe { Mmap::map(&file) }.map_err(system(Action::Read, path))
}

/// A type of elements, as a header has it.
pub(super) const fn tensor_dtype(dtype: Dtype) -> TensorDtype {
    match dtype {
        Dtype::Bf16 => TensorDtype::BF16,
        Dtype::F16 => TensorDtype::F16,
        Dtype::F32 => TensorDtype::F32,
        Dtype::F64 => TensorDtype::F64,
    }
}

/// The type of elements that a header's type is, where it is one.
pub(super) const fn element_dtype(dtype: TensorDtype) -> Option<Dtype> {
    match dtype {
        TensorDtype::BF16 => Some(Dtype::Bf16),
        TensorDtype::F16 => Some(Dtype::F16),
        TensorDtype::F32 => Some(Dtype::F32),
        TensorDtype::F64 => Some(Dtype::F64),
        _ => None,
    }
}
