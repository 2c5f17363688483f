//! Files: Matrix Market in and out, packed matrices as safetensors.

use core::fmt;

/// Why a file was refused, or what failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum IoError {}

impl fmt::Display for IoError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl std::error::Error for IoError {}
