//! Tensor maps, described: what the tensor memory accelerator (TMA) reads and writes a tensor by.
//!
//! A device and the simulator make their maps of the same description. The constraints are those that the CUDA Driver API
//! reference lists for `cuTensorMapEncodeTiled`; the driver itself answers a violation with `CUDA_ERROR_INVALID_VALUE`
//! alone, so they are checked here first.

mod address;
mod error;

use crate::element::{Dtype, Element};
use crate::formats::Shape;

pub use address::DevicePtr;
pub use error::{TensorMapError, TensorMapPart};

/// The type of an element as the accelerator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorElement {
    /// 8 bits, carried as they are.
    U8,
    /// 16 bits, carried as they are.
    U16,
    /// 32 bits, carried as they are.
    U32,
    /// 64 bits, carried as they are.
    U64,
    /// bfloat16.
    Bf16,
    /// IEEE binary16.
    F16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// IEEE binary32 in global memory, rounded to tf32 on the way.
    Tf32,
}

impl TensorElement {
    /// The size of one element, in bytes.
    pub const fn size_bytes(self) -> u64 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::Bf16 | Self::F16 => 2,
            Self::U32 | Self::F32 | Self::Tf32 => 4,
            Self::U64 | Self::F64 => 8,
        }
    }
}

impl From<Dtype> for TensorElement {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::Bf16 => Self::Bf16,
            Dtype::F16 => Self::F16,
            Dtype::F32 => Self::F32,
            Dtype::F64 => Self::F64,
        }
    }
}

/// How 16-byte chunks of a box are permuted in shared memory, so that neither rows nor columns collide in its banks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorMapSwizzle {
    /// Not at all.
    None,
    /// Within 32 bytes: the innermost dimension of a box has at most 32.
    Bytes32,
    /// Within 64 bytes.
    Bytes64,
    /// Within 128 bytes.
    Bytes128,
}

impl TensorMapSwizzle {
    /// The most bytes that the innermost dimension of a box may have, where it is limited.
    pub const fn span_bytes(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Bytes32 => Some(32),
            Self::Bytes64 => Some(64),
            Self::Bytes128 => Some(128),
        }
    }

    /// The swizzle that `cuda.h` numbers so, 0 to 3: how kernels' configurations state theirs.
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::None),
            1 => Some(Self::Bytes32),
            2 => Some(Self::Bytes64),
            3 => Some(Self::Bytes128),
            _ => None,
        }
    }
}

/// The least that a read fetches into L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum L2Promotion {
    /// What is asked for.
    None,
    /// 64 bytes.
    Bytes64,
    /// 128 bytes.
    Bytes128,
    /// 256 bytes.
    Bytes256,
}

/// A tensor in global memory and the box that one instruction carries. Index 0 is the innermost dimension. Elements
/// outside the tensor read as zero and are not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMapSpec<const RANK: usize> {
    /// The type of an element.
    pub element: TensorElement,
    /// The first element: a multiple of 16.
    pub address: DevicePtr,
    /// Elements along each dimension: 1 to 2^32.
    pub dims: [u64; RANK],
    /// Bytes from one element to the next along each dimension. The first is the element's size; the others are
    /// multiples of 16 below 2^40.
    pub strides_bytes: [u64; RANK],
    /// Elements of the box along each dimension: 1 to 256. The first makes a multiple of 16 bytes, and no more than the
    /// swizzle's span.
    pub box_dims: [u32; RANK],
    /// Which elements the box takes: every one (1) to every eighth (8). The hardware ignores the first.
    pub element_strides: [u32; RANK],
    /// How the box lies in shared memory.
    pub swizzle: TensorMapSwizzle,
    /// What a read fetches into L2.
    pub l2_promotion: L2Promotion,
}

impl TensorMapSpec<2> {
    /// A dense matrix of type `T` that lies so from `address` on: dimension 0 runs along its contiguous elements. Every
    /// element is taken, and reads fetch 256 bytes into L2.
    pub(crate) fn of_shape<T: Element>(
        address: DevicePtr,
        shape: Shape,
        box_dims: [u32; 2],
        swizzle: TensorMapSwizzle,
    ) -> Self {
        let size = size_of::<T>() as u64;
        Self {
            element: T::DTYPE.into(),
            address,
            dims: [shape.line_len() as u64, shape.num_lines() as u64],
            strides_bytes: [size, shape.leading_dimension as u64 * size],
            box_dims,
            element_strides: [1; 2],
            swizzle,
            l2_promotion: L2Promotion::Bytes256,
        }
    }
}

impl<const RANK: usize> TensorMapSpec<RANK> {
    /// The bytes of one box in shared memory: what a full barrier must expect of one copy that takes every element.
    pub fn box_bytes(&self) -> u64 {
        self.box_dims.iter().map(|&dim| u64::from(dim)).product::<u64>() * self.element.size_bytes()
    }

    /// Whether the hardware can read by such a map.
    ///
    /// # Errors
    /// The first constraint that is violated, with what was found and what is possible.
    pub fn check(&self) -> Result<(), TensorMapError> {
        const { assert!(RANK >= 1 && RANK <= 5, "a tensor map has 1 to 5 dimensions") };
        use TensorMapPart as Part;
        let size = self.element.size_bytes();

        multiple(Part::Address, 0, self.address.0, 16)?;
        for (axis, &dim) in self.dims.iter().enumerate() {
            range(Part::Dimension, axis, dim, 1, 1 << 32)?;
        }
        range(Part::StrideBytes, 0, self.strides_bytes[0], size, size)?;
        for (axis, &stride) in self.strides_bytes.iter().enumerate().skip(1) {
            range(Part::StrideBytes, axis, stride, 16, (1 << 40) - 16)?;
            multiple(Part::StrideBytes, axis, stride, 16)?;
        }
        for (axis, &dim) in self.box_dims.iter().enumerate() {
            range(Part::BoxDimension, axis, u64::from(dim), 1, 256)?;
        }
        let box_row_bytes = u64::from(self.box_dims[0]) * size;
        multiple(Part::BoxRowBytes, 0, box_row_bytes, 16)?;
        if let Some(span) = self.swizzle.span_bytes() {
            range(Part::BoxRowBytes, 0, box_row_bytes, 16, span)?;
        }
        for (axis, &stride) in self.element_strides.iter().enumerate() {
            range(Part::ElementStride, axis, u64::from(stride), 1, 8)?;
        }
        Ok(())
    }
}

fn range(part: TensorMapPart, axis: usize, found: u64, least: u64, most: u64) -> Result<(), TensorMapError> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    Err(TensorMapError::Range { part, axis, found, least, most })
}

fn multiple(part: TensorMapPart, axis: usize, found: u64, of: u64) -> Result<(), TensorMapError> {
    if found.is_multiple_of(of) { Ok(()) } else { Err(TensorMapError::Multiple { part, axis, found, of }) }
}

#[cfg(test)]
mod tests;
