//! Tensor maps, described: what the tensor memory accelerator (TMA) reads and writes a tensor by.
//!
//! A device and the simulator make their maps of the same description. The constraints are those that the CUDA Driver API
//! reference lists for `cuTensorMapEncodeTiled`; the driver itself answers a violation with `CUDA_ERROR_INVALID_VALUE`
//! alone, so they are checked here first.

use core::{fmt, ptr};

use hopper_std::global::GlobalArray;

use crate::element::{Dtype, Element};
use crate::formats::Shape;

/// An address in device memory, in bytes. It says nothing of what lies there or for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct DevicePtr(pub u64);

impl DevicePtr {
    /// The address 0, which no memory has.
    pub const NULL: Self = Self(0);

    /// The address `bytes` further on.
    pub const fn byte_add(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl DevicePtr {
    /// Of a kernel's pointer argument.
    #[cfg(feature = "gpu")]
    pub(crate) fn of<T>(pointer: *const T) -> Self {
        Self(pointer.addr() as u64)
    }

    /// As a kernel's argument: an array that it reads.
    ///
    /// # Safety
    /// As [`GlobalArray::from_raw`], where the kernel runs.
    pub(crate) unsafe fn array<T>(self) -> GlobalArray<T> {
        // SAFETY: the caller's promise.
        unsafe { GlobalArray::from_raw(self.as_mut_ptr()) }
    }

    /// As a kernel's argument. In the simulator's memory, whose addresses are exposed, it is a pointer of this program;
    /// else a number.
    pub(crate) fn as_mut_ptr<T>(self) -> *mut T {
        ptr::with_exposed_provenance_mut(self.0 as usize)
    }
}

impl fmt::LowerHex for DevicePtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

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

/// A part of a [`TensorMapSpec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorMapPart {
    /// The address of the first element.
    Address,
    /// Elements of the tensor along a dimension.
    Dimension,
    /// Bytes from one element to the next along a dimension.
    StrideBytes,
    /// Elements of the box along a dimension.
    BoxDimension,
    /// Bytes of the box along its innermost dimension.
    BoxRowBytes,
    /// Which elements the box takes along a dimension.
    ElementStride,
}

/// A constraint of the hardware that a [`TensorMapSpec`] violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorMapError {
    /// A number is too small or too large.
    Range {
        /// Whose number.
        part: TensorMapPart,
        /// The dimension, from 0 for the innermost.
        axis: usize,
        /// The number.
        found: u64,
        /// The least possible.
        least: u64,
        /// The most possible.
        most: u64,
    },
    /// A number is no multiple of another.
    Multiple {
        /// Whose number.
        part: TensorMapPart,
        /// The dimension, from 0 for the innermost.
        axis: usize,
        /// The number.
        found: u64,
        /// What it must be a multiple of.
        of: u64,
    },
}

impl fmt::Display for TensorMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tensor map cannot be made: ")?;
        let (Self::Range { part, axis, .. } | Self::Multiple { part, axis, .. }) = *self;
        match part {
            TensorMapPart::Address => f.write_str("the address"),
            TensorMapPart::Dimension => write!(f, "the number of elements along dimension {axis}"),
            TensorMapPart::StrideBytes => write!(f, "the stride of dimension {axis} in bytes"),
            TensorMapPart::BoxDimension => write!(f, "the number of elements of the box along dimension {axis}"),
            TensorMapPart::BoxRowBytes => f.write_str("the length of the box along dimension 0 in bytes"),
            TensorMapPart::ElementStride => write!(f, "the element stride of dimension {axis}"),
        }?;
        match *self {
            Self::Range { found, least, most, .. } if least == most => write!(f, " is {found}, but must be {most}"),
            Self::Range { found, least, most, .. } => write!(f, " is {found}, but must be {least} to {most}"),
            Self::Multiple { part: TensorMapPart::Address, found, of, .. } => {
                write!(f, " is {found:#x}, but must be a multiple of {of}")
            }
            Self::Multiple { found, of, .. } => write!(f, " is {found}, but must be a multiple of {of}"),
        }
    }
}

impl std::error::Error for TensorMapError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row-major 1000 x 300 bf16 matrix with 304 elements from row to row, in boxes of 128 rows of 64.
    const MATRIX: TensorMapSpec<2> = TensorMapSpec {
        element: TensorElement::Bf16,
        address: DevicePtr(0x7f00_0000_0100),
        dims: [300, 1000],
        strides_bytes: [2, 608],
        box_dims: [64, 128],
        element_strides: [1, 1],
        swizzle: TensorMapSwizzle::Bytes128,
        l2_promotion: L2Promotion::Bytes256,
    };

    #[track_caller]
    fn refuses(spec: TensorMapSpec<2>, sentence: &str) {
        let error = spec.check().expect_err(sentence);
        assert_eq!(error.to_string(), format!("a tensor map cannot be made: {sentence}"));
    }

    #[test]
    fn a_padded_matrix_is_accepted() {
        assert_eq!(MATRIX.check(), Ok(()));
        assert_eq!(MATRIX.box_bytes(), 16_384);
    }

    #[test]
    fn addresses_are_aligned_to_16_bytes() {
        refuses(
            TensorMapSpec { address: DevicePtr(0x108), ..MATRIX },
            "the address is 0x108, but must be a multiple of 16",
        );
    }

    #[test]
    fn dimensions_are_1_to_2_to_the_32() {
        assert_eq!(TensorMapSpec { dims: [1, 1 << 32], ..MATRIX }.check(), Ok(()));
        refuses(
            TensorMapSpec { dims: [0, 1000], ..MATRIX },
            "the number of elements along dimension 0 is 0, but must be 1 to 4294967296",
        );
        refuses(
            TensorMapSpec { dims: [300, (1 << 32) + 1], ..MATRIX },
            "the number of elements along dimension 1 is 4294967297, but must be 1 to 4294967296",
        );
    }

    #[test]
    fn strides_are_multiples_of_16_below_2_to_the_40() {
        refuses(
            TensorMapSpec { strides_bytes: [2, 600], ..MATRIX },
            "the stride of dimension 1 in bytes is 600, but must be a multiple of 16",
        );
        refuses(
            TensorMapSpec { strides_bytes: [4, 608], ..MATRIX },
            "the stride of dimension 0 in bytes is 4, but must be 2",
        );
        assert_eq!(TensorMapSpec { strides_bytes: [2, (1 << 40) - 16], ..MATRIX }.check(), Ok(()));
        refuses(
            TensorMapSpec { strides_bytes: [2, 1 << 40], ..MATRIX },
            "the stride of dimension 1 in bytes is 1099511627776, but must be 16 to 1099511627760",
        );
    }

    #[test]
    fn boxes_have_at_most_256_elements_a_side_and_rows_of_16_bytes() {
        refuses(
            TensorMapSpec { box_dims: [64, 257], ..MATRIX },
            "the number of elements of the box along dimension 1 is 257, but must be 1 to 256",
        );
        refuses(
            TensorMapSpec { box_dims: [60, 128], ..MATRIX },
            "the length of the box along dimension 0 in bytes is 120, but must be a multiple of 16",
        );
    }

    #[test]
    fn box_rows_fit_the_swizzle() {
        for (swizzle, span) in
            [(TensorMapSwizzle::Bytes32, 32), (TensorMapSwizzle::Bytes64, 64), (TensorMapSwizzle::Bytes128, 128)]
        {
            let fitting = TensorMapSpec { box_dims: [span / 2, 8], swizzle, ..MATRIX };
            assert_eq!(fitting.check(), Ok(()));
            refuses(
                TensorMapSpec { box_dims: [span, 8], ..fitting },
                &format!("the length of the box along dimension 0 in bytes is {}, but must be 16 to {span}", 2 * span),
            );
        }
        let plain = TensorMapSpec { box_dims: [256, 8], swizzle: TensorMapSwizzle::None, ..MATRIX };
        assert_eq!(plain.check(), Ok(()));
    }

    #[test]
    fn element_strides_are_1_to_8() {
        refuses(
            TensorMapSpec { element_strides: [1, 9], ..MATRIX },
            "the element stride of dimension 1 is 9, but must be 1 to 8",
        );
    }
}
