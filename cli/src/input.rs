//! The sparse matrix: read from a file or generated.

use std::path::Path;
use std::time::Instant;

use hopper_sparse::formats::{BlockShape, Csr};
use hopper_sparse::generate::GeneratorSpec;
use hopper_sparse::io::packed::{self, Kind};
use hopper_sparse::io::{IoError, matrix_market};
use hopper_sparse::{Dtype, Element, bf16, f16};

use crate::args::{ReadArgs, SourceArgs};
use crate::error::{CliError, Result};
use crate::files::{self, FileKind};
use crate::progress;

/// A sparse matrix and where it came from.
pub struct Input {
    /// The file's name or the generator's.
    pub name: String,
    /// What the source is, for people.
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

/// Reads the file, or generates the matrix.
///
/// # Errors
/// As [`read`], and a failure where what is to be generated does not fit in memory.
pub fn from_source(source: &SourceArgs, options: &ReadArgs, seed: u64) -> Result<Input> {
    match (&source.file, &source.r#gen) {
        (_, Some(spec)) => generate(spec, seed),
        (Some(path), None) => read(path, options),
        // The command line demands one of the two.
        (None, None) => Err(CliError::usage("neither a file nor a generator is given")),
    }
}

/// A seed in the specification goes before the command's.
fn generate(spec: &GeneratorSpec, seed: u64) -> Result<Input> {
    let spec = GeneratorSpec { seed: if spec.seed == 0 { seed } else { spec.seed }, ..*spec };
    let spinner = progress::spinner(format!("generating {spec}"));
    let start = Instant::now();
    let matrix = spec.generate().map_err(CliError::failure)?.cast();
    let seconds = start.elapsed().as_secs_f64();
    spinner.finish_and_clear();
    Ok(Input { name: spec.label(), kind: "generated".to_owned(), matrix, dtype: None, block: None, seconds })
}

/// Reads a matrix file of either kind.
///
/// # Errors
/// Usage where the name says nothing, a failure where the file cannot be read or is not what its name says.
pub fn read(path: &Path, options: &ReadArgs) -> Result<Input> {
    files::require_file(path)?;
    let start = Instant::now();
    let mut input = match FileKind::of(path)? {
        FileKind::MatrixMarket => read_matrix_market(path, options)?,
        FileKind::Packed => read_packed(path)?,
    };
    input.seconds = start.elapsed().as_secs_f64();
    Ok(input)
}

fn read_matrix_market(path: &Path, options: &ReadArgs) -> Result<Input> {
    let bar = progress::bytes(format!("reading {}", path.display()));
    let loaded = matrix_market::read_reporting::<f64>(path, &options.read_options(), &mut |progress| {
        bar.set_length(progress.bytes_total);
        bar.set_position(progress.bytes_done);
    });
    bar.finish_and_clear();
    let loaded = loaded.map_err(hopper_sparse::Error::from)?;
    let spinner = progress::spinner("sorting");
    let matrix = loaded.matrix.try_to_csr();
    spinner.finish_and_clear();
    let matrix = matrix.map_err(hopper_sparse::Error::from)?;
    let mut kind = format!("Matrix Market, {} {}", loaded.header.banner.field, loaded.header.banner.symmetry);
    if loaded.dropped_zeros > 0 {
        kind.push_str(&format!(", {} zeros dropped", crate::table::count(loaded.dropped_zeros)));
    }
    Ok(Input { name: file_name(path), kind, matrix, dtype: None, block: None, seconds: 0.0 })
}

fn read_packed(path: &Path) -> Result<Input> {
    let spinner = progress::spinner(format!("reading {}", path.display()));
    let info = packed::inspect(path).map_err(hopper_sparse::Error::from)?;
    let loaded = match info.dtype {
        Dtype::Bf16 => load_as::<bf16>(path, info.kind),
        Dtype::F16 => load_as::<f16>(path, info.kind),
        Dtype::F32 => load_as::<f32>(path, info.kind),
        Dtype::F64 => load_as::<f64>(path, info.kind),
    };
    spinner.finish_and_clear();
    let matrix = loaded.map_err(hopper_sparse::Error::from)?;
    let (kind, block) = match info.kind {
        Kind::Csr => (format!("packed csr, {}", info.dtype), None),
        Kind::Bcsr(shape) => (format!("packed bcsr:{shape}, {}", info.dtype), Some(shape)),
        Kind::Wcsr(shape) => (format!("packed wcsr:{shape}, {}", info.dtype), None),
    };
    Ok(Input { name: file_name(path), kind, matrix, dtype: Some(info.dtype), block, seconds: 0.0 })
}

fn load_as<T: Element>(path: &Path, kind: Kind) -> Result<Csr<f64>, IoError> {
    Ok(match kind {
        Kind::Csr => packed::load_csr::<T>(path)?.cast(),
        Kind::Bcsr(_) => packed::load_bcsr::<T>(path)?.to_csr().cast(),
        Kind::Wcsr(_) => packed::load_wcsr::<T>(path)?.to_csr().cast(),
    })
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
