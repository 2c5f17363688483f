//! What can go wrong, in sentences.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::{fmt, io};

/// How to get a device toolchain; the end of every sentence about a missing one.
const HOW_TO_GET_ONE: &str = "Install one with `rustup toolchain install 1.96.0 --component rust-src`, or on Debian \
    with `apt-get install rustc-web rust-web-src`, or name a rustc 1.96 or newer that has its library sources in \
    HOPPER_DEVICE_RUSTC";

/// Why a kernel crate could not be compiled, embedded or checked.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No rustc was found that can compile device code.
    NoToolchain,
    /// A rustc is older than 1.96.
    OldRustc {
        /// The compiler.
        rustc: PathBuf,
        /// Its version: major, minor, patch.
        found: (u32, u32, u32),
    },
    /// A rustc lacks the sources of its own `core`.
    NoSources {
        /// The compiler.
        rustc: PathBuf,
        /// Where the sources should be.
        expected: PathBuf,
    },
    /// A program did not answer as expected when asked for its version or its folders.
    BadAnswer {
        /// The program.
        program: PathBuf,
    },
    /// A program could not be started.
    Start {
        /// The program.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The nested cargo failed; its own messages stand before this one.
    CargoFailed {
        /// The kernel crate.
        crate_dir: PathBuf,
        /// How cargo ended.
        status: ExitStatus,
    },
    /// A file or folder could not be read or written.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The module has no entry.
    NoKernels {
        /// The kernel crate.
        crate_dir: PathBuf,
    },
    /// The PTX text ends inside of an item.
    Unfinished {
        /// The line at which the item starts.
        line: usize,
    },
    /// The PTX text has an item of a kind that the splitter does not know.
    UnknownItem {
        /// The line at which the item starts.
        line: usize,
    },
    /// Two functions or variables, through which the kernel goes round in a circle.
    Circle {
        /// The item that is reached again.
        symbol: String,
    },
    /// A function is called but not defined.
    Undefined {
        /// The kernel that reaches it.
        kernel: String,
        /// The function.
        symbol: String,
    },
    /// An entry without a record: it was not made by `#[kernel]`.
    NoRecord {
        /// The entry.
        kernel: String,
    },
    /// A record without an entry.
    NoEntry {
        /// The kernel named by the record.
        kernel: String,
    },
    /// A record that is not one.
    BadRecord {
        /// The kernel named by the record.
        kernel: String,
    },
    /// The kept PTX does not come from the present sources.
    Stale {
        /// The folder of kept PTX.
        kept: PathBuf,
        /// The present sources' hash.
        sources: String,
    },
    /// The kept PTX is stale and there is no toolchain that could replace it.
    StaleNoToolchain {
        /// The folder of kept PTX.
        kept: PathBuf,
    },
    /// `HOPPER_KERNELS` is neither `source` nor `kept`.
    BadChoice,
    /// The sources changed while they were compiled.
    ChangedMeanwhile,
    /// An environment variable that cargo sets for build scripts is missing.
    NotABuildScript {
        /// The variable.
        variable: &'static str,
    },
    /// A program of the CUDA toolkit was not found.
    NoTool {
        /// The program's name.
        tool: &'static str,
    },
    /// ptxas refused a kernel.
    PtxasFailed {
        /// The kernel.
        kernel: String,
        /// What ptxas printed.
        output: String,
    },
    /// A kernel spills registers.
    Spills {
        /// The kernel.
        kernel: String,
        /// Bytes of spill stores.
        store_bytes: u32,
        /// Bytes of spill loads.
        load_bytes: u32,
    },
    /// A kernel uses local memory.
    LocalMemory {
        /// The kernel.
        kernel: String,
        /// Bytes of the stack frame.
        stack_bytes: u32,
    },
    /// ptxas had to change a kernel's matrix instructions or ignored its register split (messages C7500 to C7599).
    Complaint {
        /// The kernel.
        kernel: String,
        /// The message.
        message: String,
    },
}

impl Error {
    /// Makes the `map_err` argument for operations on `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoToolchain => {
                write!(f, "No device toolchain: kernels need a rustc 1.96 or newer with its library sources. ")?;
                write!(f, "{HOW_TO_GET_ONE}.")
            }
            Self::OldRustc { rustc, found: (major, minor, patch) } => {
                write!(f, "{} is rustc {major}.{minor}.{patch}; kernels need 1.96 or newer. ", rustc.display())?;
                write!(f, "{HOW_TO_GET_ONE}.")
            }
            Self::NoSources { rustc, expected } => {
                write!(f, "{} has no library sources: there is no {}. ", rustc.display(), expected.display())?;
                write!(f, "{HOW_TO_GET_ONE}.")
            }
            Self::BadAnswer { program } => {
                write!(f, "{} does not answer as rustc does.", program.display())
            }
            Self::Start { program, source } => write!(f, "{} could not be started: {source}.", program.display()),
            Self::CargoFailed { crate_dir, status } => {
                write!(f, "The kernels in {} did not compile for the device ({status}).", crate_dir.display())
            }
            Self::Io { path, source } => write!(f, "{}: {source}.", path.display()),
            Self::NoKernels { crate_dir } => {
                write!(f, "{} exports no kernel: mark one with #[kernel(...)].", crate_dir.display())
            }
            Self::Unfinished { line } => write!(f, "The PTX ends inside of the item that starts at line {line}."),
            Self::UnknownItem { line } => write!(f, "The PTX item at line {line} is no function and no variable."),
            Self::Circle { symbol } => {
                write!(f, "The device function or variable {symbol} refers to itself, directly or through others.")
            }
            Self::Undefined { kernel, symbol } => write!(f, "Kernel {kernel} calls {symbol}, which has no body."),
            Self::NoRecord { kernel } => {
                write!(f, "The entry {kernel} has no launch specification: export kernels with #[kernel(...)] only.")
            }
            Self::NoEntry { kernel } => write!(f, "There is a launch specification for {kernel}, but no such entry."),
            Self::BadRecord { kernel } => {
                write!(f, "The launch specification of {kernel} is unreadable: hopper-std and hopper-builder differ.")
            }
            Self::Stale { kept, sources } => write!(
                f,
                "The kept PTX in {} does not come from the present sources (sha256:{sources}); `cargo xtask ptx` \
                 renews it.",
                kept.display()
            ),
            Self::StaleNoToolchain { kept } => {
                write!(f, "The kept PTX in {} does not come from the present sources, ", kept.display())?;
                write!(f, "and there is no device toolchain to compile them. {HOW_TO_GET_ONE}.")
            }
            Self::BadChoice => write!(f, "HOPPER_KERNELS is `source`, `kept` or unset."),
            Self::ChangedMeanwhile => write!(f, "The kernels' sources changed while they were compiled: start again."),
            Self::NotABuildScript { variable } => {
                write!(f, "{variable} is not set: call this from a build script.")
            }
            Self::NoTool { tool } => write!(
                f,
                "{tool} was not found on PATH or in .venv: `cargo xtask tools` installs it{}.",
                if *tool == "ptxas" { ", or name it in PTXAS" } else { "" }
            ),
            Self::PtxasFailed { kernel, output } => write!(f, "ptxas refuses {kernel}:\n{}", output.trim_end()),
            Self::Spills { kernel, store_bytes, load_bytes } => write!(
                f,
                "Kernel {kernel} spills registers: {store_bytes} bytes of stores, {load_bytes} bytes of loads."
            ),
            Self::LocalMemory { kernel, stack_bytes } => {
                write!(f, "Kernel {kernel} uses {stack_bytes} bytes of local memory a thread; it must use none.")
            }
            Self::Complaint { kernel, message } => write!(f, "ptxas complains of {kernel}: {message}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Start { source, .. } | Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
