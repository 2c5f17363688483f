//! What is refused as a request to prune.

use core::fmt;

/// Why weights were not pruned.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum PruneError {
    /// The share to remove is not one.
    Sparsity {
        /// The number given.
        found: f64,
    },
    /// The weights are no whole number of rows.
    Length {
        /// Columns of a row.
        num_cols: u64,
        /// Weights given.
        found: u64,
    },
    /// A row has more columns than an index of 32 bits reaches.
    TooManyColumns {
        /// Columns of a row.
        found: u64,
    },
    /// There is not one norm a column.
    NumNorms {
        /// Columns of a row.
        expected: u64,
        /// Norms given.
        found: u64,
    },
    /// A norm is negative, infinite or no number.
    Norm {
        /// The column it belongs to, from 0.
        column: u64,
        /// The norm given.
        found: f32,
    },
}

impl fmt::Display for PruneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sparsity { found } => write!(f, "a sparsity is a share from 0 to 1, and {found} is not"),
            Self::Length { num_cols, found } => write!(f, "{found} weights are no whole number of rows of {num_cols}"),
            Self::TooManyColumns { found } => {
                write!(f, "rows of {found} columns are too long: at most {} can be pruned", u32::MAX)
            }
            Self::NumNorms { expected, found } => {
                write!(f, "{expected} columns have as many norms, but {found} are given")
            }
            Self::Norm { column, found } => {
                write!(f, "the norm of column {column} is {found}, but a norm is finite and not negative")
            }
        }
    }
}

impl std::error::Error for PruneError {}
