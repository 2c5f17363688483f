//! Bitmap and packed values: weights at 50-70 % unstructured sparsity, in the order in which a warp's lanes want them.

mod strip;
#[cfg(test)]
mod tests;

use kernels_gpu::linear::WARPS;
use rayon::prelude::*;

pub(crate) use strip::Walk;
pub use strip::{BITMAP_STRIP_ROWS, BITMAP_UNIT_COLS};
pub(crate) use strip::{GROUP_VALUES, LANES};
use strip::{MASKS_PER_UNIT, decode_strip, encode_masks, encode_values};
#[cfg(any(feature = "gpu", feature = "sim"))]
pub(crate) use strip::{first_group, last_group};

use super::{CsrView, Dense, DenseView, FormatError, Layout};
use crate::element::Element;

/// Strips of a row block: a block of a kernel's launch works on so many.
const STRIPS_PER_BLOCK: usize = WARPS;

/// Elements of a group.
const GROUP_ELEMENTS: usize = GROUP_VALUES as usize * LANES;

/// A sparse matrix (of weights) as one bit for each element and the values of those that are not zero.
///
/// At density d it takes 1/8 + d times the size of an element in bytes: of 16-bit elements 1.13 at 50 % and 0.73 at 70 % sparsity, where
/// dense has 2. That nothing but values and bits is stored has its price in the order: rows come in strips of
/// [`BITMAP_STRIP_ROWS`], each of 32 *lanes* that own 8 places of every 16 columns, and the values of a lane follow one another
/// whatever the columns. The lanes' streams are interleaved word by word and padded to one length, which costs 1.5 to 4 % of the
/// values where no row is denser than others.
///
/// -0.0 counts as zero; NaN and infinities are kept, as all values are, bit for bit. Rows are padded to 128 and columns to
/// [`BITMAP_UNIT_COLS`] with zero bits.
///
/// Where lanes drift so far apart that a kernel could not hold all of their values at once, they are *realigned*: each goes on at the
/// row of words after the last one that any of them has values in.
///
/// Source: bitmaps with packed values as in SpInfer (EuroSys 2025); the order, streams of lanes in the register layout of
/// `wgmma` (PTX ISA 9.7.15.5.1), is this library's.
///
/// ```
/// use hopper_sparse::formats::{Bitmap, Dense, Layout};
/// use hopper_sparse::bf16;
///
/// let mut weights = Dense::<bf16>::zeros(16, 256, Layout::RowMajor);
/// weights.set(3, 200, bf16::from_f32(1.5));
/// let bitmap = Bitmap::from_dense(weights.view())?;
/// assert_eq!(bitmap.num_nonzeros(), 1);
/// assert_eq!(bitmap.to_dense()?, weights);
/// # Ok::<(), hopper_sparse::formats::FormatError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Bitmap<T> {
    num_rows: usize,
    num_cols: usize,
    masks: Vec<u32>,
    values: Vec<T>,
    strips: Strips,
}

/// What follows from the masks: where the values of each strip begin, and where lanes are realigned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Strips {
    /// The first group of each strip's values, and one past the last.
    pub(crate) group_offsets: Vec<u64>,
    /// Units at whose beginning a strip's lanes are realigned, ended by `u32::MAX`, strip after strip.
    pub(crate) realignments: Vec<u32>,
    /// Where each strip's begin.
    pub(crate) realignment_offsets: Vec<u32>,
}

/// What a bitmap takes, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BitmapStatistics {
    /// Elements that are not zero.
    pub num_nonzeros: u64,
    /// Values that are stored, with padding.
    pub num_stored: u64,
    /// Realignments of lanes.
    pub num_realignments: u64,
    /// Bytes of masks and values.
    pub num_bytes: u64,
    /// Bytes over elements of the matrix; NaN where it has none.
    pub bytes_per_element: f64,
}

impl<T: Element> Bitmap<T> {
    /// The elements of a dense matrix, in parallel.
    ///
    /// # Errors
    /// [`FormatError::SizeOverflow`] where the padded matrix has more elements than memory has addresses.
    pub fn from_dense(matrix: DenseView<'_, T>) -> Result<Self, FormatError> {
        let (num_rows, num_cols) = (matrix.num_rows(), matrix.num_cols());
        Self::from_rows(num_rows, num_cols, |row, to| match matrix.layout() {
            Layout::RowMajor => to.copy_from_slice(matrix.line(row)),
            Layout::ColumnMajor => {
                for (col, to) in to.iter_mut().enumerate() {
                    *to = matrix.get(row, col);
                }
            }
        })
    }

    /// The elements of a sparse matrix, in parallel. Stored zeros are not kept.
    ///
    /// # Errors
    /// As [`CsrView::check`], and as [`from_dense`](Self::from_dense).
    pub fn from_csr(matrix: CsrView<'_, T>) -> Result<Self, FormatError> {
        matrix.check()?;
        Self::from_rows(matrix.num_rows, matrix.num_cols, |row, to| {
            let entries = matrix.row_offsets[row] as usize..matrix.row_offsets[row + 1] as usize;
            for (&col, &value) in matrix.col_indices[entries.clone()].iter().zip(&matrix.values[entries]) {
                to[col as usize] = value;
            }
        })
    }

    /// `fill` writes a row into zeros.
    fn from_rows(num_rows: usize, num_cols: usize, fill: impl Fn(usize, &mut [T]) + Sync) -> Result<Self, FormatError> {
        let num_units = num_units(num_cols);
        let len = num_masks(num_rows, num_cols)?;
        let padded = num_units * BITMAP_UNIT_COLS;
        let strip_of = |strip: usize| {
            let mut rows = vec![T::ZERO; BITMAP_STRIP_ROWS * padded];
            for (index, to) in rows.chunks_exact_mut(padded).enumerate() {
                let row = strip * BITMAP_STRIP_ROWS + index;
                if row < num_rows {
                    fill(row, &mut to[..num_cols]);
                }
            }
            rows
        };
        let mut masks = vec![0; len];
        masks.par_chunks_exact_mut(num_units * MASKS_PER_UNIT).enumerate().for_each(|(strip, masks)| {
            encode_masks(&strip_of(strip), masks);
        });
        let strips = Strips::of(&masks, num_units);
        let mut values = vec![T::ZERO; strips.num_groups() * GROUP_ELEMENTS];
        let of_strips = strips.split(&mut values);
        of_strips.into_par_iter().enumerate().for_each(|(strip, values)| {
            let masks = &masks[strip * num_units * MASKS_PER_UNIT..][..num_units * MASKS_PER_UNIT];
            encode_values(&strip_of(strip), masks, values);
        });
        Ok(Self { num_rows, num_cols, masks, values, strips })
    }

    /// A matrix of its parts, as [`masks`](Self::masks) and [`values`](Self::values) give them: how a file's become one again.
    ///
    /// # Errors
    /// [`FormatError::Length`] where an array does not have the length that the shape, or the masks, demand;
    /// [`FormatError::PaddingNotZero`] where a bit is set beyond the matrix.
    pub fn from_parts(num_rows: usize, num_cols: usize, masks: Vec<u32>, values: Vec<T>) -> Result<Self, FormatError> {
        let expected = num_masks(num_rows, num_cols)?;
        check_length("masks", expected, masks.len())?;
        strip::check_padding(&masks, num_rows, num_cols)?;
        let strips = Strips::of(&masks, num_units(num_cols));
        check_length("values", strips.num_groups() * GROUP_ELEMENTS, values.len())?;
        Ok(Self { num_rows, num_cols, masks, values, strips })
    }

    /// The dense matrix, row-major. Zeros are +0.0.
    ///
    /// # Errors
    /// [`FormatError::SizeOverflow`] where it does not fit memory.
    pub fn to_dense(&self) -> Result<Dense<T>, FormatError> {
        let mut dense = Dense::try_zeros(self.num_rows, self.num_cols, Layout::RowMajor)?;
        if self.num_cols == 0 {
            return Ok(dense);
        }
        let rows = dense.data_mut().par_chunks_mut(BITMAP_STRIP_ROWS * self.num_cols);
        rows.enumerate().for_each(|(strip, to)| {
            decode_strip(self.strip_masks(strip), self.strip_values(strip), self.num_cols, to);
        });
        Ok(dense)
    }
}

impl<T> Bitmap<T> {
    /// M.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// K.
    pub fn num_cols(&self) -> usize {
        self.num_cols
    }

    /// One bit for each element, padded: for each strip, each unit of [`BITMAP_UNIT_COLS`] columns and each lane four words, 64
    /// columns each.
    ///
    /// Lane 4 q + t owns, of columns 16 s to 16 s + 15 of a word's 64, those at 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 in rows q and
    /// q + 8: pair 0 is (q; 2 t), pair 1 (q + 8; 2 t), pairs 2 and 3 the same eight columns on. Pair i has bits
    /// 16 (s / 2) + 4 i + 2 (s % 2) and the next.
    pub fn masks(&self) -> &[u32] {
        &self.masks
    }

    /// The values of all strips: rows of 32 words of two values, a word for each lane; value i of a lane's stream is in row i / 2.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Elements that are not zero.
    pub fn num_nonzeros(&self) -> u64 {
        self.masks.par_iter().map(|mask| u64::from(mask.count_ones())).sum()
    }

    /// What it takes, and why.
    pub fn statistics(&self) -> BitmapStatistics {
        let num_bytes = (size_of_val(&self.masks[..]) + size_of_val(&self.values[..])) as u64;
        BitmapStatistics {
            num_nonzeros: self.num_nonzeros(),
            num_stored: self.values.len() as u64,
            num_realignments: (self.strips.realignments.len() - self.num_strips()) as u64,
            num_bytes,
            bytes_per_element: num_bytes as f64 / (self.num_rows as f64 * self.num_cols as f64),
        }
    }

    /// Units of columns, at least one.
    pub(crate) fn num_units(&self) -> usize {
        num_units(self.num_cols)
    }

    /// Strips, whole row blocks of them.
    pub(crate) fn num_strips(&self) -> usize {
        num_strips(self.num_rows)
    }

    /// Where values and realignments lie.
    #[cfg(any(feature = "gpu", feature = "sim"))]
    pub(crate) fn strips(&self) -> &Strips {
        &self.strips
    }

    /// The masks of a strip.
    pub(crate) fn strip_masks(&self, strip: usize) -> &[u32] {
        let len = self.num_units() * MASKS_PER_UNIT;
        &self.masks[strip * len..][..len]
    }

    /// The values of a strip.
    fn strip_values(&self, strip: usize) -> &[T] {
        let [begin, end] = [strip, strip + 1].map(|strip| self.strips.group_offsets[strip] as usize * GROUP_ELEMENTS);
        &self.values[begin..end]
    }
}

impl Strips {
    /// Of masks of `num_units` units a strip.
    fn of(masks: &[u32], num_units: usize) -> Self {
        let walked: Vec<(u64, Vec<u32>)> = masks
            .par_chunks_exact(num_units * MASKS_PER_UNIT)
            .map(|masks| {
                let mut realignments = Vec::new();
                let mut walk = Walk::new(masks);
                for unit in walk.by_ref() {
                    if unit.is_realigned {
                        realignments.push(unit.index);
                    }
                }
                realignments.push(u32::MAX);
                (walk.num_groups(), realignments)
            })
            .collect();
        let mut strips = Self { group_offsets: vec![0], ..Self::default() };
        let mut end = 0;
        for (groups, realignments) in walked {
            end += groups;
            strips.group_offsets.push(end);
            strips.realignment_offsets.push(strips.realignments.len() as u32);
            strips.realignments.extend(realignments);
        }
        strips
    }

    /// The place in the list of a strip's first realignment after unit `unit`.
    #[cfg(any(feature = "gpu", feature = "sim"))]
    pub(crate) fn realignments_after(&self, strip: usize, unit: u32) -> u32 {
        let first = self.realignment_offsets[strip];
        let before = self.realignments[first as usize..].iter().take_while(|&&realigned| realigned <= unit).count();
        first + before as u32
    }

    /// Groups of all strips.
    fn num_groups(&self) -> usize {
        self.group_offsets.last().map_or(0, |&groups| groups as usize)
    }

    /// The values of each strip.
    fn split<'a, T>(&self, mut values: &'a mut [T]) -> Vec<&'a mut [T]> {
        let mut parts = Vec::with_capacity(self.group_offsets.len());
        for ends in self.group_offsets.windows(2) {
            let (part, rest) = values.split_at_mut((ends[1] - ends[0]) as usize * GROUP_ELEMENTS);
            parts.push(part);
            values = rest;
        }
        parts
    }
}

/// Units of `num_cols` columns, at least one.
const fn num_units(num_cols: usize) -> usize {
    let units = num_cols.div_ceil(BITMAP_UNIT_COLS);
    if units == 0 { 1 } else { units }
}

/// Strips of `num_rows` rows: whole row blocks.
const fn num_strips(num_rows: usize) -> usize {
    num_rows.div_ceil(BITMAP_STRIP_ROWS * STRIPS_PER_BLOCK) * STRIPS_PER_BLOCK
}

/// Words of the masks.
fn num_masks(num_rows: usize, num_cols: usize) -> Result<usize, FormatError> {
    let overflow = FormatError::SizeOverflow { num_rows: num_rows as u64, num_cols: num_cols as u64 };
    let blocks = num_rows.div_ceil(BITMAP_STRIP_ROWS * STRIPS_PER_BLOCK);
    let words =
        blocks.checked_mul(STRIPS_PER_BLOCK * MASKS_PER_UNIT).and_then(|words| words.checked_mul(num_units(num_cols)));
    // 32 elements a word: what the values may take must have addresses, too.
    words.filter(|words| words.checked_mul(64 * 8).is_some()).ok_or(overflow)
}

fn check_length(array: &'static str, expected: usize, found: usize) -> Result<(), FormatError> {
    if expected == found {
        return Ok(());
    }
    Err(FormatError::Length { array, expected: expected as u64, found: found as u64 })
}
