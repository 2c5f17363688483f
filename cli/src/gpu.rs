//! The GPU, as the verbs need it.

use hopper_sparse::Error;
use hopper_sparse::gpu::{Device, Event, GpuError, Stream};
use hopper_std::KernelSpec;

use crate::error::{CliError, Result};
use crate::info;

/// A GPU that can be used.
pub struct Gpu {
    device: Device,
}

impl Gpu {
    /// The GPU of that index, or the first Hopper one.
    ///
    /// # Errors
    /// The reason, as a sentence, where there is none.
    pub fn open(index: Option<u32>) -> Result<Self, String> {
        let device = index.map_or_else(Device::hopper, Device::hopper_at);
        device.map(|device| Self { device }).map_err(|error| error.to_string())
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What there is to say of the device.
    ///
    /// # Errors
    /// A failure of the driver.
    pub fn describe(&self) -> Result<info::Device> {
        let (free_bytes, total_bytes) = self.device.memory_info().map_err(CliError::failure)?;
        Ok(info::Device {
            index: self.device.index(),
            name: self.device.name().to_owned(),
            driver: self.device.driver_version().to_string(),
            compute_capability: self.device.compute_capability(),
            num_multiprocessors: self.device.num_multiprocessors(),
            l2_bytes: self.device.l2_bytes(),
            free_bytes,
            total_bytes,
        })
    }

    /// Lets the driver compile a kernel.
    ///
    /// # Errors
    /// A failure where it does not accept the kernel.
    pub fn load(&self, spec: &KernelSpec) -> Result<info::Loaded> {
        let kernel = self.device.kernel(spec).map_err(CliError::failure)?;
        Ok(info::Loaded {
            registers: kernel.registers(),
            local_bytes: kernel.local_bytes(),
            blocks_per_multiprocessor: kernel.max_active_blocks(),
        })
    }
}

/// A stream, and the events around a launch.
pub struct Timer {
    stream: Stream,
    start: Event,
    end: Event,
}

impl Timer {
    /// A stream of its own.
    ///
    /// # Errors
    /// A failure of the driver.
    pub fn new(gpu: &Gpu) -> Result<Self, GpuError> {
        let device = gpu.device();
        Ok(Self { stream: Stream::new(device)?, start: Event::new(device)?, end: Event::new(device)? })
    }

    /// Seconds between the launches before `work` and the end of what it launches; waits for that.
    ///
    /// # Errors
    /// What `work` failed at, or a failure of the device.
    pub fn time(&self, work: impl FnOnce(&Stream) -> Result<(), Error>) -> Result<f64, Error> {
        self.start.record(&self.stream)?;
        work(&self.stream)?;
        self.end.record(&self.stream)?;
        Ok(f64::from(self.end.elapsed_ms(&self.start)?) * 1e-3)
    }
}
