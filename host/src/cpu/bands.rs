//! Bands: consecutive rows of C, each written by one thread.

use crate::element::Element;
use crate::formats::{DenseViewMut, Layout};

/// Consecutive rows of C, to write.
pub(super) struct RowBand<'a, T> {
    /// The row of C that is the first of the band.
    pub first_row: usize,
    /// Rows of the band.
    pub num_rows: usize,
    /// The band's part of each line of C.
    pub lines: BandLines<'a, T>,
}

/// The lines of a band.
pub(super) enum BandLines<'a, T> {
    /// A slice for each row of the band.
    Rows(Vec<&'a mut [T]>),
    /// A slice of as many elements as the band has rows, for each column of C.
    Columns(Vec<&'a mut [T]>),
}

/// Cuts C at the given rows, which increase from 0 to its number of rows. Neither size of C may be zero.
pub(super) fn cut<'a, T: Element>(c: &'a mut DenseViewMut<'_, T>, boundaries: &[usize]) -> Vec<RowBand<'a, T>> {
    let layout = c.layout();
    let num_lines = c.as_view().num_lines();
    let mut lines = c.lines_mut();
    let sizes = boundaries.windows(2).map(|pair| pair[1] - pair[0]);
    let lines_of_bands: Vec<BandLines<'a, T>> = match layout {
        Layout::RowMajor => sizes.map(|size| BandLines::Rows(lines.by_ref().take(size).collect())).collect(),
        Layout::ColumnMajor => {
            let mut bands: Vec<_> = sizes.map(|size| (size, Vec::with_capacity(num_lines))).collect();
            for mut rest in lines {
                for (size, columns) in &mut bands {
                    let (head, tail) = rest.split_at_mut(*size);
                    columns.push(head);
                    rest = tail;
                }
            }
            bands.into_iter().map(|(_, columns)| BandLines::Columns(columns)).collect()
        }
    };
    let rows = boundaries.windows(2).map(|pair| (pair[0], pair[1] - pair[0]));
    rows.zip(lines_of_bands).map(|((first_row, num_rows), lines)| RowBand { first_row, num_rows, lines }).collect()
}

/// Rows at which to cut a matrix into at most `num_bands` bands of about the same work, from 0 to its number of rows.
///
/// The work of a row is its number of entries, and some more for the row itself.
pub(super) fn balanced(row_offsets: &[u64], num_bands: usize) -> Vec<usize> {
    const WORK_OF_A_ROW: u64 = 4;
    let num_rows = row_offsets.len() - 1;
    let work_before = |row: usize| row_offsets[row] + WORK_OF_A_ROW * row as u64;
    let total = work_before(num_rows);
    let mut boundaries = vec![0];
    for band in 1..num_bands {
        let target = (u128::from(total) * band as u128 / num_bands as u128) as u64;
        let last = boundaries[boundaries.len() - 1];
        // The first row from `last` on with at least `target` work before it.
        let (mut low, mut high) = (last, num_rows);
        while low < high {
            let middle = low + (high - low) / 2;
            if work_before(middle) < target {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low > last && low < num_rows {
            boundaries.push(low);
        }
    }
    boundaries.push(num_rows);
    boundaries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Dense;

    #[test]
    fn bands_have_about_the_same_work() {
        // One heavy row among light ones gets a band of its own.
        assert_eq!(balanced(&[0, 1, 2, 1002, 1003, 1004], 4), [0, 3, 5]);
        assert_eq!(balanced(&[0, 10, 20, 30, 40], 2), [0, 2, 4]);
        assert_eq!(balanced(&[0, 0, 0, 0, 0], 4), [0, 1, 2, 3, 4]);
        assert_eq!(balanced(&[0, 7], 8), [0, 1]);
    }

    #[test]
    fn bands_cover_each_row_once() {
        for layout in [Layout::RowMajor, Layout::ColumnMajor] {
            let mut c = Dense::<f32>::zeros(5, 3, layout);
            for band in cut(&mut c.view_mut(), &[0, 1, 4, 5]) {
                match band.lines {
                    BandLines::Rows(rows) => {
                        assert_eq!(rows.len(), band.num_rows);
                        for (at, row) in rows.into_iter().enumerate() {
                            row.iter_mut().for_each(|element| *element += (band.first_row + at) as f32);
                        }
                    }
                    BandLines::Columns(columns) => {
                        assert_eq!(columns.len(), 3);
                        for column in columns {
                            assert_eq!(column.len(), band.num_rows);
                            for (at, element) in column.iter_mut().enumerate() {
                                *element += (band.first_row + at) as f32;
                            }
                        }
                    }
                }
            }
            assert_eq!(c, Dense::from_fn(5, 3, layout, |i, _| i as f32));
        }
    }
}
