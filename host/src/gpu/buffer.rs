//! Device memory with an owner.

use core::fmt;
use core::marker::PhantomData;
use core::ptr;

use bytemuck::Pod;
use cuda_loader::driver;

use super::device::Device;
use super::error::{GpuError, check, check_cust};
use crate::tensor_map::DevicePtr;

/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: u32 = 2;

impl<T: cust::memory::DeviceCopy> From<cust::memory::DevicePointer<T>> for DevicePtr {
    fn from(pointer: cust::memory::DevicePointer<T>) -> Self {
        Self(pointer.as_raw())
    }
}

/// `len` elements in device memory, freed when dropped. The address is a multiple of 256, or 0 where there is no byte.
///
/// Copies and fills wait: for the launches made before, on any stream, and until they are done themselves.
pub struct DeviceBuffer<T> {
    /// NOTE: dropped before the device, whose context it needs.
    memory: cust::memory::DeviceBuffer<u8>,
    len: usize,
    device: Device,
    elements: PhantomData<T>,
}

impl<T: Pod> DeviceBuffer<T> {
    /// Elements copied from the host.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`]; [`GpuError::Driver`] where the driver fails.
    pub fn from_slice(device: &Device, elements: &[T]) -> Result<Self, GpuError> {
        let mut buffer = Self::allocate(device, elements.len())?;
        buffer.upload(elements)?;
        Ok(buffer)
    }

    /// `len` elements of which every byte is `byte`: 0 for zeros, 0xFF for a NaN of any floating-point type.
    ///
    /// # Errors
    /// As [`DeviceBuffer::from_slice`].
    pub fn filled(device: &Device, len: usize, byte: u8) -> Result<Self, GpuError> {
        let mut buffer = Self::allocate(device, len)?;
        buffer.fill_bytes(byte)?;
        Ok(buffer)
    }

    /// Memory that holds whatever it held before.
    pub(super) fn allocate(device: &Device, len: usize) -> Result<Self, GpuError> {
        device.make_current()?;
        let out_of_memory = |wanted_bytes| {
            let free_bytes = device.memory_info().map_or(0, |(free, _)| free);
            GpuError::OutOfMemory { wanted_bytes, free_bytes }
        };
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| out_of_memory(u64::MAX))?;
        // SAFETY: every byte that is later read as `T` is valid, since `T` is plain data.
        let memory = unsafe { cust::memory::DeviceBuffer::<u8>::uninitialized(bytes) };
        match check_cust("cuMemAlloc_v2", memory) {
            Ok(memory) => Ok(Self { memory, len, device: device.clone(), elements: PhantomData }),
            Err(GpuError::Driver { code: OUT_OF_MEMORY, .. }) => Err(out_of_memory(bytes as u64)),
            Err(error) => Err(error),
        }
    }

    /// Replaces all elements by those of the host.
    ///
    /// # Errors
    /// [`GpuError::Length`] where the numbers of elements differ; [`GpuError::Driver`] where the driver fails, also for
    /// the fault of an earlier launch.
    pub fn upload(&mut self, elements: &[T]) -> Result<(), GpuError> {
        self.check_len(elements.len())?;
        if self.num_bytes() == 0 {
            return Ok(());
        }
        self.device.make_current()?;
        // SAFETY: both sides have that many bytes, and the context is current.
        let code = unsafe { driver::cuMemcpyHtoD_v2(self.ptr().0, elements.as_ptr().cast(), size_of_val(elements)) };
        check("cuMemcpyHtoD_v2", code)?;
        wait_for_default_stream()
    }

    /// Copies all elements to the host.
    ///
    /// # Errors
    /// As [`DeviceBuffer::upload`].
    pub fn download(&self, elements: &mut [T]) -> Result<(), GpuError> {
        self.check_len(elements.len())?;
        if self.num_bytes() == 0 {
            return Ok(());
        }
        self.device.make_current()?;
        // SAFETY: both sides have that many bytes, every bit pattern is a `T`, and the context is current. The function
        // returns when the bytes have arrived.
        check("cuMemcpyDtoH_v2", unsafe {
            driver::cuMemcpyDtoH_v2(elements.as_mut_ptr().cast(), self.ptr().0, size_of_val(elements))
        })
    }

    /// All elements, copied to the host.
    ///
    /// # Errors
    /// [`GpuError::Driver`] where the driver fails, also for the fault of an earlier launch.
    pub fn to_vec(&self) -> Result<Vec<T>, GpuError> {
        let mut elements = vec![T::zeroed(); self.len];
        self.download(&mut elements)?;
        Ok(elements)
    }

    /// Sets every byte.
    ///
    /// # Errors
    /// [`GpuError::Driver`] where the driver fails, also for the fault of an earlier launch.
    pub fn fill_bytes(&mut self, byte: u8) -> Result<(), GpuError> {
        if self.num_bytes() == 0 {
            return Ok(());
        }
        self.device.make_current()?;
        // SAFETY: the buffer has that many bytes, and the context is current.
        check("cuMemsetD8_v2", unsafe { driver::cuMemsetD8_v2(self.ptr().0, byte, self.num_bytes()) })?;
        wait_for_default_stream()
    }

    fn check_len(&self, host: usize) -> Result<(), GpuError> {
        if self.len == host {
            return Ok(());
        }
        Err(GpuError::Length { device: self.len as u64, host: host as u64 })
    }
}

impl<T> DeviceBuffer<T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The size in bytes.
    pub fn num_bytes(&self) -> usize {
        self.memory.len()
    }

    /// The address of the first element; valid while the buffer lives.
    pub fn ptr(&self) -> DevicePtr {
        self.memory.as_device_ptr().into()
    }

    /// The device that the memory is of.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

impl<T> fmt::Debug for DeviceBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBuffer").field("ptr", &self.ptr()).field("len", &self.len).finish_non_exhaustive()
    }
}

impl<T> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        // For cust, which frees the memory next. Where it fails the driver is gone, and the memory with it.
        let _ = self.device.make_current();
    }
}

/// Waits for the copy or fill just made in the current context.
///
/// NOTE: a copy from pageable memory returns once the bytes are staged, and a fill at once. Streams of cust keep the
/// order with the default stream, but a non-blocking one of the caller's would overtake them.
pub(super) fn wait_for_default_stream() -> Result<(), GpuError> {
    // SAFETY: null is the legacy default stream of the current context.
    check("cuStreamSynchronize", unsafe { driver::cuStreamSynchronize(ptr::null_mut()) })
}
