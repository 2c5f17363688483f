//! The product on a GPU.

use hopper_sparse::gpu::Device;

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
}
