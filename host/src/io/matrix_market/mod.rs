//! Matrix Market: the text format of most sparse matrices that can be downloaded, plain or gzip-compressed.
//!
//! The format is defined at <https://math.nist.gov/MatrixMarket/formats.html>. Where it leaves a choice, or where files
//! depart from it, this reader does as follows.
//!
//! | in the file | what happens |
//! | --- | --- |
//! | `symmetric`, `skew-symmetric`, `hermitian` | every entry off the diagonal is mirrored, whichever triangle holds it |
//! | the same entry in both triangles | each is mirrored, and what then coincides adds up, like other duplicates |
//! | duplicates | kept in the [`Coo`], added up by [`Coo::to_csr`] |
//! | explicit zeros | kept, or dropped on demand ([`ExplicitZeros`]) |
//! | zeros of an `array` | no entries |
//! | `pattern` | each entry is 1 |
//! | `complex` | refused, or projected to the real part on demand ([`ComplexPolicy`]) |
//! | `nan`, `inf`, a Fortran exponent (`1.0D+00`) | read |
//! | blank lines, comments, `\r`, tabs, letters of either case | read anywhere |
//! | words behind the banner | ignored, unless they say that indices count from 0 |
//! | `%MatrixMarket`, no banner, 0-based indices, counts that do not match | refused, with the line and the reason |
//!
//! # Why not an existing reader
//!
//! Three were tried on these rows and on a file of a million entries with 17 digits each. Rates are megabytes per second
//! of processor time on one core, release build; this reader, in `tests/matrix_market_speed.rs` on the same machine, has
//! 600 to 720 on 20 million such entries.
//!
//! - nalgebra-sparse 0.12.0 has the best sentences, but refuses entries in the upper triangle of a symmetric file (as
//!   cora has), blank lines before the sizes, comments among the entries and `nan`, reads neither `pattern` nor
//!   `integer` as a matrix of `f64`, and reads 10 to 12 MB/s.
//! - sprs 0.11.6 refuses `array`, `pattern` and `integer` for `f64`, blank lines and late comments, panics at an index
//!   beyond the matrix, ignores entries beyond the announced count, has one variant for every fault and no line
//!   number, and reads 150 to 180 MB/s.
//! - matrix-market-rs 0.1.3 does not mirror, knows no skew-symmetric matrix, takes index 0 and indices beyond the
//!   matrix, accepts the one-`%` banner, panics at a trailing word, and reads 160 to 175 MB/s.
//!
//! None reads gzip, reports progress or names the line of a wrong entry.

mod entries;
mod error;
mod header;
mod parser;
mod reader;
mod writer;

pub use error::{BannerWord, ForeignFile, MatrixMarketError};
pub use header::{Banner, Field, Format, Header, Symmetry};
pub use reader::{read, read_bytes, read_reporting};
pub use writer::{Compression, WriteOptions, write};

use crate::formats::Coo;

/// What to do with entries that are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExplicitZeros {
    /// They are entries like others: the pattern is the file's.
    #[default]
    Keep,
    /// They are left out.
    Drop,
}

/// What to do with complex values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ComplexPolicy {
    /// Refuse the file.
    #[default]
    Refuse,
    /// Take the real part of each.
    RealPart,
}

/// How to read a file. The default keeps everything and refuses what would be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// What to do with entries that are zero.
    pub zeros: ExplicitZeros,
    /// What to do with complex values.
    pub complex: ComplexPolicy,
}

/// A matrix, and what its file said of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded<T> {
    /// The banner and the size line.
    pub header: Header,
    /// The entries in the file's order, each followed by its mirror image.
    pub matrix: Coo<T>,
    /// Lines left out by [`ExplicitZeros::Drop`].
    pub dropped_zeros: u64,
}
