//! A workload's matrix, read from a Matrix Market file.

use std::path::Path;

use hopper_sparse::Dtype;

use super::error::BenchError;
use super::operands::Compressed;

pub fn read(_: &Path, _: Dtype) -> Result<(usize, usize, Compressed), BenchError> { todo!() }
