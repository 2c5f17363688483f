//! Splitting the arrays of compressed rows into pieces of like work, for rayon.

use core::ops::Range;

use crate::element::Element;

/// Entries that one task should have at least, so that tasks cost more than their scheduling.
const ENTRIES_PER_TASK: u64 = 32 * 1024;

/// Consecutive ranges of rows that cover all rows; each holds about `ENTRIES_PER_TASK` entries or more, rows counted
/// as an entry each so that runs of empty rows are split too.
pub(crate) fn row_ranges(row_offsets: &[u64]) -> Vec<Range<usize>> {
    let num_rows = row_offsets.len() - 1;
    let mut ranges = Vec::new();
    let mut begin = 0;
    for row in 0..num_rows {
        let work = row_offsets[row + 1] - row_offsets[begin] + (row + 1 - begin) as u64;
        if work >= ENTRIES_PER_TASK || row + 1 == num_rows {
            ranges.push(begin..row + 1);
            begin = row + 1;
        }
    }
    ranges
}

/// Cuts `data`, of which each entry owns `stride` elements, at the borders of `ranges`.
pub(crate) fn split_by_rows<'a, T>(
    mut data: &'a mut [T],
    ranges: &[Range<usize>],
    row_offsets: &[u64],
    stride: usize,
) -> Vec<&'a mut [T]> {
    let mut pieces = Vec::with_capacity(ranges.len());
    for range in ranges {
        let entries = (row_offsets[range.end] - row_offsets[range.start]) as usize;
        let (piece, rest) = data.split_at_mut(entries * stride);
        pieces.push(piece);
        data = rest;
    }
    pieces
}

/// Turns counts, stored one place to the right of their row, into offsets.
pub(crate) fn accumulate(counts: &mut [u64]) {
    let mut sum = 0;
    for count in counts {
        sum += *count;
        *count = sum;
    }
}

/// Whether every bit is 0, which neither -0.0 nor a NaN satisfies.
pub(super) fn is_positive_zero<T: Element>(value: T) -> bool {
    value.to_f64().to_bits() == 0
}
