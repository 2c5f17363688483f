//! Addresses in the memory of a device or of the simulator.

use core::{fmt, ptr};

use hopper_std::global::GlobalArray;

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
