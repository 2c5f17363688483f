//! What is measured: an implementation, and an implementation prepared for one workload.
//!
//! A new one is a file in `implementations/` and a line in the [registry](super::registry). The harness owns the operands
//! and the result (see [`Workspace`]): it poisons the result before a check and reads it afterwards, so an implementation
//! cannot vouch for itself, and all of them read and write the same memory. What runs in a process of its own is a
//! [`Peer`](super::peer::Peer) instead.

use core::fmt;

use hopper_sparse::formats::BlockShape;
use hopper_sparse::ops;
use hopper_sparse::ops::attention::AttentionError;
use hopper_sparse::ops::linear::LinearError;

use super::error::BenchError;
use super::operands::Operands;
use super::workspace::Workspace;

/// Where an implementation runs, and so how it is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the host: wall-clock time.
    Cpu,
    /// On the device: the time between two events of its stream.
    Gpu,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        })
    }
}

/// A way to compute what the operands `O` are for.
pub trait Implementation<O: Operands>: Sync {
    /// A path, from the general to the particular: `ours/spmm/bcsr`, `vendor/gemm/cublaslt`.
    fn name(&self) -> &'static str;

    /// Where it runs.
    fn place(&self) -> Place;

    /// Whether it can serve `problem`, decided without a device and without the data.
    ///
    /// # Errors
    /// The reason why not.
    fn supports(&self, problem: &O::Problem) -> Result<(), Refusal>;

    /// Does all that need be done once for a matrix: conversion, upload, descriptors, choice of algorithm.
    ///
    /// # Errors
    /// [`BenchError::Refused`] where the data or the machine turn out not to suit; else what failed.
    fn prepare<'a>(&self, workspace: &'a Workspace<'a, O>) -> Result<Box<dyn Prepared + 'a>, BenchError>;
}

/// A workload ready to run, any number of times.
pub trait Prepared {
    /// Computes the result of the workspace's set number `set` from its inputs. On the GPU it only enqueues the work.
    ///
    /// # Errors
    /// What failed.
    fn launch(&mut self, set: usize) -> Result<(), BenchError>;

    /// Called once, when the result has been found right and before the samples. An implementation that stands for the
    /// cost of other values puts them in place here; what it computes from then on is not looked at.
    ///
    /// # Errors
    /// What failed.
    fn begin_timing(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    /// The floating-point operations that it carries out, a multiply-add being two, with the zeros that it stores.
    fn flops(&self) -> u64;

    /// The bytes that it must move at least: the operands as it stores them and the result, once each.
    fn bytes(&self) -> u64;

    /// The bytes of the weights as it stores them, where the workload is a linear layer.
    fn weight_bytes(&self) -> Option<u64> {
        None
    }

    /// The bytes that its tiles ask of L2 together, where that is what limits it.
    fn l2_bytes(&self) -> Option<u64> {
        None
    }

    /// What was chosen in preparation, for the report; empty where there was nothing to choose.
    fn choice(&self) -> String {
        String::new()
    }
}

/// Why an implementation does not take a workload.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// The library's own reason.
    Ours(ops::Refusal),
    /// The library's own reason, of attention.
    Attention(AttentionError),
    /// The library's own reason, of linear layers.
    Linear(LinearError),
    /// It takes every block of keys, and the workload has lists of them.
    NoLists,
    /// It takes lists of blocks of keys, and the workload has none.
    NotListed,
    /// It takes two weights of every four, and W's mask is another.
    NotTwoOfFour,
    /// It multiplies blocks, and A has none.
    NotBlocks,
    /// It takes whole blocks only, and A's last ones reach past the matrix.
    Ragged {
        /// The shape of a block.
        block: BlockShape,
    },
    /// A size is past what its indices hold.
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The size found.
        found: u64,
        /// The largest that is taken.
        limit: u64,
    },
    /// The dynamic library is not on this machine.
    LibraryMissing {
        /// The library.
        library: &'static str,
    },
    /// The library on this machine is too old: it lacks a function.
    FunctionMissing {
        /// The library.
        library: &'static str,
        /// The function.
        function: &'static str,
    },
    /// The vendor's library says that it does not support this product.
    VendorUnsupported {
        /// The function that said so.
        call: &'static str,
    },
    /// A peer in a process of its own says so.
    Peer {
        /// Its own sentence.
        note: String,
    },
    /// It computes in a process of its own, which replays no graph of this one's.
    NoGraphs,
    /// Its launches cannot be captured in a graph; the sentence says why.
    NotCaptured {
        /// What failed, with its code.
        reason: String,
    },
    /// There is no device to run on; the sentence says why.
    NoDevice {
        /// The device layer's own sentence.
        reason: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(refusal) => refusal.fmt(f),
            Self::Attention(error) => error.fmt(f),
            Self::Linear(error) => error.fmt(f),
            Self::NoLists => f.write_str("it takes every block of keys, and the workload has lists of them"),
            Self::NotListed => f.write_str("it takes lists of blocks of keys, and the workload has none"),
            Self::NotTwoOfFour => {
                f.write_str("it multiplies matrices with two weights of every four alone, and W has another mask")
            }
            Self::NotBlocks => f.write_str("it multiplies blocks, and A is not made of blocks"),
            Self::Ragged { block } => write!(f, "it takes whole blocks only, and {block} does not divide A"),
            Self::TooLarge { what, found, limit } => write!(f, "{what} is {found}, but at most {limit} is taken"),
            Self::LibraryMissing { library } => {
                write!(f, "{library} was not found: put its folder into LD_LIBRARY_PATH")
            }
            Self::FunctionMissing { library, function } => write!(f, "this machine's {library} has no {function}"),
            Self::VendorUnsupported { call } => write!(f, "{call} does not support this product"),
            Self::NoGraphs => {
                f.write_str("it runs in a process of its own, whose launches this one cannot replay from a graph")
            }
            Self::NotCaptured { reason } => write!(f, "its launches cannot be captured in a graph: {reason}"),
            Self::Peer { note: reason } | Self::NoDevice { reason } => f.write_str(reason),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<AttentionError> for Refusal {
    fn from(error: AttentionError) -> Self {
        Self::Attention(error)
    }
}
