//! Values of windows as a list of those that are not zero.

use kernels_gpu::wcsr::{PANEL_COLS, entry_word};
use rayon::prelude::*;

use crate::element::Element;

/// Panels that a thread looks at in one go.
const TASK_PANELS: usize = 1 << 10;

/// The values of windows that are not +0, as the kernels that take [entries](kernels_gpu::wcsr::Values::Entries) read them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Entries {
    /// A word for each, those of a panel together, by rows.
    pub(super) words: Vec<u32>,
    /// Where each panel's begin; one more than there are panels.
    pub(super) offsets: Vec<u32>,
}

/// How many values are not +0: what [`Entries`] holds.
pub(super) fn count<T: Element>(values: &[T]) -> u64 {
    bits(values).par_chunks(1 << 16).map(|chunk| chunk.iter().filter(|&&bits| bits != 0).count() as u64).sum()
}

impl Entries {
    /// Of the panels of windows of `window_rows` rows. The elements have 16 bits, and at most `u32::MAX` of them are not zero.
    pub(super) fn of<T: Element>(values: &[T], window_rows: usize) -> Self {
        let panel_elements = window_rows * PANEL_COLS;
        let panels = bits(values).par_chunks_exact(panel_elements);
        let counts: Vec<u32> = panels.map(|panel| panel.iter().filter(|&&bits| bits != 0).count() as u32).collect();
        let mut offsets = vec![0];
        offsets.extend(counts.iter().scan(0, |end, count| {
            *end += count;
            Some(*end)
        }));
        let mut words = vec![0; offsets[counts.len()] as usize];
        let (mut rest, mut tasks) = (&mut *words, Vec::new());
        for first in (0..counts.len()).step_by(TASK_PANELS) {
            let last = counts.len().min(first + TASK_PANELS);
            let (piece, behind) = rest.split_at_mut((offsets[last] - offsets[first]) as usize);
            rest = behind;
            tasks.push((first..last, piece));
        }
        tasks.into_par_iter().for_each(|(range, piece)| {
            let elements =
                bits(values)[range.start * panel_elements..range.end * panel_elements].chunks_exact(panel_elements);
            let found = range.zip(elements).flat_map(|(number, panel)| {
                let stored = panel.iter().enumerate().filter(|(_, bits)| **bits != 0);
                stored.map(move |(at, &bits)| {
                    entry_word(bits, window_rows, number as u32, at / PANEL_COLS, at % PANEL_COLS)
                })
            });
            piece.iter_mut().zip(found).for_each(|(word, entry)| *word = entry);
        });
        Self { words, offsets }
    }
}

fn bits<T: Element>(values: &[T]) -> &[u16] {
    bytemuck::cast_slice(values)
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    #[test]
    fn every_value_that_is_not_zero_has_its_bits_and_its_place() {
        const ROWS: usize = 64;
        let num_panels = TASK_PANELS + 3;
        let mut values = vec![bf16::ZERO; num_panels * ROWS * PANEL_COLS];
        let places = [(0, 0, 0), (0, 5, 9), (0, 63, 15), (2, 4, 8), (TASK_PANELS - 1, 1, 1), (num_panels - 1, 0, 2)];
        for (index, &(panel, row, col)) in places.iter().enumerate() {
            values[(panel * ROWS + row) * PANEL_COLS + col] = bf16::from_f32(index as f32 + 1.0);
        }
        values[(2 * ROWS + 9) * PANEL_COLS] = bf16::NEG_ZERO;
        assert_eq!(count(&values), 7);
        let entries = Entries::of(&values, ROWS);
        assert_eq!((entries.words.len(), entries.offsets.len()), (7, num_panels + 1));
        let of_panel =
            |panel: usize| &entries.words[entries.offsets[panel] as usize..entries.offsets[panel + 1] as usize];
        let word = |index: usize| {
            let (panel, row, col) = places[index];
            entry_word(bf16::from_f32(index as f32 + 1.0).to_bits(), ROWS, panel as u32, row, col)
        };
        assert_eq!(of_panel(0), [word(0), word(1), word(2)]);
        assert!(of_panel(1).is_empty());
        assert_eq!(of_panel(2), [word(3), entry_word(0x8000, ROWS, 2, 9, 0)]);
        assert_eq!(of_panel(TASK_PANELS - 1), [word(4)]);
        assert_eq!(of_panel(num_panels - 1), [word(5)]);
        // Row 5 is in the second half of an atom of the swizzle: its columns 8 to 15 lie where 0 to 7 would.
        assert_eq!(word(1) >> 16, 5 * 16 + 1);
        assert_eq!(Entries::of::<bf16>(&[], ROWS), Entries { words: vec![], offsets: vec![0] });
    }
}
