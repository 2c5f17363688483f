//! Tensor maps as kernels receive them, and the copies they describe.

use core::marker::PhantomData;

use hopper_macros::instruction;

use super::{FullBarrier, Shared, TileShape};
use crate::ptx::tensor::{self, CachePolicy};

/// A tensor map: 128 opaque bytes, 64-byte aligned, made by the host.
#[repr(C, align(64))]
pub struct TensorMapObject {
    opaque: [u64; 16],
}

/// The place in global memory of a tensor map whose box is a `T`.
#[repr(transparent)]
pub struct TensorMapRef<T> {
    map: *const TensorMapObject,
    tile: PhantomData<T>,
}

impl<T> Clone for TensorMapRef<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TensorMapRef<T> {}

impl<T> TensorMapRef<T> {
    /// The tensor map at `map`, as a simulated launch hands it to a kernel.
    ///
    /// # Safety
    /// A tensor map whose box is a `T` lies there, and is not changed while the kernel runs.
    #[inline(always)]
    pub const unsafe fn from_raw(map: *const u8) -> Self {
        Self { map: map.cast(), tile: PhantomData }
    }
}

impl<T: TileShape> TensorMapRef<T> {
    /// Brings the map itself into the cache. Thread.
    #[instruction]
    pub fn prefetch(self) {
        // SAFETY: a `TensorMapRef` points to a tensor map: the launch contract of the kernel that received it.
        unsafe { tensor::prefetch_tensormap(self.map.cast()) }
    }

    /// Starts the copy of the box at `at` (columns, rows) into `tile`. Thread.
    ///
    /// # Safety
    /// `tile` is free to be written; `full` expects [`TileShape::BYTES`] for it.
    #[instruction]
    pub unsafe fn load_2d(self, tile: Shared<T>, at: [i32; 2], full: Shared<FullBarrier>) {
        // SAFETY: the map has rank 2 and this tile's box (the launch contract); the rest is the caller's promise.
        unsafe { tensor::cp_async_bulk_tensor_2d(tile.address(), self.map.cast(), at, full.address()) }
    }

    /// As [`load_2d`](Self::load_2d), from a map of rank 3 whose box is [`TileShape::BOX_DEPTH`] deep.
    ///
    /// # Safety
    /// As [`load_2d`](Self::load_2d).
    #[instruction]
    pub unsafe fn load_3d(self, tile: Shared<T>, at: [i32; 3], full: Shared<FullBarrier>) {
        // SAFETY: as above, with rank 3.
        unsafe { tensor::cp_async_bulk_tensor_3d(tile.address(), self.map.cast(), at, full.address()) }
    }

    /// As [`load_2d`](Self::load_2d), from a map of rank 5 whose box is one deep in the last three dimensions.
    ///
    /// # Safety
    /// As [`load_2d`](Self::load_2d).
    #[instruction]
    pub unsafe fn load_5d(self, tile: Shared<T>, at: [i32; 5], full: Shared<FullBarrier>) {
        // SAFETY: as above, with rank 5.
        unsafe { tensor::cp_async_bulk_tensor_5d(tile.address(), self.map.cast(), at, full.address()) }
    }

    /// Starts the copy of `tile` to the box at `at` of a map of rank 5, in this thread's bulk group. Thread.
    ///
    /// # Safety
    /// The map's memory may be written there; `tile` was written before a fence of the asynchronous proxy, and does not change
    /// until the group has been read.
    #[instruction]
    pub unsafe fn store_5d(self, at: [i32; 5], tile: Shared<T>) {
        // SAFETY: as above, with rank 5.
        unsafe { tensor::cp_async_bulk_tensor_5d_store(self.map.cast(), at, tile.address()) }
    }

    /// As [`load_3d`](Self::load_3d), into the same place in every block of `mask`.
    ///
    /// # Safety
    /// As [`load_2d`](Self::load_2d), in every block of `mask`.
    #[instruction]
    pub unsafe fn load_3d_multicast(self, tile: Shared<T>, at: [i32; 3], full: Shared<FullBarrier>, mask: u16) {
        // SAFETY: as above, in each block.
        unsafe {
            tensor::cp_async_bulk_tensor_3d_multicast(tile.address(), self.map.cast(), at, full.address(), mask);
        }
    }

    /// As [`load_2d`](Self::load_2d), with a preference for what L2 keeps.
    ///
    /// # Safety
    /// As [`load_2d`](Self::load_2d).
    #[instruction]
    pub unsafe fn load_2d_hinted(self, tile: Shared<T>, at: [i32; 2], full: Shared<FullBarrier>, policy: CachePolicy) {
        // SAFETY: as above.
        unsafe { tensor::cp_async_bulk_tensor_2d_hinted(tile.address(), self.map.cast(), at, full.address(), policy) }
    }

    /// As [`load_3d`](Self::load_3d), with a preference for what L2 keeps.
    ///
    /// # Safety
    /// As [`load_2d`](Self::load_2d).
    #[instruction]
    pub unsafe fn load_3d_hinted(self, tile: Shared<T>, at: [i32; 3], full: Shared<FullBarrier>, policy: CachePolicy) {
        // SAFETY: as above.
        unsafe { tensor::cp_async_bulk_tensor_3d_hinted(tile.address(), self.map.cast(), at, full.address(), policy) }
    }

    /// As [`load_3d_multicast`](Self::load_3d_multicast), with a preference for what L2 keeps.
    ///
    /// # Safety
    /// As [`load_3d_multicast`](Self::load_3d_multicast).
    #[instruction]
    pub unsafe fn load_3d_multicast_hinted(
        self,
        tile: Shared<T>,
        at: [i32; 3],
        full: Shared<FullBarrier>,
        mask: u16,
        policy: CachePolicy,
    ) {
        let (map, full) = (self.map.cast(), full.address());
        // SAFETY: as above, in each block.
        unsafe { tensor::cp_async_bulk_tensor_3d_multicast_hinted(tile.address(), map, at, full, mask, policy) }
    }
}
