//! Types of driver functions that are newer than cust_raw's bindings (CUDA 12 and 13), laid out as in `cuda.h`.

use core::ffi::c_uint;

pub use cust_raw::{CUDA_MEMCPY2D, CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUmodule, CUstream};
pub use cust_raw::{CUdevice_attribute, CUfunction_attribute, CUjit_option, CUmemorytype};
pub use cust_raw::{CUgraph, CUgraphExec, CUstreamCaptureMode};
pub use cust_raw::{
    CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPool_attribute, CUmemPoolProps, CUmemoryPool,
};

/// `CUtensorMap`: a tensor map as the hardware reads it. The driver alone knows its fields.
///
/// `cuda.h` aligns it to 64 bytes before CUDA 13 and to 128 from then on; 128 serves both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(128))]
pub struct CUtensorMap {
    /// The 128 bytes.
    pub opaque: [u64; 16],
}

/// `CUtensorMapDataType`: the type of an element in global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct CUtensorMapDataType(pub c_uint);

impl CUtensorMapDataType {
    /// Unsigned, 8 bits.
    pub const UINT8: Self = Self(0);
    /// Unsigned, 16 bits.
    pub const UINT16: Self = Self(1);
    /// Unsigned, 32 bits.
    pub const UINT32: Self = Self(2);
    /// Signed, 32 bits.
    pub const INT32: Self = Self(3);
    /// Unsigned, 64 bits.
    pub const UINT64: Self = Self(4);
    /// Signed, 64 bits.
    pub const INT64: Self = Self(5);
    /// IEEE binary16.
    pub const FLOAT16: Self = Self(6);
    /// IEEE binary32.
    pub const FLOAT32: Self = Self(7);
    /// IEEE binary64.
    pub const FLOAT64: Self = Self(8);
    /// bfloat16.
    pub const BFLOAT16: Self = Self(9);
    /// IEEE binary32 in memory, rounded to tf32 on the way to shared memory.
    pub const TFLOAT32: Self = Self(11);
}

/// `CUtensorMapInterleave`: none, or slices of 16 or 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct CUtensorMapInterleave(pub c_uint);

impl CUtensorMapInterleave {
    /// Elements of the innermost dimension are contiguous.
    pub const NONE: Self = Self(0);
}

/// `CUtensorMapSwizzle`: how 16-byte chunks are permuted in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct CUtensorMapSwizzle(pub c_uint);

impl CUtensorMapSwizzle {
    /// Not at all.
    pub const NONE: Self = Self(0);
    /// Within spans of 32 bytes.
    pub const BYTES_32: Self = Self(1);
    /// Within spans of 64 bytes.
    pub const BYTES_64: Self = Self(2);
    /// Within spans of 128 bytes.
    pub const BYTES_128: Self = Self(3);
}

/// `CUtensorMapL2promotion`: the least that is fetched into L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct CUtensorMapL2promotion(pub c_uint);

impl CUtensorMapL2promotion {
    /// What is asked for.
    pub const NONE: Self = Self(0);
    /// 64 bytes.
    pub const BYTES_64: Self = Self(1);
    /// 128 bytes.
    pub const BYTES_128: Self = Self(2);
    /// 256 bytes.
    pub const BYTES_256: Self = Self(3);
}

/// `CUtensorMapFloatOOBfill`: what a read outside the tensor gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct CUtensorMapFloatOOBfill(pub c_uint);

impl CUtensorMapFloatOOBfill {
    /// Zero.
    pub const ZERO: Self = Self(0);
}

/// `CUlaunchAttributeID`: what a [`CUlaunchAttribute`] states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct CUlaunchAttributeID(pub c_uint);

impl CUlaunchAttributeID {
    /// The blocks of a cluster; the value is [`CUlaunchAttributeValue::cluster_dim`].
    pub const CLUSTER_DIMENSION: Self = Self(4);
}

/// `CUlaunchAttributeValue`: 64 bytes, read as the attribute's id says.
#[derive(Clone, Copy)]
#[repr(C)]
pub union CUlaunchAttributeValue {
    /// The whole. `cuda.h` has members that hold pointers, so the union is aligned to 8 bytes.
    pub pad: [u64; 8],
    /// Blocks of a cluster along x, y and z.
    pub cluster_dim: [c_uint; 3],
}

/// `CUlaunchAttribute`: one property of a launch.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CUlaunchAttribute {
    /// Which property.
    pub id: CUlaunchAttributeID,
    /// Padding, 4 bytes.
    pub pad: [u8; 4],
    /// Its value.
    pub value: CUlaunchAttributeValue,
}

impl CUlaunchAttribute {
    /// The property that a cluster has `x` x `y` x `z` blocks.
    pub const fn cluster(x: c_uint, y: c_uint, z: c_uint) -> Self {
        let mut value = CUlaunchAttributeValue { pad: [0; 8] };
        value.cluster_dim = [x, y, z];
        Self { id: CUlaunchAttributeID::CLUSTER_DIMENSION, pad: [0; 4], value }
    }
}

/// `CUlaunchConfig`: a launch.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(non_snake_case)]
pub struct CUlaunchConfig {
    /// Blocks along x.
    pub gridDimX: c_uint,
    /// Blocks along y.
    pub gridDimY: c_uint,
    /// Blocks along z.
    pub gridDimZ: c_uint,
    /// Threads of a block along x.
    pub blockDimX: c_uint,
    /// Threads of a block along y.
    pub blockDimY: c_uint,
    /// Threads of a block along z.
    pub blockDimZ: c_uint,
    /// Dynamic shared memory of a block, in bytes.
    pub sharedMemBytes: c_uint,
    /// The stream; null for the legacy default stream.
    pub hStream: CUstream,
    /// The attributes; may be null where there are none.
    pub attrs: *mut CUlaunchAttribute,
    /// The number of attributes.
    pub numAttrs: c_uint,
}

const _: () = {
    assert!(size_of::<CUtensorMap>() == 128);
    assert!(size_of::<CUlaunchAttributeValue>() == 64 && align_of::<CUlaunchAttributeValue>() == 8);
    assert!(size_of::<CUlaunchAttribute>() == 72 && core::mem::offset_of!(CUlaunchAttribute, value) == 8);
    assert!(size_of::<CUlaunchConfig>() == 56 && core::mem::offset_of!(CUlaunchConfig, hStream) == 32);
};
