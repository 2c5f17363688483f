//! What ends a benchmark run early.

use core::fmt;
use std::io;
use std::path::PathBuf;

use super::implementation::Refusal;
use super::peer_process::PeerError;
use super::suite::suite_names;
use crate::error::CliError;

/// Why a run, or one implementation in it, came to nothing.
#[derive(Debug)]
#[non_exhaustive]
pub enum BenchError {
    /// No suite has this name.
    UnknownSuite {
        /// The name asked for.
        name: String,
    },
    /// No implementation has this name or starts with it.
    UnknownImplementation {
        /// The name asked for.
        name: String,
    },
    /// `--only` matches no workload of the suite.
    UnknownWorkload {
        /// The name asked for.
        name: String,
    },
    /// A suite's text does not parse.
    SuiteFile {
        /// The suite.
        suite: &'static str,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// A workload lacks a field, and the suite has no default for it.
    Incomplete {
        /// The suite.
        suite: &'static str,
        /// The field's name.
        field: &'static str,
    },
    /// A suite that multiplies files has none.
    NoMatrices {
        /// The folder given, if one was.
        folder: Option<PathBuf>,
    },
    /// Numbers of columns were asked for, and the suite's workloads have their own.
    FixedColumns {
        /// The suite.
        suite: &'static str,
    },
    /// A file or folder cannot be read or written.
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line of a record is not what this program writes.
    Record {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What was expected there.
        expected: &'static str,
    },
    /// An implementation refused the workload while preparing it.
    Refused(Refusal),
    /// A peer in a process of its own failed.
    Peer(PeerError),
    /// The device memory that all implementations share could not be had; the sentence says why.
    Shared {
        /// The library's own sentence.
        reason: String,
    },
    /// The library failed.
    Library(hopper_sparse::Error),
    /// A vendor's library returned an error code.
    #[cfg(feature = "gpu")]
    Vendor {
        /// The function called.
        call: &'static str,
        /// The library's status.
        status: u32,
    },
}

impl BenchError {
    /// The same once more, for another implementation that it concerns.
    pub fn again(&self) -> Self {
        match self {
            Self::Refused(refusal) => Self::Refused(refusal.clone()),
            error => Self::Shared { reason: error.to_string() },
        }
    }

    /// Whether the request itself was at fault: exit code 2, not 1.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::UnknownSuite { .. }
                | Self::UnknownImplementation { .. }
                | Self::UnknownWorkload { .. }
                | Self::NoMatrices { .. }
                | Self::FixedColumns { .. }
        )
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownSuite { name } => {
                let known: Vec<_> = suite_names().collect();
                write!(f, "there is no suite `{name}`; the suites are {}", known.join(", "))
            }
            Self::UnknownImplementation { name } => {
                write!(f, "no implementation's name starts with `{name}`; `bench list` shows them")
            }
            Self::UnknownWorkload { name } => {
                write!(f, "no workload of this suite has `{name}` in its name; `bench list` shows them")
            }
            Self::SuiteFile { suite, source } => write!(f, "the suite `{suite}` does not parse: {source}"),
            Self::Incomplete { suite, field } => {
                write!(f, "a workload of the suite `{suite}` lacks the field `{field}`, and no default gives it")
            }
            Self::NoMatrices { folder: None } => {
                f.write_str("this suite multiplies the files of a folder: name it with --matrices DIR")
            }
            Self::NoMatrices { folder: Some(folder) } => {
                write!(f, "{} holds no .mtx or .mtx.gz file", folder.display())
            }
            Self::FixedColumns { suite } => {
                write!(
                    f,
                    "each workload of the suite `{suite}` has its own number of columns: --cols is for suites of matrices"
                )
            }
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Record { path, line, expected } => {
                write!(f, "{}, line {line}: expected {expected}", path.display())
            }
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Peer(error) => error.fmt(f),
            Self::Shared { reason } => f.write_str(reason),
            Self::Library(error) => error.fmt(f),
            #[cfg(feature = "gpu")]
            Self::Vendor { call, status } => write!(f, "{call} returned status {status}"),
        }
    }
}

impl std::error::Error for BenchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::SuiteFile { source, .. } => Some(source),
            Self::File { source, .. } => Some(source),
            Self::Peer(error) => Some(error),
            Self::Library(error) => Some(error),
            _ => None,
        }
    }
}

impl From<BenchError> for CliError {
    fn from(error: BenchError) -> Self {
        if error.is_usage() { Self::usage(error) } else { Self::failure(error) }
    }
}

impl From<hopper_sparse::Error> for BenchError {
    fn from(error: hopper_sparse::Error) -> Self {
        Self::Library(error)
    }
}

impl From<Refusal> for BenchError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<PeerError> for BenchError {
    fn from(error: PeerError) -> Self {
        match error {
            PeerError::Refused { note } => Self::Refused(Refusal::Peer { note }),
            error => Self::Peer(error),
        }
    }
}
