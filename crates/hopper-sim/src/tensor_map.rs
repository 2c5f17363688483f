//! Tensor maps as the simulator reads them, and the bytes that their boxes name.
//!
//! Here are the map and the rules that it keeps; `boxes` has the addresses of a copy's bytes.

mod boxes;
mod element;
mod swizzle;

pub(crate) use boxes::{Piece, Way};
pub use element::TensorElement;
pub(crate) use element::add;
pub use swizzle::TensorSwizzle;

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

// SAFETY: the base is an address for the simulated copy engine; nothing here reads or writes through it.
unsafe impl Send for TensorMap {}
// SAFETY: as above.
unsafe impl Sync for TensorMap {}

/// Dynamic shared memory of a block, at most.
const SHARED_BYTES: u64 = 227 * 1024;

impl TensorMap {
    /// A map that keeps the rules of `cuTensorMapEncodeTiled`.
    ///
    /// # Errors
    /// A sentence that names the first rule it does not keep.
    pub fn new(
        element: TensorElement,
        base: *mut u8,
        dims: &[u64],
        strides: &[u64],
        box_dims: &[u32],
        swizzle: TensorSwizzle,
    ) -> Result<Self, String> {
        let map = Self {
            element,
            base,
            dims: dims.to_vec(),
            strides: strides.to_vec(),
            box_dims: box_dims.to_vec(),
            swizzle,
        };
        map.check()?;
        Ok(map)
    }

    /// Whether it keeps the rules.
    ///
    /// # Errors
    /// A sentence that names the first rule it does not keep.
    pub fn check(&self) -> Result<(), String> {
        let rank = self.dims.len();
        if !(1..=5).contains(&rank) {
            return Err(format!("a tensor has 1 to 5 dimensions, this one {rank}"));
        }
        if self.box_dims.len() != rank || self.strides.len() != rank - 1 {
            return Err(format!(
                "a tensor of {rank} dimensions needs {rank} box extents and {} strides, this one has {} and {}",
                rank - 1,
                self.box_dims.len(),
                self.strides.len()
            ));
        }
        if !self.base.addr().is_multiple_of(16) {
            return Err(format!("the tensor begins at {:p}, not at a multiple of 16", self.base));
        }
        if let Some(dim) = self.dims.iter().position(|&extent| extent == 0 || extent > 1 << 32) {
            return Err(format!("dimension {dim} has {} elements, not 1 to 2^32", self.dims[dim]));
        }
        let element_bytes = u64::from(self.element.bytes());
        let line_bytes = self.dims[0] * element_bytes;
        for (dim, &stride) in (1..).zip(&self.strides) {
            if !stride.is_multiple_of(16) || stride >= 1 << 40 {
                return Err(format!(
                    "the stride of dimension {dim} is {stride} bytes, not a multiple of 16 under 2^40"
                ));
            }
            // The outer strides may come in any order: heads within a line of a batch, for one.
            if stride < line_bytes && self.dims[dim] > 1 {
                return Err(format!(
                    "the stride of dimension {dim} is {stride} bytes, fewer than the {line_bytes} of dimension 0"
                ));
            }
        }
        if let Some(dim) = self.box_dims.iter().position(|extent| !(1..=256).contains(extent)) {
            return Err(format!("the box has {} elements in dimension {dim}, not 1 to 256", self.box_dims[dim]));
        }
        let inner_bytes = self.inner_bytes();
        if !inner_bytes.is_multiple_of(16) {
            return Err(format!("the inner extent of the box has {inner_bytes} bytes, not a multiple of 16"));
        }
        if let Some(span) = self.swizzle.span_bytes().filter(|&span| inner_bytes > span) {
            return Err(format!("the inner extent of the box has {inner_bytes} bytes, more than the swizzle's {span}"));
        }
        let bytes = self.box_dims.iter().fold(element_bytes, |bytes, &extent| bytes * u64::from(extent));
        if bytes > SHARED_BYTES {
            return Err(format!("the box has {bytes} bytes, more than the {SHARED_BYTES} of shared memory"));
        }
        Ok(())
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Bytes of one box: what a load adds to its barrier, wherever the box lies.
    pub fn box_bytes(&self) -> u32 {
        self.box_dims.iter().product::<u32>() * self.element.bytes()
    }

    /// In a form that a kernel can be given the address of.
    ///
    /// # Errors
    /// As [`TensorMap::check`].
    pub fn encode(self) -> Result<EncodedTensorMap, String> {
        self.check()?;
        Ok(EncodedTensorMap { map: Box::new(self), _unused: [0; 15] })
    }

    fn inner_bytes(&self) -> u32 {
        self.box_dims[0] * self.element.bytes()
    }
}

/// A [`TensorMap`] as kernels know it: 128 bytes that are named by their address, aligned to 64.
///
/// It is not moved while a kernel has its address.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct EncodedTensorMap {
    map: Box<TensorMap>,
    _unused: [u64; 15],
}

const _: () = assert!(size_of::<EncodedTensorMap>() == 128);

impl EncodedTensorMap {
    /// The map.
    pub fn map(&self) -> &TensorMap {
        &self.map
    }

    /// What a kernel is given.
    pub fn address(&self) -> *const u8 {
        core::ptr::from_ref(self).cast()
    }
}

#[cfg(test)]
mod tests;
