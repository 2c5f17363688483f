//! A workload's matrix, read from a Matrix Market file or made to look like one.

use std::path::Path;

use half::{bf16, f16};
use hopper_sparse::formats::Csr;
use hopper_sparse::generate::Lookalike;
use hopper_sparse::io::matrix_market::{self, ReadOptions};
use hopper_sparse::{Dtype, Element};

use super::elements::Elements;
use super::error::BenchError;
use super::product_operands::Compressed;

/// The numbers of rows and columns of the matrix in a file, and its entries, rounded to `dtype`.
///
/// # Errors
/// [`BenchError::Library`] where the file cannot be read.
pub fn read(path: &Path, dtype: Dtype) -> Result<(usize, usize, Compressed), BenchError> {
    match dtype {
        Dtype::Bf16 => read_as::<bf16>(path, Elements::Bf16),
        Dtype::F16 => read_as::<f16>(path, Elements::F16),
        Dtype::F32 | Dtype::F64 => read_as::<f32>(path, Elements::F32),
    }
}

fn read_as<T: Element>(
    path: &Path,
    elements: impl FnOnce(Vec<T>) -> Elements,
) -> Result<(usize, usize, Compressed), BenchError> {
    let loaded = matrix_market::read::<T>(path, &ReadOptions::default());
    let loaded = loaded.map_err(|error| BenchError::Library(error.into()))?;
    let csr = loaded.matrix.try_to_csr().map_err(|error| BenchError::Library(error.into()))?;
    Ok((csr.num_rows(), csr.num_cols(), compressed(&csr, elements)))
}

/// The entries of a look-alike, rounded to `dtype`.
pub fn imitate(matrix: &Lookalike, seed: u64, dtype: Dtype) -> Compressed {
    let csr = matrix.generate(seed);
    match dtype {
        Dtype::Bf16 => compressed(&csr.cast(), Elements::Bf16),
        Dtype::F16 => compressed(&csr.cast(), Elements::F16),
        Dtype::F32 | Dtype::F64 => compressed(&csr, Elements::F32),
    }
}

fn compressed<T: Element>(csr: &Csr<T>, elements: impl FnOnce(Vec<T>) -> Elements) -> Compressed {
    Compressed {
        row_offsets: csr.row_offsets().to_vec(),
        col_indices: csr.col_indices().to_vec(),
        values: elements(csr.values().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symmetric_file_is_mirrored_and_sorted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.mtx");
        let text = "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n3 1 2.5\n1 1 1\n2 2 -1\n";
        std::fs::write(&path, text).expect("a file");
        let (num_rows, num_cols, entries) = read(&path, Dtype::Bf16).expect("a matrix");
        assert_eq!((num_rows, num_cols), (3, 3));
        assert_eq!(entries.row_offsets, [0, 2, 3, 4]);
        assert_eq!(entries.col_indices, [0, 2, 1, 0]);
        assert_eq!(entries.values, Elements::Bf16([1.0, 2.5, -1.0, 2.5].map(bf16::from_f32).to_vec()));
        assert!(read(&folder.path().join("b.mtx"), Dtype::F32).is_err());
    }
}
