//! What a Hopper kernel author imports: PTX instructions and a typed machine over them.
#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(asm_experimental_arch, stdarch_nvptx))]

#[cfg(target_arch = "nvptx64")]
mod panic;
pub mod spec;

pub use hopper_macros::{SharedLayout, kernel};
pub use spec::KernelSpec;
