//! The first lines: the banner and the sizes.

use core::fmt;

use super::error::{BannerWord, ForeignFile, MatrixMarketError};
use crate::formats::Axis;
use crate::io::Excerpt;

/// How the elements are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One line for each entry: row, column, value.
    Coordinate,
    /// One line for each element, column by column.
    Array,
}

/// What an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A decimal number.
    Real,
    /// A whole number.
    Integer,
    /// Two decimal numbers: real and imaginary part.
    Complex,
    /// Nothing: the entry is there, and counts as 1.
    Pattern,
}

/// What the elements that are not listed are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symmetry {
    /// Zero.
    General,
    /// a(j, i) = a(i, j).
    Symmetric,
    /// a(j, i) = -a(i, j).
    SkewSymmetric,
    /// a(j, i) = conj(a(i, j)).
    Hermitian,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Coordinate => "coordinate",
            Self::Array => "array",
        })
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Real => "real",
            Self::Integer => "integer",
            Self::Complex => "complex",
            Self::Pattern => "pattern",
        })
    }
}

impl fmt::Display for Symmetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::General => "general",
            Self::Symmetric => "symmetric",
            Self::SkewSymmetric => "skew-symmetric",
            Self::Hermitian => "hermitian",
        })
    }
}

/// The banner: `%%MatrixMarket matrix FORMAT FIELD SYMMETRY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Banner {
    /// How the elements are listed.
    pub format: Format,
    /// What an element is.
    pub field: Field,
    /// What the elements that are not listed are.
    pub symmetry: Symmetry,
}

/// The banner and the size line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The banner.
    pub banner: Banner,
    /// Number of rows.
    pub num_rows: u32,
    /// Number of columns.
    pub num_cols: u32,
    /// Lines with entries (coordinate) or elements (array) that the file announces, before anything is mirrored.
    pub num_stored: u64,
}

/// The words of a line.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

impl Banner {
    /// Reads the first line of a file; letters of either case are taken, as the format's definition says.
    pub(super) fn parse(line: &[u8]) -> Result<Self, MatrixMarketError> {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        let lower = line.to_ascii_lowercase();
        let mut words = words(&lower);
        match words.next() {
            Some(b"%%matrixmarket") => {}
            Some(b"%matrixmarket") => return Err(MatrixMarketError::OnePercent),
            _ => {
                return Err(match ForeignFile::detect(line) {
                    Some(file) => MatrixMarketError::Foreign(file),
                    None => MatrixMarketError::NoBanner { found: Excerpt::new(line) },
                });
            }
        }
        let mut next = |word| words.next().ok_or(MatrixMarketError::BannerEnds { missing: word });
        let unknown = |word, found: &[u8]| Err(MatrixMarketError::BannerWord { word, found: Excerpt::new(found) });
        match next(BannerWord::Object)? {
            b"matrix" => {}
            other => return unknown(BannerWord::Object, other),
        }
        let format = match next(BannerWord::Format)? {
            b"coordinate" => Format::Coordinate,
            b"array" => Format::Array,
            other => return unknown(BannerWord::Format, other),
        };
        let field = match next(BannerWord::Field)? {
            b"real" => Field::Real,
            b"integer" => Field::Integer,
            b"complex" => Field::Complex,
            b"pattern" => Field::Pattern,
            other => return unknown(BannerWord::Field, other),
        };
        let symmetry = match next(BannerWord::Symmetry)? {
            b"general" => Symmetry::General,
            b"symmetric" => Symmetry::Symmetric,
            b"skew-symmetric" => Symmetry::SkewSymmetric,
            b"hermitian" => Symmetry::Hermitian,
            other => return unknown(BannerWord::Symmetry, other),
        };
        // What follows is a remark, unless it says that the file breaks the format's most important rule.
        if words.any(|word| {
            ["0-base", "0-index", "zero-base", "zero-index"].iter().any(|no| word.starts_with(no.as_bytes()))
        }) {
            return Err(MatrixMarketError::ZeroBased);
        }
        let contradiction = match (format, field, symmetry) {
            (Format::Array, Field::Pattern, _) => true,
            (_, Field::Pattern, Symmetry::SkewSymmetric | Symmetry::Hermitian) => true,
            (_, field, Symmetry::Hermitian) => field != Field::Complex,
            _ => false,
        };
        if contradiction {
            return Err(MatrixMarketError::Contradiction { format, field, symmetry });
        }
        Ok(Self { format, field, symmetry })
    }
}

impl Header {
    /// Reads the size line.
    pub(super) fn parse(banner: Banner, line: &[u8]) -> Result<Self, MatrixMarketError> {
        let malformed = || MatrixMarketError::Sizes { format: banner.format, found: Excerpt::new(line.trim_ascii()) };
        let found: Vec<&[u8]> = words(line).take(4).collect();
        let expected = match banner.format {
            Format::Coordinate => 3,
            Format::Array => 2,
        };
        if found.len() != expected || !found.iter().all(|word| word.iter().all(u8::is_ascii_digit)) {
            return Err(malformed());
        }
        let size = |axis, word: &[u8]| {
            integer(word)
                .and_then(|size| u32::try_from(size).ok())
                .ok_or_else(|| MatrixMarketError::SizeTooLarge { axis, found: Excerpt::new(word) })
        };
        let (num_rows, num_cols) = (size(Axis::Row, found[0])?, size(Axis::Column, found[1])?);
        if banner.symmetry != Symmetry::General && num_rows != num_cols {
            return Err(MatrixMarketError::NotSquare {
                symmetry: banner.symmetry,
                num_rows: num_rows.into(),
                num_cols: num_cols.into(),
            });
        }
        let (rows, cols) = (u64::from(num_rows), u64::from(num_cols));
        let num_stored = match (banner.format, banner.symmetry) {
            (Format::Coordinate, _) => {
                integer(found[2]).ok_or_else(|| MatrixMarketError::CountTooLarge { found: Excerpt::new(found[2]) })?
            }
            (Format::Array, Symmetry::General) => rows * cols,
            (Format::Array, Symmetry::SkewSymmetric) => rows * rows.saturating_sub(1) / 2,
            (Format::Array, _) => (u128::from(rows) * (u128::from(rows) + 1) / 2) as u64,
        };
        Ok(Self { banner, num_rows, num_cols, num_stored })
    }
}

/// A number of decimal digits, if 64 bits hold it.
pub(super) fn integer(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0_u64, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}
