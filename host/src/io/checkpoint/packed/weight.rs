//! One packed weight: a format, and the arrays that a file holds of it.

use core::fmt;
use std::str::FromStr;

use bytemuck::Pod;
use safetensors::Dtype as TensorDtype;

use super::super::error::WeightError;
use super::super::shard::{Shard, elements};
use super::RowBalance;
use crate::element::Element;
use crate::formats::{Bitmap, Csr, Dense, DenseView, FormatError, Layout};
use crate::io::tensors::tensor_dtype;

/// How a weight is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightFormat {
    /// Every element, row-major.
    Dense,
    /// Compressed sparse rows.
    Csr,
    /// A bitmap and packed values.
    Bitmap,
}

impl WeightFormat {
    /// Every format; of formats that take equally many bytes the first is preferred.
    pub const ALL: [Self; 3] = [Self::Dense, Self::Csr, Self::Bitmap];

    /// The name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Csr => "csr",
            Self::Bitmap => "bitmap",
        }
    }
}

impl fmt::Display for WeightFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for WeightFormat {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or(UnknownFormat)
    }
}

/// A name that is no [`WeightFormat`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownFormat;

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected one of")?;
        WeightFormat::ALL.iter().try_for_each(|format| write!(f, " {format}"))
    }
}

impl std::error::Error for UnknownFormat {}

/// Which format a weight gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormatRule {
    /// The one that takes the fewest bytes: at few tokens a product costs what its weights cost to read.
    #[default]
    Smallest,
    /// This one.
    Only(WeightFormat),
}

/// A weight in the format that was chosen for it.
#[derive(Clone, Debug, PartialEq)]
pub enum PackedWeight<T> {
    /// Every element, row-major.
    Dense(Dense<T>),
    /// Compressed sparse rows.
    Csr(Csr<T>),
    /// A bitmap and packed values.
    Bitmap(Bitmap<T>),
}

/// An array of a weight, as a file holds it.
pub(super) struct Part<'a> {
    pub name: &'static str,
    pub dtype: TensorDtype,
    pub length: usize,
    pub bytes: &'a [u8],
}

impl<'a> Part<'a> {
    fn of<E: Pod>(name: &'static str, dtype: TensorDtype, elements: &'a [E]) -> Self {
        Self { name, dtype, length: elements.len(), bytes: bytemuck::cast_slice(elements) }
    }
}

impl<T: Element> PackedWeight<T> {
    /// Packs the elements of a row-major matrix.
    ///
    /// # Errors
    /// [`FormatError`] where a size is over what the format can index, or `elements` is not of that shape.
    pub fn pack(elements: &[T], num_rows: usize, num_cols: usize, rule: FormatRule) -> Result<Self, FormatError> {
        let format = match rule {
            FormatRule::Only(format) => format,
            FormatRule::Smallest => return Self::smallest(elements, num_rows, num_cols),
        };
        Ok(match format {
            WeightFormat::Dense => {
                Self::Dense(Dense::from_vec(elements.to_vec(), num_rows, num_cols, Layout::RowMajor)?)
            }
            WeightFormat::Csr => Self::Csr(Csr::from_row_major(elements, num_rows, num_cols)?),
            WeightFormat::Bitmap => {
                let matrix = DenseView::try_new(elements, num_rows, num_cols, num_cols, Layout::RowMajor)?;
                Self::Bitmap(Bitmap::from_dense(matrix)?)
            }
        })
    }

    /// Packs in the format of the fewest bytes. What dense and CSR take follows from the number of nonzeros; only a bitmap
    /// must be built to know.
    fn smallest(elements: &[T], num_rows: usize, num_cols: usize) -> Result<Self, FormatError> {
        let pack = |format| Self::pack(elements, num_rows, num_cols, FormatRule::Only(format));
        let num_nonzeros = RowBalance::of(elements, num_cols).num_nonzeros;
        let csr_bytes =
            (num_rows as u64 + 1) * size_of::<u64>() as u64 + num_nonzeros * (size_of::<u32>() + size_of::<T>()) as u64;
        let dense_bytes = size_of_val(elements) as u64;
        let bitmap = pack(WeightFormat::Bitmap)?;
        if bitmap.num_bytes() < dense_bytes.min(csr_bytes) {
            Ok(bitmap)
        } else if csr_bytes < dense_bytes {
            pack(WeightFormat::Csr)
        } else {
            pack(WeightFormat::Dense)
        }
    }

    /// The format it is in.
    pub fn format(&self) -> WeightFormat {
        match self {
            Self::Dense(_) => WeightFormat::Dense,
            Self::Csr(_) => WeightFormat::Csr,
            Self::Bitmap(_) => WeightFormat::Bitmap,
        }
    }

    /// Number of rows, M.
    pub fn num_rows(&self) -> usize {
        match self {
            Self::Dense(dense) => dense.num_rows(),
            Self::Csr(csr) => csr.num_rows(),
            Self::Bitmap(bitmap) => bitmap.num_rows(),
        }
    }

    /// Number of columns, K.
    pub fn num_cols(&self) -> usize {
        match self {
            Self::Dense(dense) => dense.num_cols(),
            Self::Csr(csr) => csr.num_cols(),
            Self::Bitmap(bitmap) => bitmap.num_cols(),
        }
    }

    /// Bytes of its arrays.
    pub fn num_bytes(&self) -> u64 {
        self.parts().iter().map(|part| part.bytes.len() as u64).sum()
    }

    /// Every element, row-major.
    ///
    /// # Errors
    /// [`FormatError::OutOfMemory`] or [`FormatError::SizeOverflow`] where the elements cannot be held.
    pub fn to_dense(&self) -> Result<Dense<T>, FormatError> {
        match self {
            Self::Dense(dense) => Ok(dense.clone()),
            Self::Csr(csr) => csr.to_dense(),
            Self::Bitmap(bitmap) => bitmap.to_dense(),
        }
    }

    /// The arrays, as [`PackedWeight::from_parts`] wants them.
    pub(super) fn parts(&self) -> Vec<Part<'_>> {
        let values = |values| Part::of("values", tensor_dtype(T::DTYPE), values);
        match self {
            Self::Dense(dense) => vec![values(dense.data())],
            Self::Csr(csr) => vec![
                Part::of("row_offsets", TensorDtype::U64, csr.row_offsets()),
                Part::of("col_indices", TensorDtype::U32, csr.col_indices()),
                values(csr.values()),
            ],
            Self::Bitmap(bitmap) => {
                vec![Part::of("masks", TensorDtype::U32, bitmap.masks()), values(bitmap.values())]
            }
        }
    }

    /// The weight of the arrays that a file holds under its name.
    pub(super) fn from_parts(
        file: &Shard,
        weight: &str,
        format: WeightFormat,
        (num_rows, num_cols): (usize, usize),
    ) -> Result<Self, WeightError> {
        let values = || array::<T>(file, weight, "values", tensor_dtype(T::DTYPE));
        let weight = match format {
            WeightFormat::Dense => Dense::from_vec(values()?, num_rows, num_cols, Layout::RowMajor).map(Self::Dense),
            WeightFormat::Csr => {
                let row_offsets = array(file, weight, "row_offsets", TensorDtype::U64)?;
                let col_indices = array(file, weight, "col_indices", TensorDtype::U32)?;
                Csr::try_new(num_rows, num_cols, row_offsets, col_indices, values()?).map(Self::Csr)
            }
            WeightFormat::Bitmap => {
                let masks = array(file, weight, "masks", TensorDtype::U32)?;
                Bitmap::from_parts(num_rows, num_cols, masks, values()?).map(Self::Bitmap)
            }
        };
        weight.map_err(WeightError::Format)
    }
}

/// One part's elements.
fn array<E: Pod>(file: &Shard, weight: &str, part: &'static str, expected: TensorDtype) -> Result<Vec<E>, WeightError> {
    let tensor = file.tensor(&format!("{weight}.{part}")).ok_or(WeightError::MissingPart { part })?;
    if tensor.dtype != expected {
        return Err(WeightError::PartDtype { part, expected, found: tensor.dtype });
    }
    Ok(elements(tensor.bytes).into_owned())
}
