//! Writing a matrix as `coordinate real general`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::write::GzEncoder;

use crate::element::{Dtype, Element};
use crate::formats::CsrView;
use crate::io::atomic::write_atomically;
use crate::io::{Existing, IoError};

/// Whether a file is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// With gzip where the name ends with `.gz`, in letters of either case.
    #[default]
    ByName,
    /// Not at all.
    Plain,
    /// With gzip.
    Gzip,
}

/// How to write a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// What to do where the file exists.
    pub existing: Existing,
    /// Whether the file is compressed.
    pub compression: Compression,
}

/// Writes a matrix: every entry, row by row, with as many digits as [`read`](super::read) needs to give the same value
/// again (a NaN stays a NaN; its payload is lost). The file appears whole or not at all.
///
/// # Errors
/// [`IoError::Exists`] where the file exists and may not be replaced, [`IoError::IsDirectory`], [`IoError::System`].
pub fn write<T: Element>(
    path: impl AsRef<Path>,
    matrix: CsrView<'_, T>,
    options: &WriteOptions,
) -> Result<(), IoError> {
    let path = path.as_ref();
    let named_gzip = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
    let gzip = match options.compression {
        Compression::ByName => named_gzip,
        Compression::Plain => false,
        Compression::Gzip => true,
    };
    write_atomically(path, options.existing, |file: &mut File| {
        if gzip {
            let mut encoder = GzEncoder::new(BufWriter::new(file), flate2::Compression::default());
            write_text(BufWriter::new(&mut encoder), matrix)?;
            encoder.finish()?.flush()
        } else {
            write_text(BufWriter::with_capacity(1 << 16, file), matrix)
        }
    })
}

fn write_text<T: Element>(mut out: impl Write, matrix: CsrView<'_, T>) -> io::Result<()> {
    out.write_all(b"%%MatrixMarket matrix coordinate real general\n")?;
    writeln!(out, "{} {} {}", matrix.num_rows, matrix.num_cols, matrix.num_entries())?;
    for row in 0..matrix.num_rows {
        let (columns, values) = matrix.row(row);
        for (&col, &value) in columns.iter().zip(values) {
            write!(out, "{} {} ", row + 1, u64::from(col) + 1)?;
            write_value(&mut out, value)?;
            out.write_all(b"\n")?;
        }
    }
    out.flush()
}

/// Writes the shortest digits that [`read`](super::read) rounds back to `value`.
fn write_value<T: Element>(out: &mut impl Write, value: T) -> io::Result<()> {
    let exact = value.to_f64();
    // The reader rounds to f64 first. Digits that are shortest for f32 may, rarely, lie so near to the middle between
    // two f32 that rounding twice goes astray; then the digits of f64 are written, which are exact.
    let narrow = value.to_f32();
    if T::DTYPE != Dtype::F64 {
        let mut digits = Digits::default();
        write!(digits, "{narrow:?}")?;
        let read_back: Option<f64> = digits.as_str().and_then(|text| text.parse().ok());
        if read_back.is_some_and(|read| T::from_f64(read) == value) {
            return out.write_all(digits.bytes());
        }
    }
    write!(out, "{exact:?}")
}

/// Room for the digits of one f32.
#[derive(Default)]
struct Digits {
    bytes: [u8; 24],
    length: usize,
}

impl Digits {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn as_str(&self) -> Option<&str> {
        core::str::from_utf8(self.bytes()).ok()
    }
}

impl Write for Digits {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = (&mut self.bytes[self.length..]).write(bytes)?;
        self.length += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
