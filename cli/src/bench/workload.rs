//! Workloads: what is computed, and which implementations are compared on it.

use core::fmt;
use std::path::PathBuf;

use hopper_sparse::Dtype;
use hopper_sparse::formats::{BlockShape, Layout};
use hopper_sparse::generate::Lookalike;

use super::attention::AttentionWorkload;
use super::linear::LinearWorkload;

/// What an implementation computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// C = A B with A sparse.
    Spmm,
    /// O = softmax(Q K^T) V.
    Attention,
    /// Y = X W^T with W sparse.
    Linear,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spmm => "spmm",
            Self::Attention => "attention",
            Self::Linear => "linear",
        })
    }
}

/// Where A comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Dense blocks of this shape, a part `density` of all, at random places.
    Blocks {
        /// The shape of a block.
        block: BlockShape,
        /// Stored blocks over all blocks, 0 to 1.
        density: f64,
    },
    /// Single entries, a part `density` of all, at random places.
    Uniform {
        /// Entries over all elements, 0 to 1.
        density: f64,
    },
    /// A Matrix Market file; `m` and `k` are its own.
    File(PathBuf),
    /// A look-alike; `m` and `k` are its own.
    Lookalike(&'static Lookalike),
}

/// One problem and who solves it.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Unique in its suite.
    pub name: String,
    /// What the matrix comes from, where that is known: the report has means for each class.
    pub class: Option<String>,
    /// What is computed.
    pub problem: Problem,
    /// The implementations to compare, in the order of the report.
    pub implementations: Vec<String>,
    /// The implementation whose time the others' speed-up is relative to; with `*` at its end, the fastest of those whose
    /// names begin so.
    pub peer: Option<String>,
}

/// Whether `peer`, as [`Workload::peer`] names it, means the implementation `name`.
pub fn is_named(peer: &str, name: &str) -> bool {
    peer.strip_suffix('*').map_or(name == peer, |prefix| name.starts_with(prefix))
}

/// What is computed.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// A product.
    Product(Product),
    /// Attention.
    Attention(AttentionWorkload),
    /// A linear layer.
    Linear(LinearWorkload),
}

impl Problem {
    /// What is computed.
    pub fn operation(&self) -> Operation {
        match self {
            Self::Product(_) => Operation::Spmm,
            Self::Attention(_) => Operation::Attention,
            Self::Linear(_) => Operation::Linear,
        }
    }

    /// The type of the factors.
    pub fn dtype(&self) -> Dtype {
        match self {
            Self::Product(product) => product.dtype,
            Self::Attention(attention) => attention.problem.dtype,
            Self::Linear(linear) => linear.weights.dtype,
        }
    }

    /// Makes `dtype` the type of everything.
    pub fn set_dtype(&mut self, dtype: Dtype) {
        match self {
            Self::Product(product) => (product.dtype, product.c_dtype) = (dtype, dtype),
            Self::Attention(attention) => attention.problem.dtype = dtype,
            Self::Linear(linear) => linear.weights.dtype = dtype,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Product(Product { n, source: Source::File(path), .. }) => write!(f, "{} x {n}", path.display()),
            Self::Product(Product { m, n, k, .. }) => write!(f, "{m} x {n} x {k}"),
            Self::Attention(attention) => attention.fmt(f),
            Self::Linear(linear) => linear.fmt(f),
        }
    }
}

/// C = A B with A sparse.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    /// Rows of A and C; 0 until a file has been read.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A, rows of B; 0 until a file has been read.
    pub k: usize,
    /// Where A comes from.
    pub source: Source,
    /// The type of A and B.
    pub dtype: Dtype,
    /// The type of C.
    pub c_dtype: Dtype,
    /// How B lies in memory.
    pub b_layout: Layout,
    /// How C lies in memory.
    pub c_layout: Layout,
    /// Draws A's places and values, and B.
    pub seed: u64,
}

impl Product {
    /// The shape of A's blocks, where it is made of blocks.
    pub fn block(&self) -> Option<BlockShape> {
        match self.source {
            Source::Blocks { block, .. } => Some(block),
            Source::Uniform { .. } | Source::File(_) | Source::Lookalike(_) => None,
        }
    }

    /// Bytes of B and C together.
    pub fn dense_bytes(&self) -> u64 {
        let b = self.k as u64 * self.n as u64 * self.dtype.size_bytes() as u64;
        let c = self.m as u64 * self.n as u64 * self.c_dtype.size_bytes() as u64;
        b + c
    }
}

/// A name for a layout, as in the workload files and the records.
pub fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::RowMajor => "row-major",
        Layout::ColumnMajor => "column-major",
    }
}
