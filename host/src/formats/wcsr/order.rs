//! Orders of the rows of a matrix.

use crate::formats::{Axis, FormatError};

/// A permutation of the rows of a matrix: which row stands at each place.
///
/// A [`Wcsr`](super::Wcsr) matrix built with one has other rows in its windows, and is the same matrix: products
/// ([`ops::wcsr`](crate::ops::wcsr)) put each row of C where it belongs, conversions each row of A.
///
/// Invariant, checked: each of the rows 0, 1, ... stands at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowOrder {
    pub(super) rows: Vec<u32>,
    places: Vec<u32>,
}

impl RowOrder {
    /// Takes the row of each place.
    ///
    /// # Errors
    /// [`FormatError::SizeTooLarge`]; [`FormatError::IndexOutOfRange`] where a row is not under the number of rows;
    /// [`FormatError::RowRepeated`] where one stands at two places.
    pub fn try_new(rows: Vec<u32>) -> Result<Self, FormatError> {
        let num_rows = rows.len();
        if num_rows as u64 > u64::from(u32::MAX) {
            return Err(FormatError::SizeTooLarge { axis: Axis::Row, size: num_rows as u64 });
        }
        // No place is as large as this.
        let mut places = vec![u32::MAX; num_rows];
        for (place, &row) in rows.iter().enumerate() {
            let Some(known) = places.get_mut(row as usize) else {
                return Err(FormatError::IndexOutOfRange {
                    axis: Axis::Row,
                    index: row.into(),
                    size: num_rows as u64,
                    entry: place as u64,
                });
            };
            if *known != u32::MAX {
                return Err(FormatError::RowRepeated { row, first: *known, second: place as u32 });
            }
            *known = place as u32;
        }
        Ok(Self { rows, places })
    }

    /// Takes what is a permutation by construction.
    pub(super) fn from_permutation(rows: Vec<u32>) -> Self {
        let mut places = vec![0; rows.len()];
        for (place, &row) in rows.iter().enumerate() {
            places[row as usize] = place as u32;
        }
        debug_assert!(places.iter().zip(0..).all(|(&place, row): (_, u32)| rows[place as usize] == row));
        Self { rows, places }
    }

    /// The row of each place.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The place of each row: the inverse permutation.
    pub fn places(&self) -> &[u32] {
        &self.places
    }
}
