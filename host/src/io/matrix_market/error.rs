//! What is wrong with a Matrix Market file, in sentences.

use core::fmt;

use super::{Field, Format, Symmetry};
use crate::formats::Axis;
use crate::io::Excerpt;

/// What a file that is not Matrix Market seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForeignFile {
    /// A PDF document.
    Pdf,
    /// A zip archive.
    Zip,
    /// A tar archive.
    Tar,
    /// An HDF5 file.
    Hdf5,
    /// A MATLAB file.
    Matlab,
    /// A NumPy array.
    Numpy,
    /// A web page.
    Html,
    /// Bytes that are no text.
    Binary,
}

impl ForeignFile {
    /// Guesses from the first bytes; none where they look like text.
    pub(super) fn detect(bytes: &[u8]) -> Option<Self> {
        let lower = bytes[..bytes.len().min(64)].to_ascii_lowercase();
        let text = lower.trim_ascii_start();
        if bytes.starts_with(b"%PDF-") {
            Some(Self::Pdf)
        } else if bytes.starts_with(b"PK\x03\x04") {
            Some(Self::Zip)
        } else if bytes.get(257..262) == Some(b"ustar") {
            Some(Self::Tar)
        } else if bytes.starts_with(b"\x89HDF\r\n") {
            Some(Self::Hdf5)
        } else if bytes.starts_with(b"MATLAB 5.0 MAT-file") {
            Some(Self::Matlab)
        } else if bytes.starts_with(b"\x93NUMPY") {
            Some(Self::Numpy)
        } else if text.starts_with(b"<!doctype") || text.starts_with(b"<html") {
            Some(Self::Html)
        } else if bytes[..bytes.len().min(512)].contains(&0) {
            Some(Self::Binary)
        } else {
            None
        }
    }
}

impl fmt::Display for ForeignFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pdf => "a PDF document",
            Self::Zip => "a zip archive (extract the .mtx file first)",
            Self::Tar => "a tar archive (extract the .mtx file first)",
            Self::Hdf5 => "an HDF5 file",
            Self::Matlab => "a MATLAB file",
            Self::Numpy => "a NumPy array",
            Self::Html => "a web page",
            Self::Binary => "binary data",
        })
    }
}

/// A word of the banner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BannerWord {
    /// What the file holds: `matrix`.
    Object,
    /// How its elements are listed.
    Format,
    /// What an element is.
    Field,
    /// What the elements not listed are.
    Symmetry,
}

impl BannerWord {
    fn choices(self) -> &'static str {
        match self {
            Self::Object => "`matrix`",
            Self::Format => "`coordinate` or `array`",
            Self::Field => "`real`, `integer`, `complex` or `pattern`",
            Self::Symmetry => "`general`, `symmetric`, `skew-symmetric` or `hermitian`",
        }
    }
}

/// What is wrong with a Matrix Market file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatrixMarketError {
    /// Nothing in the file.
    Empty,
    /// Something else in the file.
    Foreign(ForeignFile),
    /// The banner has one `%` where two are demanded.
    OnePercent,
    /// The first line is no banner.
    NoBanner {
        /// The first line.
        found: Excerpt,
    },
    /// The banner ends early.
    BannerEnds {
        /// The first word missing.
        missing: BannerWord,
    },
    /// A word of the banner is not known.
    BannerWord {
        /// Which word.
        word: BannerWord,
        /// What stands there.
        found: Excerpt,
    },
    /// The banner says that indices count from 0.
    ZeroBased,
    /// The banner's words contradict each other.
    Contradiction {
        /// How elements are listed.
        format: Format,
        /// What an element is.
        field: Field,
        /// What the elements not listed are.
        symmetry: Symmetry,
    },
    /// Complex values, and [`ComplexPolicy::Refuse`](super::ComplexPolicy::Refuse) was asked for.
    Complex,
    /// No size line follows the banner.
    NoSizes,
    /// The size line is not the numbers that the format demands.
    Sizes {
        /// How elements are listed.
        format: Format,
        /// The line.
        found: Excerpt,
    },
    /// An axis is longer than 32-bit indices reach.
    SizeTooLarge {
        /// The axis.
        axis: Axis,
        /// Its size, as it stands there.
        found: Excerpt,
    },
    /// The number of entries exceeds 64 bits.
    CountTooLarge {
        /// The number, as it stands there.
        found: Excerpt,
    },
    /// A symmetry on a matrix that is not square.
    NotSquare {
        /// The symmetry.
        symmetry: Symmetry,
        /// Rows.
        num_rows: u64,
        /// Columns.
        num_cols: u64,
    },
    /// A line has the wrong number of words.
    Words {
        /// How elements are listed.
        format: Format,
        /// What an element is.
        field: Field,
        /// Words demanded.
        expected: u64,
        /// Words found.
        found: u64,
    },
    /// An index is no number.
    Index {
        /// Its axis.
        axis: Axis,
        /// What stands there.
        found: Excerpt,
    },
    /// An index is 0.
    IndexZero {
        /// Its axis.
        axis: Axis,
    },
    /// An index exceeds its axis' size.
    IndexOutOfRange {
        /// Its axis.
        axis: Axis,
        /// What stands there.
        found: Excerpt,
        /// The size of that axis.
        size: u64,
    },
    /// A value is no number of the field.
    Value {
        /// What an element is.
        field: Field,
        /// What stands there.
        found: Excerpt,
    },
    /// An element of a skew-symmetric matrix' diagonal is not zero.
    SkewDiagonal {
        /// The element's row, from 1.
        index: u64,
    },
    /// The file ends before all entries came.
    TooFew {
        /// Entries announced.
        expected: u64,
        /// Entries found.
        found: u64,
    },
    /// More entries than announced.
    TooMany {
        /// Entries announced.
        expected: u64,
    },
    /// A line that has no end.
    LineTooLong {
        /// Bytes that a line may have.
        limit: u64,
    },
}

impl fmt::Display for MatrixMarketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the file is empty; a Matrix Market file begins with a `%%MatrixMarket` line"),
            Self::Foreign(file) => write!(f, "this is {file}, not a Matrix Market file"),
            Self::OnePercent => f.write_str(
                "the banner begins with one `%`, but `%%MatrixMarket` is demanded: with one it is a comment, and what \
                 writes it (networkrepository does) often leaves the size line or the field wrong; correct the file",
            ),
            Self::NoBanner { found } => {
                write!(f, "expected a banner such as `%%MatrixMarket matrix coordinate real general`, found {found}")
            }
            Self::BannerEnds { missing } => {
                write!(f, "the banner ends where {} is expected", missing.choices())
            }
            Self::BannerWord { word, found } => {
                write!(f, "expected {} in the banner, found {found}", word.choices())
            }
            Self::ZeroBased => {
                f.write_str("the banner says that indices count from 0, but Matrix Market counts from 1")
            }
            Self::Contradiction { format, field, symmetry } => write!(
                f,
                "`{format} {field} {symmetry}` contradicts itself: {}",
                match (format, field) {
                    (Format::Array, Field::Pattern) => "an array lists values, and a pattern has none",
                    (_, Field::Pattern) => "a pattern is general or symmetric",
                    _ => "only a complex matrix is hermitian",
                }
            ),
            Self::Complex => f.write_str(
                "the values are complex, which no operation here takes; ask for their real parts if that is what you \
                 want",
            ),
            Self::NoSizes => f.write_str("the file ends where the size line is expected"),
            Self::Sizes { format: Format::Coordinate, found } => {
                write!(f, "expected three numbers (rows, columns, entries), found {found}")
            }
            Self::Sizes { format: Format::Array, found } => {
                write!(f, "expected two numbers (rows, columns), found {found}")
            }
            Self::SizeTooLarge { axis, found } => {
                write!(f, "the matrix has {found} {axis}s, but at most {} are supported", u32::MAX)
            }
            Self::CountTooLarge { found } => {
                write!(f, "the matrix has {found} entries, but at most {} are supported", u64::MAX)
            }
            Self::NotSquare { symmetry, num_rows, num_cols } => {
                write!(f, "a {symmetry} matrix is square, but this one has {num_rows} rows and {num_cols} columns")
            }
            Self::Words { format, field, expected, found } => {
                write!(f, "the line has {found} words, but lines of `{format} {field}` have {expected}")
            }
            Self::Index { axis, found } => write!(f, "expected a {axis} index, found {found}"),
            Self::IndexZero { axis } => {
                write!(f, "the {axis} index is 0, but Matrix Market counts from 1: the file seems to be written from 0")
            }
            Self::IndexOutOfRange { axis, found, size } => {
                write!(f, "the {axis} index is {found}, but the matrix has {size} {axis}s")
            }
            Self::Value { field: Field::Integer, found } => {
                write!(f, "expected an integer, as the banner says, found {found}")
            }
            Self::Value { field: _, found } => write!(f, "expected a number, found {found}"),
            Self::SkewDiagonal { index } => {
                write!(f, "element ({index}, {index}) is not zero, but the diagonal of a skew-symmetric matrix is zero")
            }
            Self::TooFew { expected, found } => write!(
                f,
                "the file ends after {found} entries, but its size line announces {expected}: it may be truncated"
            ),
            Self::TooMany { expected } => {
                write!(f, "this is one entry more than the {expected} that the size line announces")
            }
            Self::LineTooLong { limit } => write!(f, "the line has more than {limit} bytes"),
        }
    }
}

impl std::error::Error for MatrixMarketError {}
