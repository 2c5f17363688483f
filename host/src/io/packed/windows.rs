//! Packed windows of rows.

use std::path::Path;
use std::sync::Arc;

use safetensors::Dtype as TensorDtype;

use super::{
    Array, Existing, IoError, Kind, PackedError, PackedInfo, UnpackError, array, map, open_tensors, save, tensor_dtype,
};
use crate::element::Element;
use crate::formats::{RowOrder, Wcsr, WcsrPattern, WcsrView};

/// Saves a windowed matrix, with its order of rows. The file appears whole or not at all.
///
/// # Errors
/// As [`save_csr`](super::save_csr).
pub fn save_wcsr<T: Element>(
    path: impl AsRef<Path>,
    matrix: WcsrView<'_, T>,
    existing: Existing,
) -> Result<(), IoError> {
    let WcsrView { num_rows, num_cols, window, window_offsets, groups, values, order } = matrix;
    let info = PackedInfo { kind: Kind::Wcsr(window), num_rows, num_cols, dtype: T::DTYPE };
    let mut arrays = vec![
        Array::of("window_offsets", TensorDtype::U64, window_offsets),
        Array::of("values", tensor_dtype(T::DTYPE), values),
        Array::of("groups", TensorDtype::U32, groups),
    ];
    arrays.extend(order.map(|order| Array::of("rows", TensorDtype::U32, order.rows())));
    if size_of::<T>() < size_of::<u32>() {
        // The widest elements come first, so that every array is aligned in a mapped file.
        let values = arrays.remove(1);
        arrays.push(values);
    }
    save(path.as_ref(), &info, &arrays, existing)
}

/// Loads a windowed matrix whose values are of type `T`; every invariant is checked.
///
/// # Errors
/// As [`load_csr`](super::load_csr).
pub fn load_wcsr<T: Element>(path: impl AsRef<Path>) -> Result<Wcsr<T>, IoError> {
    let path = path.as_ref();
    wcsr_from_bytes(&map(path)?).map_err(|error| error.at(path))
}

/// As [`load_wcsr`], from a file's bytes.
///
/// # Errors
/// [`UnpackError`].
pub fn wcsr_from_bytes<T: Element>(bytes: &[u8]) -> Result<Wcsr<T>, UnpackError> {
    let (info, tensors) = open_tensors::<T>(bytes)?;
    let Kind::Wcsr(window) = info.kind else {
        return Err(PackedError::Kind { expected: "wcsr", found: info.kind.name() }.into());
    };
    let window_offsets = array(&tensors, "window_offsets", TensorDtype::U64)?;
    let groups = array(&tensors, "groups", TensorDtype::U32)?;
    let order = match tensors.tensor("rows") {
        Ok(_) => Some(RowOrder::try_new(array(&tensors, "rows", TensorDtype::U32)?)?),
        Err(_) => None,
    };
    let pattern = WcsrPattern::try_new(info.num_rows, info.num_cols, window, window_offsets, groups, order)?;
    Ok(Wcsr::from_parts(Arc::new(pattern), array(&tensors, "values", tensor_dtype(T::DTYPE))?)?)
}
