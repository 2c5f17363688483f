//! The crate's error: one variant per area, each with its own small enum.

use core::fmt;

use crate::formats::FormatError;
use crate::generate::GeneratorError;
use crate::io::IoError;
use crate::ops::PlanError;
use crate::ops::attention::AttentionError;
use crate::ops::attention::blocks::KeyListError;
use crate::ops::linear::LinearError;
use crate::prune::PruneError;

/// Everything that this library can refuse or fail at.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A matrix does not have the structure that its format demands.
    Format(FormatError),
    /// A file could not be read or written.
    Io(IoError),
    /// A generated matrix was specified badly, or does not fit memory.
    Generate(GeneratorError),
    /// Weights could not be pruned as asked.
    Prune(PruneError),
    /// A problem was posed that no plan serves.
    Plan(PlanError),
    /// A problem of attention that no plan serves, or a tensor that is not the problem's.
    Attention(AttentionError),
    /// A linear layer that no plan serves, or an operand that is not the plan's.
    Linear(LinearError),
    /// The device, its driver or its memory.
    #[cfg(feature = "gpu")]
    Gpu(crate::gpu::GpuError),
    /// The simulator.
    #[cfg(feature = "sim")]
    Sim(crate::sim::SimError),
}

/// [`core::result::Result`] with this crate's [`Error`].
pub type Result<T, E = Error> = core::result::Result<T, E>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
            Self::Generate(error) => error.fmt(f),
            Self::Prune(error) => error.fmt(f),
            Self::Plan(error) => error.fmt(f),
            Self::Attention(error) => error.fmt(f),
            Self::Linear(error) => error.fmt(f),
            #[cfg(feature = "gpu")]
            Self::Gpu(error) => error.fmt(f),
            #[cfg(feature = "sim")]
            Self::Sim(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Format(error) => error.source(),
            Self::Io(error) => error.source(),
            Self::Generate(error) => error.source(),
            Self::Prune(error) => error.source(),
            Self::Plan(error) => error.source(),
            Self::Attention(error) => error.source(),
            Self::Linear(error) => error.source(),
            #[cfg(feature = "gpu")]
            Self::Gpu(error) => error.source(),
            #[cfg(feature = "sim")]
            Self::Sim(error) => error.source(),
        }
    }
}

impl From<FormatError> for Error {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}

impl From<IoError> for Error {
    fn from(error: IoError) -> Self {
        Self::Io(error)
    }
}

impl From<GeneratorError> for Error {
    fn from(error: GeneratorError) -> Self {
        Self::Generate(error)
    }
}

impl From<PruneError> for Error {
    fn from(error: PruneError) -> Self {
        Self::Prune(error)
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

impl From<LinearError> for Error {
    fn from(error: LinearError) -> Self {
        Self::Linear(error)
    }
}

impl From<AttentionError> for Error {
    fn from(error: AttentionError) -> Self {
        Self::Attention(error)
    }
}

impl From<KeyListError> for Error {
    fn from(error: KeyListError) -> Self {
        Self::Attention(error.into())
    }
}

#[cfg(feature = "gpu")]
impl From<crate::gpu::GpuError> for Error {
    fn from(error: crate::gpu::GpuError) -> Self {
        Self::Gpu(error)
    }
}

#[cfg(feature = "sim")]
impl From<crate::sim::SimError> for Error {
    fn from(error: crate::sim::SimError) -> Self {
        Self::Sim(error)
    }
}
