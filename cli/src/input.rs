//! Matrices from files and generators, and results to files.

use std::path::Path;
use std::time::Instant;

use hopper_sparse::formats::{BlockShape, Csr, Dense};
use hopper_sparse::{Dtype, Element};

use crate::args::SourceArgs;
use crate::error::{CliError, Result};
use crate::generator::Generator;
use crate::{memory, progress};

/// A sparse matrix and where it came from.
pub struct Input {
    /// The file's name or the generator's.
    pub name: String,
    /// What the source is, for people: `Matrix Market`, `packed csr bf16`, `generated`.
    pub kind: String,
    /// The matrix. Every element type converts to float64 exactly.
    pub matrix: Csr<f64>,
    /// The type that the file holds, where it says so.
    pub dtype: Option<Dtype>,
    /// The block shape that the file holds, where it holds blocks.
    pub block: Option<BlockShape>,
    /// Seconds that reading or generating took.
    pub seconds: f64,
}
