//! Tensor maps as the simulator reads them, and the bytes that their boxes name.

/// The type of a tensor's elements: what a reduction adds, and how many bytes an element has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorElement {
    /// 8 bits.
    U8,
    /// 16-bit integers.
    U16,
    /// 32-bit integers.
    U32,
    /// binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// binary32.
    F32,
    /// binary64.
    F64,
}

/// The swizzle of a box in shared memory: which 16-byte units of its lines change places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorSwizzle {
    /// None.
    None,
    /// Address bit 4 is xored with bit 7.
    B32,
    /// Address bits 4 and 5 are xored with bits 7 and 8.
    B64,
    /// Address bits 4 to 6 are xored with bits 7 to 9.
    B128,
}

/// A tensor in global memory and the box that one copy moves, as `cuTensorMapEncodeTiled` takes them.
#[derive(Clone, Debug)]
pub struct TensorMap {
    /// The type of the elements.
    pub element: TensorElement,
    /// The address of element 0, a multiple of 16.
    pub base: *mut u8,
    /// Elements of each dimension, the contiguous one first; 1 to 5 dimensions.
    pub dims: Vec<u64>,
    /// Bytes from one to the next in each dimension but the first; multiples of 16.
    pub strides: Vec<u64>,
    /// Elements of the box in each dimension, at most 256.
    pub box_dims: Vec<u32>,
    /// The swizzle of the box in shared memory.
    pub swizzle: TensorSwizzle,
}
