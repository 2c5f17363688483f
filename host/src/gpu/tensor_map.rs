//! Tensor maps in device memory, of their [descriptions](TensorMapSpec).

use core::ffi::c_void;
use core::ptr;

use cuda_loader::driver;
use cuda_loader::types::{
    CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave, CUtensorMapL2promotion,
    CUtensorMapSwizzle,
};

use super::buffer::DeviceBuffer;
use super::device::Device;
use super::error::{GpuError, check};
use super::view::DeviceDenseView;
use crate::element::Element;
use crate::tensor_map::{DevicePtr, L2Promotion, TensorElement, TensorMapSpec, TensorMapSwizzle};

impl TensorElement {
    const fn raw(self) -> CUtensorMapDataType {
        match self {
            Self::U8 => CUtensorMapDataType::UINT8,
            Self::U16 => CUtensorMapDataType::UINT16,
            Self::U32 => CUtensorMapDataType::UINT32,
            Self::U64 => CUtensorMapDataType::UINT64,
            Self::Bf16 => CUtensorMapDataType::BFLOAT16,
            Self::F16 => CUtensorMapDataType::FLOAT16,
            Self::F32 => CUtensorMapDataType::FLOAT32,
            Self::F64 => CUtensorMapDataType::FLOAT64,
            Self::Tf32 => CUtensorMapDataType::TFLOAT32,
        }
    }
}

impl TensorMapSwizzle {
    const fn raw(self) -> CUtensorMapSwizzle {
        match self {
            Self::None => CUtensorMapSwizzle::NONE,
            Self::Bytes32 => CUtensorMapSwizzle::BYTES_32,
            Self::Bytes64 => CUtensorMapSwizzle::BYTES_64,
            Self::Bytes128 => CUtensorMapSwizzle::BYTES_128,
        }
    }
}

impl L2Promotion {
    const fn raw(self) -> CUtensorMapL2promotion {
        match self {
            Self::None => CUtensorMapL2promotion::NONE,
            Self::Bytes64 => CUtensorMapL2promotion::BYTES_64,
            Self::Bytes128 => CUtensorMapL2promotion::BYTES_128,
            Self::Bytes256 => CUtensorMapL2promotion::BYTES_256,
        }
    }
}

impl TensorMapSpec<2> {
    /// A dense matrix, row-major or column-major: dimension 0 runs along its contiguous elements. Every element is
    /// taken, and reads fetch 256 bytes into L2.
    pub fn matrix<T: Element>(matrix: &DeviceDenseView<'_, T>, box_dims: [u32; 2], swizzle: TensorMapSwizzle) -> Self {
        Self::of_shape::<T>(matrix.ptr(), matrix.shape, box_dims, swizzle)
    }
}

/// A tensor map on the host: 128 bytes that only the hardware reads.
///
/// It holds the tensor's address, not its memory: whatever launches a kernel with it keeps that alive.
#[derive(Clone, Copy, Debug)]
pub struct TensorMap {
    raw: CUtensorMap,
}

impl TensorMap {
    /// The map that `spec` describes.
    ///
    /// # Errors
    /// [`GpuError::TensorMap`] with the constraint that is violated; [`GpuError::Driver`] where the driver refuses.
    pub fn new<const RANK: usize>(device: &Device, spec: &TensorMapSpec<RANK>) -> Result<Self, GpuError> {
        spec.check()?;
        device.make_current()?;
        let mut raw = CUtensorMap { opaque: [0; 16] };
        // SAFETY: the arrays have `RANK` elements, of which the driver reads all, and all but one of the strides: the
        // innermost stride is implied, so it is given those from the second on. The address is written down, not read.
        let code = unsafe {
            driver::cuTensorMapEncodeTiled(
                &mut raw,
                spec.element.raw(),
                RANK as u32,
                ptr::without_provenance_mut::<c_void>(spec.address.0 as usize),
                spec.dims.as_ptr(),
                spec.strides_bytes[1..].as_ptr(),
                spec.box_dims.as_ptr(),
                spec.element_strides.as_ptr(),
                CUtensorMapInterleave::NONE,
                spec.swizzle.raw(),
                spec.l2_promotion.raw(),
                CUtensorMapFloatOOBfill::ZERO,
            )
        };
        check("cuTensorMapEncodeTiled", code)?;
        Ok(Self { raw })
    }
}

/// Tensor maps in device memory, where kernels read them.
#[derive(Debug)]
pub struct TensorMaps<const N: usize> {
    memory: DeviceBuffer<[u64; 16]>,
}

impl<const N: usize> TensorMaps<N> {
    /// Puts the maps into device memory, and waits until they are there.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`]; [`GpuError::Driver`] where the driver fails.
    pub fn upload(device: &Device, maps: &[TensorMap; N]) -> Result<Self, GpuError> {
        let words = maps.map(|map| map.raw.opaque);
        Ok(Self { memory: DeviceBuffer::from_slice(device, &words)? })
    }

    /// The address of each map, a multiple of 128; valid while `self` lives.
    pub fn addresses(&self) -> [DevicePtr; N] {
        let bytes = size_of::<CUtensorMap>() as u64;
        core::array::from_fn(|index| self.memory.ptr().byte_add(index as u64 * bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swizzles_are_numbered_as_in_cuda_h() {
        for number in 0..4 {
            assert_eq!(TensorMapSwizzle::from_number(number).map(|swizzle| swizzle.raw().0), Some(number));
        }
        assert_eq!(TensorMapSwizzle::from_number(4), None);
    }
}
