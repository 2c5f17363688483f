//! Loads the CUDA driver at run time, for programs that must also start without it.
//!
//! [cust](https://docs.rs/cust) is linked with `-lcuda`: a program that uses it neither builds where CUDA is not
//! installed nor starts where there is no driver. This crate removes both limits. Its build script puts an empty
//! `libcuda.a` on the link path, and it defines every driver function that cust calls. Each definition forwards to
//! `libcuda.so.1`, opened on first use, or returns [`NOT_INITIALIZED`] where that library or that function is missing.
//!
//! It also offers the same functions with the driver's own return code ([`driver`]), and those that cust lacks
//! ([`driver::cuLaunchKernelEx`], [`driver::cuTensorMapEncodeTiled`] and others).
//!
//! # For a package outside this workspace
//!
//! cust_raw's build script stops where it finds no CUDA installation, before this crate has a say. An empty one
//! satisfies it. This workspace names its own in `.cargo/config.toml`, but cargo does not read that file of a
//! dependency: copy these lines into yours, with a folder that holds an empty `lib64/`, or set the variable in
//! the environment.
//!
//! ```toml
//! [env]
//! CUDA_LIBRARY_PATH = { value = "no-cuda", relative = true }
//! ```
//!
//! # Example
//!
//! ```
//! match cuda_loader::driver_present() {
//!     Ok(version) => println!("driver for CUDA {version}"),
//!     Err(reason) => println!("no GPU: {reason}"),
//! }
//! ```

pub mod driver;
mod library;
mod table;
pub mod types;

pub use driver::{error_name, error_text};
pub use library::{DriverVersion, LIBRARY_NAME, LoadError, driver_present};

/// Success, as the driver numbers it.
pub const SUCCESS: u32 = 0;

/// `CUDA_ERROR_NOT_INITIALIZED`: what every function returns where there is no driver.
pub const NOT_INITIALIZED: u32 = 3;
