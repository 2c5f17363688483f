//! Typed pointers to global memory, as kernels receive them.

use core::marker::PhantomData;

use crate::ptx::memory;

/// An array in global memory that nobody writes while the kernel runs.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct GlobalArray<T> {
    pointer: *const T,
}

impl GlobalArray<u32> {
    /// Element `index`.
    ///
    /// # Safety
    /// `index` is under the array's length.
    #[inline(always)]
    pub unsafe fn get(self, index: u32) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { memory::ld_global_nc_u32(self.pointer.add(index as usize))[0] }
    }
}

impl GlobalArray<[u32; 2]> {
    /// Element `index`.
    ///
    /// # Safety
    /// `index` is under the array's length.
    #[inline(always)]
    pub unsafe fn get(self, index: u32) -> [u32; 2] {
        // SAFETY: the caller's promise.
        unsafe { memory::ld_global_nc_v2_u32(self.pointer.add(index as usize).cast()) }
    }
}

/// A matrix in global memory that a kernel writes: a base pointer and a leading dimension, in elements.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GlobalMatrix<T> {
    pointer: *mut T,
    leading_dimension: u64,
    element: PhantomData<T>,
}

impl<T> GlobalMatrix<T> {
    /// From its parts.
    #[inline(always)]
    pub fn new(pointer: *mut T, leading_dimension: u64) -> Self {
        Self { pointer, leading_dimension, element: PhantomData }
    }

    /// The address of element `minor` of line `major`: `pointer + major * leading_dimension + minor`.
    #[inline(always)]
    pub fn address(self, major: u32, minor: u32) -> *mut T {
        self.pointer.wrapping_add((u64::from(major) * self.leading_dimension + u64::from(minor)) as usize)
    }
}
