//! Compiles a Rust kernel crate to PTX for sm_90a.
#![warn(missing_docs)]

mod compile;
mod error;
pub mod ptx;
mod toolchain;

pub use compile::{Builder, REVISION, TARGET_CPU};
pub use error::Error;
pub use toolchain::Toolchain;
