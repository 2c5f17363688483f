//! Weights that `compressed-tensors` has stored as a bitmask and the values it selects.
//!
//! | tensor | type | elements |
//! | --- | --- | --- |
//! | `shape` | I64 | rows and columns |
//! | `compressed` | the weight's | the selected elements, row by row |
//! | `bitmask` | U8 | rows x ceil(columns / 8): column j is bit j % 8, the least significant first, of byte j / 8 |
//! | `row_offsets` | I64 | the first value of each row; a 2:4 bitmask has none |
//!
//! Each name is that of the module or of its weight, a point, and the tensor's.
//!
//! Source: `BitmaskCompressor` of the Python package compressed-tensors.

use std::borrow::Cow;

use rayon::prelude::*;
use safetensors::Dtype as TensorDtype;

use super::error::WeightError;
use super::shard::{Tensor, elements};
use crate::element::Element;
use crate::formats::zeroed_elements;

/// The tensors of a compressed weight.
pub(super) const PARTS: [&str; 4] = [COMPRESSED, SHAPE, BITMASK, ROW_OFFSETS];
pub(super) const COMPRESSED: &str = "compressed";
pub(super) const SHAPE: &str = "shape";
pub(super) const BITMASK: &str = "bitmask";
pub(super) const ROW_OFFSETS: &str = "row_offsets";

/// Rows and columns, from the tensor `shape`.
///
/// # Errors
/// [`WeightError::PartDtype`] or [`WeightError::Shape`].
pub(super) fn shape(tensor: Tensor<'_>) -> Result<(usize, usize), WeightError> {
    let sizes = elements::<i64>(expect(tensor, SHAPE, TensorDtype::I64)?.bytes);
    match sizes.as_ref() {
        &[rows, cols] => match (usize::try_from(rows), usize::try_from(cols)) {
            (Ok(rows), Ok(cols)) => Ok((rows, cols)),
            _ => Err(WeightError::Shape),
        },
        _ => Err(WeightError::Shape),
    }
}

/// Refuses a tensor of another type.
fn expect<'a>(tensor: Tensor<'a>, part: &'static str, expected: TensorDtype) -> Result<Tensor<'a>, WeightError> {
    if tensor.dtype == expected {
        Ok(tensor)
    } else {
        Err(WeightError::PartDtype { part, expected, found: tensor.dtype })
    }
}

/// A compressed weight whose tensors' lengths are checked.
pub(super) struct Bitmask<'a, T: Element> {
    num_rows: usize,
    num_cols: usize,
    bitmask: &'a [u8],
    values: Cow<'a, [T]>,
    /// The first value of each row, and the end of the last; by the bitmask.
    row_offsets: Vec<usize>,
}

impl<'a, T: Element> Bitmask<'a, T> {
    /// Takes the tensors of a weight of `num_rows` x `num_cols`.
    ///
    /// # Errors
    /// Where they do not agree: [`WeightError::PartDtype`], [`WeightError::PartLength`], [`WeightError::StrayBits`] or
    /// [`WeightError::RowOffset`].
    pub(super) fn try_new(
        (num_rows, num_cols): (usize, usize),
        compressed: Tensor<'a>,
        bitmask: Tensor<'a>,
        row_offsets: Option<Tensor<'a>>,
    ) -> Result<Self, WeightError> {
        let bitmask = expect(bitmask, BITMASK, TensorDtype::U8)?.bytes;
        let row_bytes = num_cols.div_ceil(8);
        check_length(BITMASK, num_rows.saturating_mul(row_bytes), bitmask.len())?;
        let stray = (num_cols % 8 != 0).then_some(!0_u8 << (num_cols % 8));
        let mut counted = vec![0];
        for (row, bytes) in bitmask.chunks(row_bytes.max(1)).enumerate() {
            if stray.zip(bytes.last()).is_some_and(|(stray, last)| last & stray != 0) {
                return Err(WeightError::StrayBits { row: row as u64 });
            }
            let num_set: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
            counted.push(counted[row] + num_set as usize);
        }
        // A matrix without columns has no byte to count.
        counted.resize(num_rows + 1, 0);
        let values = elements::<T>(compressed.bytes);
        check_length(COMPRESSED, counted[num_rows], values.len())?;
        if let Some(row_offsets) = row_offsets {
            check_offsets(row_offsets, &counted[..num_rows])?;
        }
        Ok(Self { num_rows, num_cols, bitmask, values, row_offsets: counted })
    }

    /// Every element, row-major.
    ///
    /// # Errors
    /// [`WeightError::Format`] where the elements cannot be held.
    pub(super) fn to_row_major(&self) -> Result<Vec<T>, WeightError> {
        let mut dense = zeroed_elements::<T>(&[self.num_rows, self.num_cols]).map_err(WeightError::Format)?;
        let width = self.num_cols.max(1);
        let rows = dense.par_chunks_mut(width).zip(self.bitmask.par_chunks(width.div_ceil(8)));
        rows.zip(self.row_offsets.par_windows(2)).for_each(|((row, bits), offsets)| {
            let mut values = self.values[offsets[0]..offsets[1]].iter();
            for (elements, byte) in row.chunks_mut(8).zip(bits) {
                for (bit, element) in elements.iter_mut().enumerate() {
                    if byte >> bit & 1 == 1 {
                        values.next().into_iter().for_each(|value| *element = *value);
                    }
                }
            }
        });
        Ok(dense)
    }
}

fn check_length(part: &'static str, expected: usize, found: usize) -> Result<(), WeightError> {
    if expected == found {
        Ok(())
    } else {
        Err(WeightError::PartLength { part, expected: expected as u64, found: found as u64 })
    }
}

fn check_offsets(tensor: Tensor<'_>, counted: &[usize]) -> Result<(), WeightError> {
    let offsets = elements::<i64>(expect(tensor, ROW_OFFSETS, TensorDtype::I64)?.bytes);
    check_length(ROW_OFFSETS, counted.len(), offsets.len())?;
    match offsets.iter().zip(counted).position(|(&found, &expected)| i64::try_from(expected) != Ok(found)) {
        Some(row) => {
            Err(WeightError::RowOffset { row: row as u64, expected: counted[row] as u64, found: offsets[row] })
        }
        None => Ok(()),
    }
}
