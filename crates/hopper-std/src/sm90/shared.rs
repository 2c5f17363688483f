//! Places in shared memory, typed.

use core::marker::PhantomData;

use hopper_macros::instruction;

use crate::ptx::special;
use crate::spec::MAX_SHARED_BYTES;

/// The place of a `T` in the block's shared memory: an address, not a reference, since other threads, the copy engine
/// and the tensor cores read and write what lies there.
///
/// A struct with `#[derive(SharedLayout)]` has a function for each field that goes from its place to the field's.
#[repr(transparent)]
pub struct Shared<T: ?Sized> {
    address: u32,
    place: PhantomData<*mut T>,
}

impl<T: ?Sized> Clone for Shared<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Shared<T> {}

impl<T> Shared<T> {
    /// The place at `address`.
    ///
    /// # Safety
    /// A `T` lies, or will lie, at `address` in shared memory, aligned.
    #[inline(always)]
    pub const unsafe fn from_address(address: u32) -> Self {
        Self { address, place: PhantomData }
    }

    /// The address in the shared window.
    #[inline(always)]
    pub const fn address(self) -> u32 {
        self.address
    }

    /// The place of a part, `offset_bytes` from the start.
    ///
    /// # Safety
    /// `T` has an `F` at that offset.
    #[inline(always)]
    pub const unsafe fn project<F>(self, offset_bytes: usize) -> Shared<F> {
        Shared { address: self.address + offset_bytes as u32, place: PhantomData }
    }
}

impl<T, const COUNT: usize> Shared<[T; COUNT]> {
    /// The place of element `index`, which must be under `COUNT`.
    #[inline(always)]
    pub const fn at(self, index: u32) -> Shared<T> {
        debug_assert!((index as usize) < COUNT);
        Shared { address: self.address + index * size_of::<T>() as u32, place: PhantomData }
    }
}

/// A kernel's shared memory: one `#[repr(C, align(1024))]` struct that holds all of it.
pub struct SharedMemory<T>(PhantomData<T>);

impl<T> SharedMemory<T> {
    /// Its size. Evaluating it fails to compile over 227 KiB.
    pub const BYTES: usize = {
        assert!(size_of::<T>() <= MAX_SHARED_BYTES as usize, "a block has at most 227 KiB of shared memory");
        assert!(align_of::<T>() <= 1024, "dynamic shared memory is aligned to 1024 bytes");
        size_of::<T>()
    };

    /// The place of the block's dynamic shared memory.
    ///
    /// # Safety
    /// The kernel's specification asks for [`SharedMemory::<T>::BYTES`](Self::BYTES), and the kernel has no other
    /// dynamic shared memory.
    #[instruction]
    pub unsafe fn take() -> Shared<T> {
        const { assert!(Self::BYTES <= MAX_SHARED_BYTES as usize) };
        // SAFETY: the launch provides BYTES bytes there, 1024-byte aligned; the caller gives them this one type.
        unsafe { Shared::from_address(special::dynamic_shared_address()) }
    }
}
