//! Sparse matrix products and attention for NVIDIA Hopper, with kernels written in Rust.
//!
//! Data flows one way: a file is read into a [format](formats), a problem is [planned](ops), the plan is prepared
//! (device memory, tensor maps), and what is prepared is launched, many times.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod cpu;
pub mod element;
pub mod error;
pub mod formats;
pub mod generate;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod io;
mod memory;
pub mod ops;
pub mod prune;
pub mod reference;
#[cfg(feature = "sim")]
pub mod sim;
#[cfg(any(feature = "gpu", feature = "sim"))]
#[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "only `gpu` describes more than the products need"))]
mod tensor_map;

pub use element::{Accumulator, Dtype, Element, HalfElement};
pub use error::{Error, Result};
pub use half::{bf16, f16};
