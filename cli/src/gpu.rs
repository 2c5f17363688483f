//! The GPU, as the verbs need it.

use hopper_sparse::gpu::Device;
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
