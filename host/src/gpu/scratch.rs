//! Memory for the time of a launch.

use core::ffi::c_int;
use core::ptr;
use std::sync::OnceLock;

use cuda_loader::driver;
use cuda_loader::types::{
    CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPool_attribute, CUmemPoolProps, CUmemoryPool,
};
use cust::stream::Stream;

use super::device::Device;
use super::error::{GpuError, check};
use crate::tensor_map::DevicePtr;

/// The memory that a device's launches take scratch from: made on first use, and a pool of its own, since the device's default
/// pool is the caller's to set up.
///
/// NOTE: what is freed stays in the pool. The driver's default is to give it back to the device at the next synchronisation, and
/// mapping it again for the next launch takes longer than most launches.
#[derive(Default)]
pub(super) struct ScratchPool(OnceLock<Pool>);

impl ScratchPool {
    /// The pool of device number `index`, whose context must be current.
    fn get(&self, index: u32) -> Result<CUmemoryPool, GpuError> {
        if let Some(pool) = self.0.get() {
            return Ok(pool.0);
        }
        // A failure is not kept: the driver may refuse a pool while a stream is captured, and make one afterwards. Where another
        // thread was first, its pool serves and this one is dropped.
        let pool = Pool::new(index)?;
        Ok(self.0.get_or_init(|| pool).0)
    }

    /// Gives back to the device what no launch has in use.
    pub(super) fn trim(&self) -> Result<(), GpuError> {
        let Some(pool) = self.0.get() else { return Ok(()) };
        // SAFETY: the pool is alive; what is in use stays.
        check("cuMemPoolTrimTo", unsafe { driver::cuMemPoolTrimTo(pool.0, 0) })
    }
}

struct Pool(CUmemoryPool);

// SAFETY: the driver's functions on pools may be called by any thread, and by several at once.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    fn new(index: u32) -> Result<Self, GpuError> {
        let properties = CUmemPoolProps {
            allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            location: CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: index as c_int },
            ..CUmemPoolProps::default()
        };
        let mut pool = ptr::null_mut();
        // SAFETY: the out-pointer and the properties are valid; what is not set is zero, which the driver asks for.
        check("cuMemPoolCreate", unsafe { driver::cuMemPoolCreate(&mut pool, &properties) })?;
        let pool = Self(pool);
        let mut kept_bytes = u64::MAX;
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the pool is alive; this attribute's value is 64 bits wide.
        let code = unsafe { driver::cuMemPoolSetAttribute(pool.0, attribute, (&raw mut kept_bytes).cast()) };
        check("cuMemPoolSetAttribute", code)?;
        Ok(pool)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: nothing is taken from it any more; the driver waits for what was freed in the order of a stream.
        let _ = unsafe { driver::cuMemPoolDestroy(self.0) };
    }
}

/// Device memory that is allocated and (when dropped) freed in the order of one stream: nothing waits.
pub(crate) struct Scratch<'s> {
    ptr: DevicePtr,
    stream: &'s Stream,
}

impl<'s> Scratch<'s> {
    /// So many bytes, at least one, for what is put on `stream`, a stream of `device`, from now until this is dropped. What the
    /// memory holds is undefined.
    pub(crate) fn new(device: &Device, stream: &'s Stream, bytes: usize) -> Result<Self, GpuError> {
        device.make_current()?;
        let pool = device.scratch_pool().get(device.index())?;
        let mut ptr = 0;
        // SAFETY: the out-pointer is valid; the pool and the stream are alive.
        let code = unsafe { driver::cuMemAllocFromPoolAsync(&mut ptr, bytes, pool, stream.as_inner()) };
        check("cuMemAllocFromPoolAsync", code)?;
        Ok(Self { ptr: DevicePtr(ptr), stream })
    }

    /// Its address.
    pub(crate) fn ptr(&self) -> DevicePtr {
        self.ptr
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        // A failure here is a fault of an earlier launch, which the next call reports.
        // SAFETY: the memory is this object's; what was put on the stream before still finds it.
        let _ = unsafe { driver::cuMemFreeAsync(self.ptr.0, self.stream.as_inner()) };
    }
}
