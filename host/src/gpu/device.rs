//! One Hopper GPU, found or refused with the reason.

use core::fmt;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use cuda_loader::{DriverVersion, LoadError, driver, driver_present};
use cust::context::{Context, ContextHandle as _};
use cust::device::DeviceAttribute;

use super::error::{GpuError, NO_DEVICE, check, check_cust};
use super::module::KernelCache;
use super::scratch::ScratchPool;

/// A Hopper GPU (compute capability 9.0) and its primary context.
///
/// Cheap to clone, and shared: asking twice for the same device gives the same one, so its kernels are compiled once.
/// The primary context is the one that the CUDA runtime, cuBLAS and other libraries use, so memory and streams can be
/// exchanged with them. It is released when all that holds the device is dropped.
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

/// NOTE: fields are dropped in this order, and modules and memory must go before their context.
struct Inner {
    kernels: KernelCache,
    scratch_pool: ScratchPool,
    context: Context,
    device: cust::device::Device,
    index: u32,
    name: String,
    driver_version: DriverVersion,
    num_multiprocessors: u32,
    l2_bytes: u64,
}

impl Device {
    /// The first Hopper device.
    ///
    /// # Errors
    /// [`GpuError::NoDriver`], [`GpuError::NoDevice`], or [`GpuError::NotHopper`] for device 0 where no device is a
    /// Hopper one; [`GpuError::Driver`] where the driver fails.
    pub fn hopper() -> Result<Self, GpuError> {
        for index in 0..Self::count()? {
            if compute_capability(&raw_device(index)?)? == HOPPER {
                return Self::hopper_at(index);
            }
        }
        // No device fits. Opening the first says why not; it can succeed only where devices change meanwhile.
        Self::hopper_at(0)
    }

    /// The device of that index, from 0, in the driver's order (`CUDA_VISIBLE_DEVICES` applies).
    ///
    /// # Errors
    /// As [`Device::hopper`], and [`GpuError::DeviceIndex`] where there are fewer devices.
    pub fn hopper_at(index: u32) -> Result<Self, GpuError> {
        let count = Self::count()?;
        if index >= count {
            return Err(GpuError::DeviceIndex { index, count });
        }
        // A panic while the map is locked leaves it whole: the only write is one `insert`.
        let mut open = OPEN_DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(inner) = open.get(&index).and_then(Weak::upgrade) {
            return Ok(Self { inner });
        }
        let inner = Arc::new(Inner::open(index)?);
        open.insert(index, Arc::downgrade(&inner));
        Ok(Self { inner })
    }

    /// The number of devices, of any kind: at least 1.
    ///
    /// # Errors
    /// [`GpuError::NoDriver`] or [`GpuError::NoDevice`]; [`GpuError::Driver`] where the driver fails.
    pub fn count() -> Result<u32, GpuError> {
        started()?;
        match check_cust("cuDeviceGetCount", cust::device::Device::num_devices())? {
            0 => Err(GpuError::NoDevice),
            count => Ok(count),
        }
    }

    /// The driver's name for the device, as in `NVIDIA H200`.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The device's index, from 0, in the driver's order.
    pub fn index(&self) -> u32 {
        self.inner.index
    }

    /// The newest CUDA version that the driver serves.
    pub fn driver_version(&self) -> DriverVersion {
        self.inner.driver_version
    }

    /// The compute capability: (9, 0) for every device that this type holds.
    pub fn compute_capability(&self) -> (u32, u32) {
        HOPPER
    }

    /// The number of streaming multiprocessors.
    pub fn num_multiprocessors(&self) -> u32 {
        self.inner.num_multiprocessors
    }

    /// The size of the L2 cache, in bytes.
    pub fn l2_bytes(&self) -> u64 {
        self.inner.l2_bytes
    }

    /// Device memory in bytes: free, and in all. Other processes may change the first at any time.
    ///
    /// # Errors
    /// [`GpuError::Driver`], for instance after a fault that [loses the context](GpuError::loses_context).
    pub fn memory_info(&self) -> Result<(u64, u64), GpuError> {
        self.make_current()?;
        let (mut free, mut total) = (0_usize, 0_usize);
        // SAFETY: the function writes two sizes, for which there is a place.
        check("cuMemGetInfo_v2", unsafe { driver::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok((free as u64, total as u64))
    }

    /// Waits until everything launched on the device by this process is done.
    ///
    /// # Errors
    /// [`GpuError::Driver`], also for the fault of a launch that returned long ago.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.make_current()?;
        // SAFETY: the function has no precondition beyond a current context.
        check("cuCtxSynchronize", unsafe { driver::cuCtxSynchronize() })
    }

    /// The primary context, for calls of cust that this library does not wrap.
    pub fn context(&self) -> &Context {
        &self.inner.context
    }

    /// The device as cust knows it.
    pub fn cust_device(&self) -> cust::device::Device {
        self.inner.device
    }

    /// Makes the device's context current on the calling thread. The functions of this library do so by themselves;
    /// call it before those of cust.
    ///
    /// # Errors
    /// [`GpuError::Driver`] where the driver fails.
    pub fn make_current(&self) -> Result<(), GpuError> {
        self.inner.make_current()
    }

    /// Gives back to the device the memory that launches had for their time and that is kept for the next ones: copies of
    /// operands that are not aligned, and workspaces. Launches that have it in use keep it.
    ///
    /// # Errors
    /// [`GpuError::Driver`] where the driver fails.
    pub fn release_scratch_memory(&self) -> Result<(), GpuError> {
        self.make_current()?;
        self.inner.scratch_pool.trim()
    }

    pub(super) fn scratch_pool(&self) -> &ScratchPool {
        &self.inner.scratch_pool
    }

    pub(super) fn kernels(&self) -> &KernelCache {
        &self.inner.kernels
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("index", &self.inner.index).field("name", &self.inner.name).finish()
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Device {}

impl Inner {
    fn open(index: u32) -> Result<Self, GpuError> {
        let driver_version = started()?;
        let device = raw_device(index)?;
        let name = check_cust("cuDeviceGetName", device.name())?;
        let (major, minor) = compute_capability(&device)?;
        if (major, minor) != HOPPER {
            return Err(GpuError::NotHopper { name, index, major, minor });
        }
        Ok(Self {
            kernels: KernelCache::default(),
            scratch_pool: ScratchPool::default(),
            context: check_cust("cuDevicePrimaryCtxRetain", Context::new(device))?,
            device,
            index,
            name,
            driver_version,
            num_multiprocessors: attribute(&device, DeviceAttribute::MultiprocessorCount)?,
            l2_bytes: u64::from(attribute(&device, DeviceAttribute::L2CacheSize)?),
        })
    }

    fn make_current(&self) -> Result<(), GpuError> {
        // SAFETY: the context is retained for as long as `self` lives.
        check("cuCtxSetCurrent", unsafe { driver::cuCtxSetCurrent(self.context.get_inner()) })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The cached modules, dropped next, are unloaded from the current context, and the pool's memory is freed. Where it
        // cannot be made current the driver is gone, and both with it.
        let _ = self.make_current();
    }
}

/// The compute capability that sm_90a code runs on.
const HOPPER: (u32, u32) = (9, 0);

/// The devices that something holds, by index.
static OPEN_DEVICES: LazyLock<Mutex<HashMap<u32, Weak<Inner>>>> = LazyLock::new(Mutex::default);

/// The driver's version, once it is started.
fn started() -> Result<DriverVersion, GpuError> {
    driver_present().map_err(|reason| match reason {
        LoadError::Refused { code: NO_DEVICE } => GpuError::NoDevice,
        reason => GpuError::NoDriver { reason },
    })
}

fn raw_device(index: u32) -> Result<cust::device::Device, GpuError> {
    check_cust("cuDeviceGet", cust::device::Device::get_device(index))
}

fn attribute(device: &cust::device::Device, attribute: DeviceAttribute) -> Result<u32, GpuError> {
    check_cust("cuDeviceGetAttribute", device.get_attribute(attribute)).map(i32::cast_unsigned)
}

fn compute_capability(device: &cust::device::Device) -> Result<(u32, u32), GpuError> {
    Ok((
        attribute(device, DeviceAttribute::ComputeCapabilityMajor)?,
        attribute(device, DeviceAttribute::ComputeCapabilityMinor)?,
    ))
}
