//! The union of the columns of some rows.

/// A set of columns, as bits, with a bit more for each word so that words without any are passed over 64 at a time.
pub(super) struct ColumnSet {
    words: Vec<u64>,
    occupied: Vec<u64>,
}

impl ColumnSet {
    /// For columns under `num_cols`.
    pub(super) fn new(num_cols: usize) -> Self {
        let num_words = num_cols.div_ceil(64);
        Self { words: vec![0; num_words], occupied: vec![0; num_words.div_ceil(64)] }
    }

    /// Writes each column of `columns` once into `union`, ascending.
    pub(super) fn union(&mut self, columns: &[u32], union: &mut Vec<u32>) {
        union.clear();
        let (mut first, mut last) = (usize::MAX, 0);
        for &column in columns {
            let word = column as usize / 64;
            self.words[word] |= 1 << (column % 64);
            self.occupied[word / 64] |= 1 << (word % 64);
            first = first.min(word / 64);
            last = last.max(word / 64 + 1);
        }
        for index in first.min(last)..last {
            let mut words = core::mem::take(&mut self.occupied[index]);
            while words != 0 {
                let word = index * 64 + words.trailing_zeros() as usize;
                words &= words - 1;
                let mut bits = core::mem::take(&mut self.words[word]);
                while bits != 0 {
                    union.push(word as u32 * 64 + bits.trailing_zeros());
                    bits &= bits - 1;
                }
            }
        }
    }
}
