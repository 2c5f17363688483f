//! Compiles a Rust kernel crate to PTX for sm_90a.
//!
//! In a build script, [`compile`] is all that is needed: it finds a device toolchain, compiles the kernel crate with
//! rustc's own NVPTX backend, writes the launch bounds that `#[kernel]` states, and leaves a table of PTX texts for the
//! program to include. A crate that keeps its PTX in the repository uses [`embed`] instead, and its users need no device
//! toolchain. [`ptxas::assemble`] reports on a kernel, and its report refuses spills, local memory and broken matrix pipelines.

mod compile;
mod embed;
mod error;
pub mod kept;
mod messages;
pub mod ptx;
pub mod ptxas;
pub mod sources;
mod toolchain;
pub mod tools;

pub use compile::{Builder, REVISION, TARGET_CPU};
pub use embed::{compile, embed, embed_all};
pub use error::Error;
pub use toolchain::Toolchain;
