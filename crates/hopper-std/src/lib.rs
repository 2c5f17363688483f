//! What a Hopper kernel author imports: PTX instructions and a typed machine over them.
//!
//! Two layers, one direction:
//!
//! - [`ptx`]: one wrapper, one instruction. All of `asm!` is here, and all of it is `unsafe`.
//! - [`sm90`]: tiles, barriers, pipelines, accumulators and roles. Kernels are written with these; what the types can
//!   rule out, they rule out, and what they cannot is in the `# Safety` section of what is left unsafe.
//!
//! Names that exist in rust-cuda's `cuda_std` are kept: [`thread::thread_idx_x`], [`thread::sync_threads`],
//! [`kernel`].
//!
//! The crate builds for `nvptx64-nvidia-cuda` and for the CPU. On the CPU all the arithmetic (descriptors, swizzles,
//! fragment maps, phases, specifications, conversions) is there and tested. An instruction that only a GPU has panics
//! there; with the feature `sim` it goes to the machine (`sim::Machine`) that is installed on the thread, together with
//! the line of the kernel that executes it. hopper-sim is such a machine, and runs whole launches.
#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(asm_experimental_arch, stdarch_nvptx))]

// The macros of hopper-macros name this crate from outside; let them do so from inside, too.
extern crate self as hopper_std;

pub mod global;
pub mod half;
pub mod hint;
#[cfg(target_arch = "nvptx64")]
mod panic;
pub mod ptx;
#[cfg(all(feature = "sim", not(target_arch = "nvptx64")))]
pub mod sim;
pub mod sm90;
pub mod spec;
pub mod thread;
pub mod warp;

pub use spec::KernelSpec;

pub use hopper_macros::{SharedLayout, kernel};
pub use seq_macro::seq;
