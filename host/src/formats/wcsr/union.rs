//! The column groups of one window: their union, and the rank of each in it.

/// The most words of a set: 64 Mi groups between the first and the last of a window, 12 MiB of scratch memory.
const MAX_WORDS: usize = 1 << 20;

/// Scratch memory for the groups of one window after another, a bit for each group.
///
/// A window whose groups lie too far apart for bits is served by sorting and searching instead.
#[derive(Default)]
pub(crate) struct GroupSet {
    /// A bit for each group from `64 * first_word` on; all 0 between two windows.
    words: Vec<u64>,
    /// A bit for each of `words` that is not 0; all 0 between two windows.
    summary: Vec<u64>,
    /// For each of `words` that is not 0, the number of groups before it.
    ranks: Vec<u32>,
    first_word: usize,
}

impl GroupSet {
    /// Appends to `union` the groups of all columns of `rows`, each of which ascends. A group holds `1 << shift` columns.
    pub fn union<'a>(&mut self, rows: impl Iterator<Item = &'a [u32]> + Clone, shift: u32, union: &mut Vec<u32>) {
        let (mut first, mut last, mut entries) = (u32::MAX, 0, 0);
        for columns in rows.clone() {
            if let [begin, ..] = columns {
                first = first.min(*begin);
                last = last.max(columns[columns.len() - 1]);
                entries += columns.len();
            }
        }
        if entries == 0 {
            return;
        }
        let num_words = self.place(first >> shift, last >> shift);
        // Reading the summary must not cost more than the entries do.
        if num_words > MAX_WORDS || num_words / 64 > entries + 64 {
            let begin = union.len();
            union.extend(rows.flatten().map(|&col| col >> shift));
            union[begin..].sort_unstable();
            dedup_from(union, begin);
            return;
        }
        self.words.resize(self.words.len().max(num_words), 0);
        self.summary.resize(self.words.len().div_ceil(64), 0);
        for &col in rows.flatten() {
            let group = (col >> shift) as usize;
            let word = group / 64 - self.first_word;
            self.words[word] |= 1 << (group % 64);
            self.summary[word / 64] |= 1 << (word % 64);
        }
        for (index, summary) in self.summary[..num_words.div_ceil(64)].iter_mut().enumerate() {
            let mut occupied = core::mem::take(summary);
            while occupied != 0 {
                let word = index * 64 + occupied.trailing_zeros() as usize;
                occupied &= occupied - 1;
                let mut bits = core::mem::take(&mut self.words[word]);
                while bits != 0 {
                    union.push(((self.first_word + word) * 64) as u32 + bits.trailing_zeros());
                    bits &= bits - 1;
                }
            }
        }
    }

    /// Calls `read` with the ranks of `groups`, which ascend strictly.
    pub(super) fn with_ranks<R>(&mut self, groups: &[u32], read: impl FnOnce(&Ranks<'_>) -> R) -> R {
        let (Some(&first), Some(&last)) = (groups.first(), groups.last()) else {
            return read(&Ranks::Sorted(groups));
        };
        let num_words = self.place(first, last);
        if num_words > MAX_WORDS {
            return read(&Ranks::Sorted(groups));
        }
        self.words.resize(self.words.len().max(num_words), 0);
        self.ranks.resize(self.words.len(), 0);
        for (rank, &group) in groups.iter().enumerate() {
            let word = group as usize / 64 - self.first_word;
            if self.words[word] == 0 {
                self.ranks[word] = rank as u32;
            }
            self.words[word] |= 1 << (group % 64);
        }
        let (words, ranks) = (&self.words[..num_words], &self.ranks[..num_words]);
        let result = read(&Ranks::Bits { words, ranks, first_word: self.first_word });
        for &group in groups {
            self.words[group as usize / 64 - self.first_word] = 0;
        }
        result
    }

    /// Lets the bits begin at a group's word; the number of words up to another group's.
    fn place(&mut self, first: u32, last: u32) -> usize {
        self.first_word = first as usize / 64;
        last as usize / 64 - self.first_word + 1
    }
}

/// The place of each group in a union.
pub(super) enum Ranks<'a> {
    /// Counted from the last word's rank on.
    Bits { words: &'a [u64], ranks: &'a [u32], first_word: usize },
    /// Searched among the groups.
    Sorted(&'a [u32]),
}

impl Ranks<'_> {
    /// The place of `group`, or `None` where the union does not hold it.
    #[inline]
    pub fn of(&self, group: u32) -> Option<usize> {
        match *self {
            Self::Bits { words, ranks, first_word } => {
                // A word before the first wraps around, and is beyond the last too.
                let word = (group as usize / 64).wrapping_sub(first_word);
                let bits = *words.get(word)?;
                let bit = 1_u64 << (group % 64);
                (bits & bit != 0).then(|| ranks[word] as usize + (bits & (bit - 1)).count_ones() as usize)
            }
            Self::Sorted(groups) => groups.binary_search(&group).ok(),
        }
    }
}

/// Removes repetitions from `begin` on.
fn dedup_from(sorted: &mut Vec<u32>, begin: usize) {
    let mut kept = begin;
    for index in begin..sorted.len() {
        if index == begin || sorted[index] != sorted[kept - 1] {
            sorted[kept] = sorted[index];
            kept += 1;
        }
    }
    sorted.truncate(kept);
}
