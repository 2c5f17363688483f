//! Typed pointers to global memory, as kernels receive them.

use hopper_macros::instruction;

use crate::ptx::memory;

/// An array in global memory that nobody writes while the kernel runs.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct GlobalArray<T> {
    pointer: *const T,
}

impl<T> GlobalArray<T> {
    /// The array that begins at `pointer`, as a simulated launch hands it to a kernel.
    ///
    /// # Safety
    /// Nobody writes it while the kernel runs.
    #[inline(always)]
    pub const unsafe fn from_raw(pointer: *const T) -> Self {
        Self { pointer }
    }

    /// No array, for an argument that may be left out.
    #[inline(always)]
    pub const fn null() -> Self {
        Self { pointer: core::ptr::null() }
    }

    /// Whether there is no array.
    #[inline(always)]
    pub fn is_null(self) -> bool {
        self.pointer.is_null()
    }

    /// The array from element `count` on.
    ///
    /// # Safety
    /// `count` is at most the array's length.
    #[inline(always)]
    pub unsafe fn skip(self, count: u64) -> Self {
        // SAFETY: the caller's promise.
        Self { pointer: unsafe { self.pointer.add(count as usize) } }
    }

    /// The same address, as an array of another type; to read an element is to promise that there is one.
    #[inline(always)]
    pub const fn cast<U>(self) -> GlobalArray<U> {
        GlobalArray { pointer: self.pointer.cast() }
    }

    /// The address of element 0.
    #[inline(always)]
    pub fn as_ptr(self) -> *const T {
        self.pointer
    }
}

impl GlobalArray<u64> {
    /// Element `index`.
    ///
    /// # Safety
    /// `index` is under the array's length.
    #[instruction]
    pub unsafe fn get(self, index: u32) -> u64 {
        // SAFETY: the caller's promise.
        let [low, high] = unsafe { memory::ld_global_nc_v2_u32(self.pointer.add(index as usize).cast()) };
        u64::from(low) | u64::from(high) << 32
    }
}

impl GlobalArray<u32> {
    /// Element `index`.
    ///
    /// # Safety
    /// `index` is under the array's length.
    #[instruction]
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
    #[instruction]
    pub unsafe fn get(self, index: u32) -> [u32; 2] {
        // SAFETY: the caller's promise.
        unsafe { memory::ld_global_nc_v2_u32(self.pointer.add(index as usize).cast()) }
    }
}

impl GlobalArray<[u32; 4]> {
    /// Element `index`.
    ///
    /// # Safety
    /// `index` is under the array's length, and the array is 16-byte aligned.
    #[instruction]
    pub unsafe fn get(self, index: u32) -> [u32; 4] {
        // SAFETY: the caller's promise.
        unsafe { memory::ld_global_nc_v4_u32(self.pointer.add(index as usize).cast()) }
    }
}
