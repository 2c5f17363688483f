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
// SHIM
pub fn read(_: &Path) -> Result<Input> { todo!() }
pub fn from_source(source: &SourceArgs, seed: u64) -> Result<Input> {
    let g: Generator = source.r#gen.unwrap();
    let start = Instant::now();
    let mut coo = hopper_sparse::formats::Coo::new(20000, 20000).unwrap();
    for i in 0..20000usize { for j in i.saturating_sub(16)..(i+16).min(20000) { coo.push(i, j, ((i * 31 + j * 7) % 17) as f64 / 7.0 - 1.0).unwrap(); } }
    let matrix = coo.to_csr();
    Ok(Input { name: g.to_string(), kind: format!("generated, seed {seed}"), matrix, dtype: None, block: None, seconds: start.elapsed().as_secs_f64() })
}
