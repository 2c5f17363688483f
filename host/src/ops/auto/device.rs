//! The device that is predicted for.

use core::fmt;

/// What of a device a prediction depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceDescription {
    /// Its name.
    pub name: String,
    /// Streaming multiprocessors.
    pub num_multiprocessors: u32,
    /// The size of the L2 cache, in bytes.
    pub l2_bytes: u64,
}

impl DeviceDescription {
    /// An H200, whose records the constants come from.
    pub fn h200() -> Self {
        Self { name: "NVIDIA H200".to_owned(), num_multiprocessors: 132, l2_bytes: 60 << 20 }
    }

    /// What may stay in L2 of an operand that is read again and again: half, since each half serves half of the multiprocessors.
    pub(super) fn resident_bytes(&self) -> f64 {
        self.l2_bytes as f64 / 2.0
    }

    /// Multiprocessors, of those that the rates were measured with.
    pub(super) fn share(&self) -> f64 {
        f64::from(self.num_multiprocessors.max(1)) / 132.0
    }
}

#[cfg(feature = "gpu")]
impl From<&crate::gpu::Device> for DeviceDescription {
    fn from(device: &crate::gpu::Device) -> Self {
        Self {
            name: device.name().to_owned(),
            num_multiprocessors: device.num_multiprocessors(),
            l2_bytes: device.l2_bytes(),
        }
    }
}

impl fmt::Display for DeviceDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} multiprocessors, {} MiB of L2", self.name, self.num_multiprocessors, self.l2_bytes >> 20)
    }
}
