//! The device: found, described, and handed its work.

use core::fmt;

/// What the driver or the device refused or failed at.
#[derive(Debug)]
#[non_exhaustive]
pub enum GpuError {}

impl fmt::Display for GpuError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl std::error::Error for GpuError {}
