//! A strip of 16 rows: which lane owns what, and how far each lane is.

use hopper_std::sm90::{GROUP_ROWS, WINDOW};
use kernels_gpu::bitmap::RING_GROUPS;
use kernels_gpu::linear::{STEP_COLS, UNIT_COLS, UNIT_STEPS, WARP_ROWS};

use super::FormatError;
use crate::element::Element;

/// Rows of a strip: those of a warp's left operand.
pub const BITMAP_STRIP_ROWS: usize = WARP_ROWS;

/// Columns of a unit, which no kernel splits.
pub const BITMAP_UNIT_COLS: usize = UNIT_COLS;

/// Lanes of a warp.
pub(crate) const LANES: usize = 32;

/// Words of a lane's mask of a unit, 64 columns each.
const WORDS: usize = UNIT_STEPS;

/// Words of a unit's masks.
pub(super) const MASKS_PER_UNIT: usize = LANES * WORDS;

/// Columns of a word.
const WORD_COLS: usize = STEP_COLS;

/// Values of a lane in a row.
const ROW_VALUES: u32 = 2;

/// Values of a lane in a group.
pub(crate) const GROUP_VALUES: u32 = GROUP_ROWS * ROW_VALUES;

/// Groups that the lanes of a unit may need at once. The others of a kernel's ring are for copies on their way.
const MOST_GROUPS: u32 = RING_GROUPS as u32 - 4;

/// The places of a lane's bits: bit, row of the strip and column of the word, in the order of its stream.
fn places(lane: usize) -> impl Iterator<Item = (u32, usize, usize)> {
    let (q, t) = (lane / 4, lane % 4);
    (0..WORD_COLS / 16).flat_map(move |s| {
        (0..8).map(move |place| {
            let (pair, element) = (place / 2, place % 2);
            let bit = 16 * (s / 2) + 4 * pair + 2 * (s % 2) + element;
            (bit as u32, q + pair % 2 * 8, 16 * s + pair / 2 * 8 + 2 * t + element)
        })
    })
}

/// The masks of the strip whose rows lie one after the other, padded to whole units.
pub(super) fn encode_masks<T: Element>(rows: &[T], masks: &mut [u32]) {
    let row_len = rows.len() / BITMAP_STRIP_ROWS;
    for lane in 0..LANES {
        for word in 0..row_len / WORD_COLS {
            let mask = places(lane).fold(0, |mask, (bit, row, col)| {
                let value = rows[row * row_len + word * WORD_COLS + col];
                // Neither zero, of either sign, nor less than nothing: a NaN is not equal to zero.
                mask | u32::from(value.to_f64() != 0.0) << bit
            });
            masks[mask_index(word, lane)] = mask;
        }
    }
}

/// The values of the strip, into zeros.
pub(super) fn encode_values<T: Element>(rows: &[T], masks: &[u32], values: &mut [T]) {
    let row_len = rows.len() / BITMAP_STRIP_ROWS;
    visit(masks, |lane, position, row, col| values[value_index(lane, position)] = rows[row * row_len + col]);
}

/// The rows of the strip, `num_cols` elements each, into zeros.
pub(super) fn decode_strip<T: Copy>(masks: &[u32], values: &[T], num_cols: usize, rows: &mut [T]) {
    visit(masks, |lane, position, row, col| rows[row * num_cols + col] = values[value_index(lane, position)]);
}

/// Calls `with` for each set bit: lane, position in its stream, row and column.
fn visit(masks: &[u32], mut with: impl FnMut(usize, u32, usize, usize)) {
    for unit in Walk::new(masks) {
        for (lane, &position) in unit.positions.iter().enumerate() {
            let mut position = position;
            for word in 0..WORDS {
                let word = unit.index as usize * WORDS + word;
                let mask = masks[mask_index(word, lane)];
                for (bit, row, col) in places(lane) {
                    if mask >> bit & 1 == 1 {
                        with(lane, position, row, word * WORD_COLS + col);
                        position += 1;
                    }
                }
            }
        }
    }
}

/// Where the mask of 64 columns, counted from the strip's first, and a lane stands among the strip's.
const fn mask_index(word: usize, lane: usize) -> usize {
    word / WORDS * MASKS_PER_UNIT + lane * WORDS + word % WORDS
}

/// Where value `position` of a lane's stream stands among the strip's.
const fn value_index(lane: usize, position: u32) -> usize {
    let (row, half) = (position / ROW_VALUES, position % ROW_VALUES);
    (row as usize * LANES + lane) * ROW_VALUES as usize + half as usize
}

/// Whether no bit is set beyond the matrix.
pub(super) fn check_padding(masks: &[u32], num_rows: usize, num_cols: usize) -> Result<(), FormatError> {
    let words = num_cols.div_ceil(BITMAP_UNIT_COLS).max(1) * WORDS;
    for (strip, masks) in masks.chunks_exact(words * LANES).enumerate() {
        let first_row = strip * BITMAP_STRIP_ROWS;
        let whole_words = if first_row + BITMAP_STRIP_ROWS <= num_rows { num_cols / WORD_COLS } else { 0 };
        for word in whole_words..words {
            for lane in 0..LANES {
                let mask = masks[mask_index(word, lane)];
                for (bit, row, col) in places(lane) {
                    let (row, col) = (first_row + row, word * WORD_COLS + col);
                    if mask >> bit & 1 == 1 && (row >= num_rows || col >= num_cols) {
                        return Err(FormatError::PaddingNotZero { row: row as u64, col: col as u64 });
                    }
                }
            }
        }
    }
    Ok(())
}

/// A unit of a strip, as its lanes come to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkedUnit {
    /// The unit.
    pub(crate) index: u32,
    /// Where each lane is in its stream, in values.
    pub(crate) positions: [u32; LANES],
    /// Whether lanes were realigned.
    pub(crate) is_realigned: bool,
}

/// Goes through the units of a strip.
pub(crate) struct Walk<'a> {
    masks: &'a [u32],
    unit: u32,
    positions: [u32; LANES],
}

impl<'a> Walk<'a> {
    /// The strip's masks.
    pub(crate) fn new(masks: &'a [u32]) -> Self {
        Self { masks, unit: 0, positions: [0; LANES] }
    }

    /// Where lanes are when the last unit that was walked is done.
    #[cfg(any(test, feature = "gpu", feature = "sim"))]
    pub(crate) fn arrived(&self) -> &[u32; LANES] {
        &self.positions
    }

    /// Groups that hold all values up to here, and the rows that are read behind them.
    pub(crate) fn num_groups(&self) -> u64 {
        u64::from(last_group(&self.positions)) + 1
    }
}

impl Iterator for Walk<'_> {
    type Item = WalkedUnit;

    fn next(&mut self) -> Option<WalkedUnit> {
        let (masks, rest) = self.masks.split_at_checked(MASKS_PER_UNIT)?;
        self.masks = rest;
        let is_realigned = !fits(masks, self.positions);
        let positions = if is_realigned { realigned(&self.positions) } else { self.positions };
        self.positions = after(masks, positions);
        let index = self.unit;
        self.unit += 1;
        Some(WalkedUnit { index, positions, is_realigned })
    }
}

/// Where lanes are after a unit.
fn after(masks: &[u32], mut positions: [u32; LANES]) -> [u32; LANES] {
    for (position, masks) in positions.iter_mut().zip(masks.chunks_exact(WORDS)) {
        *position += masks.iter().map(|mask| mask.count_ones()).sum::<u32>();
    }
    positions
}

/// Whether a unit finds what all lanes need in [`MOST_GROUPS`] groups.
fn fits(masks: &[u32], positions: [u32; LANES]) -> bool {
    last_group(&after(masks, positions)) - first_group(&positions) < MOST_GROUPS
}

/// The first group that a lane still needs.
pub(crate) fn first_group(positions: &[u32; LANES]) -> u32 {
    positions.iter().min().map_or(0, |least| least / GROUP_VALUES)
}

/// The last group that is read when lanes come to these positions.
pub(crate) fn last_group(positions: &[u32; LANES]) -> u32 {
    let row = positions.iter().max().map_or(0, |most| most / ROW_VALUES) + WINDOW as u32 - 1;
    row * ROW_VALUES / GROUP_VALUES
}

/// Every lane at the row after the last one that any has values in.
fn realigned(positions: &[u32; LANES]) -> [u32; LANES] {
    [positions.iter().max().map_or(0, |most| most.next_multiple_of(ROW_VALUES)); LANES]
}
