//! What the driver or the device refuses or fails at.

use core::fmt;

use cuda_loader::{LoadError, error_name, error_text};
use cust::error::{CudaError, CudaResult};

use crate::tensor_map::TensorMapError;

/// `CUDA_ERROR_NO_DEVICE`.
pub(super) const NO_DEVICE: u32 = 100;

/// What the driver or the device refused or failed at.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum GpuError {
    /// There is no usable driver.
    NoDriver {
        /// Why not.
        reason: LoadError,
    },
    /// There is a driver, but no device.
    NoDevice,
    /// There is no device of that index.
    DeviceIndex {
        /// The index asked for, from 0.
        index: u32,
        /// The number of devices.
        count: u32,
    },
    /// The device is not of compute capability 9.0, which is what the kernels are compiled for.
    NotHopper {
        /// The device's name, as the driver gives it.
        name: String,
        /// The device's index, from 0.
        index: u32,
        /// Its compute capability, before the dot.
        major: u32,
        /// Its compute capability, after the dot.
        minor: u32,
    },
    /// The device has not enough free memory.
    OutOfMemory {
        /// The bytes that one allocation wanted.
        wanted_bytes: u64,
        /// The bytes that were free then, in pieces of any size.
        free_bytes: u64,
    },
    /// A function of the driver failed.
    Driver {
        /// The function.
        call: &'static str,
        /// The driver's code.
        code: u32,
    },
    /// The driver did not accept a kernel's PTX.
    Ptx {
        /// The kernel.
        kernel: &'static str,
        /// The driver's code.
        code: u32,
        /// What its compiler wrote; may be empty.
        log: String,
    },
    /// No kernel of that name is part of this library.
    NoSuchKernel {
        /// The name asked for.
        kernel: &'static str,
    },
    /// The PTX has no entry of the name that the specification states.
    NoSuchEntry {
        /// The name.
        kernel: &'static str,
    },
    /// The compiled kernel does not keep its specification.
    SpecMismatch {
        /// The kernel.
        kernel: &'static str,
        /// The property that differs.
        property: SpecProperty,
        /// What the specification states.
        stated: u32,
        /// What the compiled kernel allows.
        compiled: u32,
    },
    /// A launch was refused before it reached the driver.
    Refused {
        /// The kernel.
        kernel: &'static str,
        /// Why.
        reason: LaunchRefusal,
    },
    /// The driver did not launch a kernel.
    Launch {
        /// The kernel.
        kernel: &'static str,
        /// Blocks along x, y and z.
        grid: [u32; 3],
        /// The driver's code.
        code: u32,
    },
    /// A tensor map that the hardware cannot read by.
    TensorMap(TensorMapError),
    /// Host and device memory of one copy differ in length.
    Length {
        /// The elements on the device.
        device: u64,
        /// The elements on the host.
        host: u64,
    },
    /// Memory ends before the last element of the matrix that it shall hold.
    TooShort {
        /// The elements that there are.
        found: u64,
        /// The elements from the matrix's first to its last.
        needed: u64,
    },
    /// Host and device matrix of one copy differ in shape.
    Shape {
        /// Rows and columns on the device.
        device: [u64; 2],
        /// Rows and columns on the host.
        host: [u64; 2],
    },
    /// Host and device matrix of one copy differ in layout.
    Layout,
    /// The leading dimension of a matrix is less than the elements of one of its rows (row-major) or columns.
    LeadingDimension {
        /// The leading dimension.
        found: u64,
        /// The least possible.
        least: u64,
    },
}

/// A property of a kernel that is both stated in its specification and known of the compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecProperty {
    /// Threads of a block: what is compiled is the most that registers allow.
    Threads,
    /// Blocks that fit a multiprocessor at once.
    BlocksPerMultiprocessor,
    /// Shared memory of a block, static and dynamic together, in bytes; what is compiled is the hardware's limit.
    SharedBytes,
    /// The specification under which the same kernel was loaded first.
    Specification,
}

/// Why a launch was refused before it reached the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchRefusal {
    /// A grid has at least one block along each axis, and at most so many.
    GridSize {
        /// `x`, `y` or `z`.
        axis: char,
        /// The blocks asked for.
        blocks: u32,
        /// The most there may be.
        most: u32,
    },
    /// Blocks along x do not fill whole clusters.
    Cluster {
        /// The blocks along x.
        blocks: u32,
        /// The blocks of a cluster.
        cluster: u32,
    },
    /// The kernel takes another number of parameters.
    ParamCount {
        /// What the kernel takes.
        expected: usize,
        /// What it was given.
        found: usize,
    },
    /// A parameter has another size.
    ParamSize {
        /// Its position, from 0.
        index: usize,
        /// What the kernel takes, in bytes.
        expected: usize,
        /// What it was given, in bytes.
        found: usize,
    },
}

impl GpuError {
    /// Whether the fault has made the device's context useless: every later call on it fails in the same way, until
    /// all that holds the [`Device`](super::Device) is dropped, or the process ends.
    ///
    /// An illegal address or a trap is such a fault. A refused launch, or memory that does not suffice, is not.
    pub fn loses_context(&self) -> bool {
        match *self {
            Self::Driver { code, .. } | Self::Launch { code, .. } => code_loses_context(code),
            _ => false,
        }
    }
}

/// The codes that `cuda.h` describes as leaving the process in an inconsistent state.
fn code_loses_context(code: u32) -> bool {
    // ECC_UNCORRECTABLE, NVLINK_UNCORRECTABLE, CONTAINED; then ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, CONTEXT_IS_DESTROYED,
    // ASSERT, HARDWARE_STACK_ERROR to LAUNCH_FAILED, and TENSOR_MEMORY_LEAK.
    matches!(code, 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721)
}

impl fmt::Display for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDriver { reason } => write!(f, "no GPU can be used, because {reason}"),
            Self::NoDevice => f.write_str("no GPU can be used, because the CUDA driver finds no device"),
            Self::DeviceIndex { index, count } => match count {
                1 => write!(f, "there is no device {index}: the driver knows one device, of index 0"),
                _ => write!(f, "there is no device {index}: the driver knows {count} devices, counted from 0"),
            },
            Self::NotHopper { name, index, major, minor } => write!(
                f,
                "device {index} ({name}) has compute capability {major}.{minor}, but the kernels run on 9.0 (Hopper) only"
            ),
            Self::OutOfMemory { wanted_bytes, free_bytes } => write!(
                f,
                "the device has not enough memory: {wanted_bytes} bytes are wanted in one piece, and {free_bytes} are free"
            ),
            Self::Driver { call, code } => {
                write!(f, "`{call}` failed with {}", Code(*code))
            }
            Self::Ptx { kernel, code, log } => {
                write!(f, "the driver did not accept the PTX of `{kernel}`: {}", Code(*code))?;
                match log.trim() {
                    "" => Ok(()),
                    log => write!(f, "; its compiler says: {log}"),
                }
            }
            Self::NoSuchKernel { kernel } => write!(f, "this library was built without a kernel `{kernel}`"),
            Self::NoSuchEntry { kernel } => write!(f, "the PTX has no entry `{kernel}`"),
            Self::SpecMismatch { kernel, property, stated, compiled } => {
                property.fmt_mismatch(f, kernel, *stated, *compiled)
            }
            Self::Refused { kernel, reason } => write!(f, "`{kernel}` cannot be launched: {reason}"),
            Self::Launch { kernel, grid: [x, y, z], code } => {
                write!(f, "the launch of `{kernel}` with a grid of {x} x {y} x {z} blocks failed with {}", Code(*code))
            }
            Self::TensorMap(error) => error.fmt(f),
            Self::Length { device, host } => {
                write!(f, "{host} elements on the host cannot be copied to or from {device} on the device")
            }
            Self::TooShort { found, needed } => {
                write!(f, "{found} elements cannot hold a matrix that reaches over {needed}")
            }
            Self::Shape { device: [rows, cols], host: [host_rows, host_cols] } => write!(
                f,
                "a {host_rows} x {host_cols} matrix on the host cannot be copied to or from one of {rows} x {cols} on the \
                device"
            ),
            Self::Layout => f.write_str("the matrices on the host and on the device differ in layout"),
            Self::LeadingDimension { found, least } => {
                write!(f, "the leading dimension is {found}, but must be {least} or more")
            }
        }
    }
}

impl SpecProperty {
    /// The sentence of a [`GpuError::SpecMismatch`].
    fn fmt_mismatch(self, f: &mut fmt::Formatter<'_>, kernel: &str, stated: u32, compiled: u32) -> fmt::Result {
        match self {
            Self::Threads => write!(
                f,
                "`{kernel}` is specified with {stated} threads a block, but was compiled for at most {compiled}"
            ),
            Self::BlocksPerMultiprocessor => write!(
                f,
                "`{kernel}` is specified with {stated} blocks on a multiprocessor at once, but only {compiled} fit"
            ),
            Self::SharedBytes => {
                write!(f, "`{kernel}` uses {stated} bytes of shared memory a block, but the hardware has {compiled}")
            }
            Self::Specification => write!(
                f,
                "`{kernel}` was loaded before with another specification ({compiled} threads a block, now {stated})"
            ),
        }
    }
}

impl std::error::Error for GpuError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoDriver { reason } => Some(reason),
            Self::TensorMap(error) => Some(error),
            _ => None,
        }
    }
}

impl From<TensorMapError> for GpuError {
    fn from(error: TensorMapError) -> Self {
        Self::TensorMap(error)
    }
}

impl fmt::Display for LaunchRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::GridSize { axis, blocks, most } => {
                write!(f, "its grid has {blocks} blocks along {axis}, but 1 to {most} are possible")
            }
            Self::Cluster { blocks, cluster } => {
                write!(f, "its grid has {blocks} blocks along x, which is no multiple of its cluster of {cluster}")
            }
            Self::ParamCount { expected, found } => write!(f, "it takes {expected} parameters, but {found} are given"),
            Self::ParamSize { index, expected, found } => {
                write!(f, "its parameter {index} has {expected} bytes, but {found} are given")
            }
        }
    }
}

/// A code with the driver's name and description of it, and what it means for the caller.
struct Code(u32);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}: {})", error_name(self.0), self.0, error_text(self.0))?;
        if code_loses_context(self.0) {
            f.write_str(", perhaps in an earlier launch, and the device cannot be used any more by this process")?;
        }
        Ok(())
    }
}

/// The outcome of a call of the driver.
pub(super) fn check(call: &'static str, code: u32) -> Result<(), GpuError> {
    if code == cuda_loader::SUCCESS { Ok(()) } else { Err(GpuError::Driver { call, code }) }
}

/// The outcome of a call through cust.
pub(super) fn check_cust<T>(call: &'static str, result: CudaResult<T>) -> Result<T, GpuError> {
    result.map_err(|error: CudaError| GpuError::Driver { call, code: error as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn says(error: GpuError, sentence: &str) {
        assert_eq!(error.to_string(), sentence);
    }

    #[test]
    fn devices_are_refused_with_the_numbers() {
        says(
            GpuError::DeviceIndex { index: 2, count: 1 },
            "there is no device 2: the driver knows one device, of index 0",
        );
        says(
            GpuError::DeviceIndex { index: 9, count: 8 },
            "there is no device 9: the driver knows 8 devices, counted from 0",
        );
        says(
            GpuError::NotHopper { name: "NVIDIA A100".to_owned(), index: 0, major: 8, minor: 0 },
            "device 0 (NVIDIA A100) has compute capability 8.0, but the kernels run on 9.0 (Hopper) only",
        );
    }

    #[test]
    fn memory_is_refused_with_bytes_wanted_and_free() {
        says(
            GpuError::OutOfMemory { wanted_bytes: 200, free_bytes: 100 },
            "the device has not enough memory: 200 bytes are wanted in one piece, and 100 are free",
        );
    }

    #[test]
    fn a_mismatch_names_kernel_property_and_both_numbers() {
        let mismatch =
            |property| GpuError::SpecMismatch { kernel: "k", property, stated: 384, compiled: 256 }.to_string();
        assert_eq!(
            mismatch(SpecProperty::Threads),
            "`k` is specified with 384 threads a block, but was compiled for at most 256"
        );
        for property in [SpecProperty::BlocksPerMultiprocessor, SpecProperty::SharedBytes, SpecProperty::Specification]
        {
            let sentence = mismatch(property);
            assert!(sentence.contains("`k`") && sentence.contains("384") && sentence.contains("256"), "{sentence}");
        }
    }

    #[test]
    fn launches_are_refused_with_the_reason() {
        let refused = |reason| GpuError::Refused { kernel: "k", reason };
        says(
            refused(LaunchRefusal::Cluster { blocks: 7, cluster: 2 }),
            "`k` cannot be launched: its grid has 7 blocks along x, which is no multiple of its cluster of 2",
        );
        says(
            refused(LaunchRefusal::GridSize { axis: 'y', blocks: 0, most: 65_535 }),
            "`k` cannot be launched: its grid has 0 blocks along y, but 1 to 65535 are possible",
        );
        says(
            refused(LaunchRefusal::ParamSize { index: 1, expected: 8, found: 4 }),
            "`k` cannot be launched: its parameter 1 has 8 bytes, but 4 are given",
        );
    }

    #[test]
    fn only_faults_lose_the_context() {
        let driver = |code| GpuError::Driver { call: "cuStreamSynchronize", code };
        assert!(driver(700).loses_context(), "an illegal address");
        assert!(driver(715).loses_context(), "an illegal instruction");
        assert!(!driver(1).loses_context(), "an invalid value");
        assert!(!driver(701).loses_context(), "too many resources asked for");
        assert!(driver(700).to_string().contains("cannot be used any more"), "{}", driver(700));
        assert!(!driver(1).to_string().contains("cannot be used any more"), "{}", driver(1));
    }

    #[test]
    fn ptx_that_is_refused_carries_the_compilers_words() {
        let ptx = |log: &str| GpuError::Ptx { kernel: "k", code: 218, log: log.to_owned() }.to_string();
        assert!(ptx("line 3: syntax error\n").ends_with("; its compiler says: line 3: syntax error"));
        assert!(!ptx("").contains("compiler"));
    }
}
