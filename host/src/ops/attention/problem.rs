//! What is computed.

use core::f32::consts::LN_2;
use core::fmt;
use core::ops::Range;

use super::{AttentionCount, AttentionError, AttentionTensor, Sequences};
use crate::element::Dtype;
use crate::formats::{HeadsShape, Layout, Shape};

/// The most elements of a row of Q, K, V and O.
pub const MAX_HEAD_DIM: usize = 256;

/// Keys that a row sees, around its *diagonal*: row i of a sequence of Lq queries and Lk keys has it at key i + Lk - Lq, so
/// that the last row's is the last key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// Keys before the diagonal; `None` for all.
    pub left: Option<u32>,
    /// Keys after the diagonal; `None` for all.
    pub right: Option<u32>,
}

impl Window {
    /// Every row sees every key.
    pub const FULL: Self = Self { left: None, right: None };

    /// A row sees the keys up to its diagonal.
    pub const CAUSAL: Self = Self { left: None, right: Some(0) };

    /// A row sees its diagonal and `left` keys before it.
    pub const fn sliding(left: u32) -> Self {
        Self { left: Some(left), right: Some(0) }
    }

    /// The most keys that a row may see, or none where there is no such bound.
    pub fn most_keys_of_a_row(self) -> Option<usize> {
        // Of two u32 and 1: within 64 bits.
        self.left.zip(self.right).map(|(left, right)| left as usize + right as usize + 1)
    }

    /// The keys that a row sees, of a sequence of `num_queries` queries and `num_keys` keys. May be empty.
    pub fn keys_of(self, row: usize, num_queries: usize, num_keys: usize) -> Range<usize> {
        let diagonal = row as i128 + num_keys as i128 - num_queries as i128;
        let within = |key: i128| key.clamp(0, num_keys as i128) as usize;
        let first = self.left.map_or(0, |left| within(diagonal - i128::from(left)));
        let end = self.right.map_or(num_keys, |right| within(diagonal + i128::from(right) + 1));
        first..end.max(first)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.left, self.right) {
            (None, None) => f.write_str("full"),
            (None, Some(0)) => f.write_str("causal"),
            (Some(left), Some(right)) => write!(f, "window {left}, {right}"),
            (Some(left), None) => write!(f, "window {left}, unbounded"),
            (None, Some(right)) => write!(f, "window unbounded, {right}"),
        }
    }
}

/// A problem: O = softmax(scale Q K^T) V, by sequence and head.
///
/// Query head h uses head h / (query heads / key heads) of K and V. A row that sees no key gets O = 0 and a log-sum-exp of
/// minus infinity.
///
/// Nothing of one sequence reaches another, whatever it holds. Within a sequence NaN and infinity of Q and K take the way that
/// IEEE 754 prescribes. Those of V may also reach rows whose window hides their key, if these or rows near them see a key near
/// it: kernels meet keys in tiles, and 0 times NaN is NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    /// Sequences of Q and O.
    pub queries: Sequences,
    /// Sequences of K and V: as many.
    pub keys: Sequences,
    /// Heads of Q and O.
    pub num_query_heads: usize,
    /// Heads of K and V.
    pub num_key_heads: usize,
    /// D: elements of a row of Q, K, V and O; a multiple of 8, at most [`MAX_HEAD_DIM`].
    pub head_dim: usize,
    /// The type of Q, K, V and O: bf16 or f16.
    pub dtype: Dtype,
    /// The keys that a row sees.
    pub window: Window,
    /// The factor of the scores Q K^T, positive.
    pub scale: f32,
    /// Scaled scores s become `softcap` tanh(s / `softcap`); positive.
    pub softcap: Option<f32>,
}

impl Attention {
    /// Full attention with the scale 1 / sqrt(D) and as many heads of keys as of queries, from a sequence to itself.
    pub fn new(sequences: Sequences, num_heads: usize, head_dim: usize, dtype: Dtype) -> Self {
        Self {
            queries: sequences.clone(),
            keys: sequences,
            num_query_heads: num_heads,
            num_key_heads: num_heads,
            head_dim,
            dtype,
            window: Window::FULL,
            scale: 1.0 / (head_dim.max(1) as f32).sqrt(),
            softcap: None,
        }
    }

    /// The same problem with the keys and values of other sequences, as many as there are of queries.
    pub fn with_keys(self, keys: Sequences) -> Self {
        Self { keys, ..self }
    }

    /// The same problem with `num_key_heads` heads of K and V, which divide the heads of Q: each is shared by as many query
    /// heads.
    pub fn with_key_heads(self, num_key_heads: usize) -> Self {
        Self { num_key_heads, ..self }
    }

    /// The same problem with another window.
    pub fn with_window(self, window: Window) -> Self {
        Self { window, ..self }
    }

    /// The same problem with another scale.
    pub fn with_scale(self, scale: f32) -> Self {
        Self { scale, ..self }
    }

    /// The same problem with a softcap.
    pub fn with_softcap(self, softcap: f32) -> Self {
        Self { softcap: Some(softcap), ..self }
    }

    /// The shape of Q and O.
    pub fn query_shape(&self) -> HeadsShape {
        let (batch, tokens) = self.queries.extents();
        HeadsShape { batch, tokens, heads: self.num_query_heads, head_dim: self.head_dim }
    }

    /// The shape of K and V.
    pub fn key_shape(&self) -> HeadsShape {
        let (batch, tokens) = self.keys.extents();
        HeadsShape { batch, tokens, heads: self.num_key_heads, head_dim: self.head_dim }
    }

    /// Rows and columns of the array of log-sum-exps, which is row-major without space between rows: `[batch, heads, Lq]`, or
    /// `[heads, tokens]` where queries are packed.
    pub fn lse_shape(&self) -> [usize; 2] {
        let (batch, tokens) = self.queries.extents();
        [batch.saturating_mul(self.num_query_heads), tokens]
    }

    /// The place of a row of O in the array of log-sum-exps.
    pub(crate) fn lse_index(&self, sequence: usize, head: usize, row: usize) -> usize {
        let (batch, token) = self.queries.place(sequence, row);
        (batch * self.num_query_heads + head) * self.queries.extents().1 + token
    }

    /// The head of K and V that a query head uses.
    pub fn key_head_of(&self, query_head: usize) -> usize {
        query_head / (self.num_query_heads / self.num_key_heads)
    }

    /// The keys that some of these rows, of which there is one, see by the window.
    pub(crate) fn keys_of_rows(&self, sequence: usize, rows: Range<usize>) -> Range<usize> {
        let (num_queries, num_keys) = (self.queries.len_of(sequence), self.keys.len_of(sequence));
        let of = |row: usize| self.window.keys_of(row, num_queries, num_keys);
        // From row to row, neither bound of what is seen moves backwards.
        let first = of(rows.start).start;
        first..of(rows.end - 1).end.max(first)
    }

    /// Pairs of a row and a key that it sees, over all sequences and heads: 4 D times as many operations.
    pub fn num_pairs(&self) -> u128 {
        let of_sequence = |sequence| {
            let (num_queries, num_keys) = (self.queries.len_of(sequence), self.keys.len_of(sequence));
            match self.window {
                Window::FULL => num_queries as u128 * num_keys as u128,
                window => (0..num_queries).map(|row| window.keys_of(row, num_queries, num_keys).len() as u128).sum(),
            }
        };
        let sum: u128 = match (&self.queries, &self.keys) {
            (Sequences::Equal { batch: 1.., .. }, Sequences::Equal { batch, .. }) => of_sequence(0) * *batch as u128,
            _ => (0..self.queries.num_sequences()).map(of_sequence).sum(),
        };
        sum * self.num_query_heads as u128
    }

    /// Whether the problem is one that kernels serve.
    ///
    /// # Errors
    /// The reason, where it is not.
    pub fn check(&self) -> Result<(), AttentionError> {
        if !matches!(self.dtype, Dtype::Bf16 | Dtype::F16) {
            return Err(AttentionError::Dtype { dtype: self.dtype });
        }
        if self.head_dim == 0 || self.head_dim > MAX_HEAD_DIM || !self.head_dim.is_multiple_of(8) {
            return Err(AttentionError::HeadDim { head_dim: self.head_dim });
        }
        let (query, key) = (self.num_query_heads, self.num_key_heads);
        if query == 0 || key == 0 || !query.is_multiple_of(key) {
            return Err(AttentionError::Heads { query, key });
        }
        // A scale so small or so large that it is no number once it is one for powers of 2 is none before, either.
        let is_factor = |factor: f32| factor > 0.0 && (factor / LN_2).is_finite();
        if !is_factor(self.scale) {
            return Err(AttentionError::Scale { scale: self.scale });
        }
        if let Some(softcap) = self.softcap.filter(|&softcap| !is_factor(softcap) || !is_factor(self.scale / softcap)) {
            return Err(AttentionError::Softcap { softcap });
        }
        self.queries.check(AttentionTensor::Q)?;
        self.keys.check(AttentionTensor::K)?;
        let (queries, keys) = (self.queries.num_sequences(), self.keys.num_sequences());
        if queries != keys {
            return Err(AttentionError::NumSequences { queries, keys });
        }
        self.check_sizes()
    }

    /// Whether a tensor has the problem's shape.
    pub(crate) fn check_shape(&self, tensor: AttentionTensor, found: HeadsShape) -> Result<(), AttentionError> {
        let expected = match tensor {
            AttentionTensor::Q | AttentionTensor::O => self.query_shape(),
            AttentionTensor::K | AttentionTensor::V => self.key_shape(),
        };
        if found == expected { Ok(()) } else { Err(AttentionError::OtherShape { tensor, expected, found }) }
    }

    /// Whether an array of log-sum-exps is the problem's.
    pub(crate) fn check_lse(&self, shape: Shape) -> Result<(), AttentionError> {
        let expected = self.lse_shape();
        let Shape { num_rows, num_cols, leading_dimension, layout } = shape;
        if [num_rows, num_cols] == expected && leading_dimension == num_cols && layout == Layout::RowMajor {
            return Ok(());
        }
        Err(AttentionError::LseShape { expected, found: [num_rows, num_cols, leading_dimension] })
    }

    /// Whether all coordinates are signed 32-bit numbers and all other numbers unsigned ones, where the last tile may reach
    /// over the edge.
    fn check_sizes(&self) -> Result<(), AttentionError> {
        use AttentionCount as Count;
        const EDGE: usize = 1024;
        // Of two lengths and a bound of the window, the sum still is a signed 32-bit number.
        let length = (1 << 30) - EDGE;
        let coordinate = i32::MAX as usize - EDGE;
        let most = |what, found: usize, most: usize| {
            if found <= most {
                return Ok(());
            }
            Err(AttentionError::TooMany { what, found: found as u64, most: most as u64 })
        };
        most(Count::Queries, self.queries.longest(), length)?;
        most(Count::Keys, self.keys.longest(), length)?;
        most(Count::Sequences, self.queries.num_sequences(), coordinate)?;
        most(Count::Heads, self.num_query_heads, coordinate)?;
        for sequences in [&self.queries, &self.keys] {
            most(Count::Tokens, sequences.extents().1, coordinate)?;
        }
        let [rows, cols] = self.lse_shape();
        most(Count::Rows, rows.saturating_mul(cols), u32::MAX as usize - EDGE)
    }
}

impl fmt::Display for Attention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { num_query_heads, num_key_heads, head_dim, dtype, window, queries, keys, .. } = self;
        write!(f, "attention {dtype} {window}, {queries} queries")?;
        if queries != keys {
            write!(f, ", {keys} keys")?;
        }
        write!(f, ", {num_query_heads}")?;
        if num_query_heads != num_key_heads {
            write!(f, "/{num_key_heads}")?;
        }
        write!(f, " heads of {head_dim}")?;
        match self.softcap {
            Some(softcap) => write!(f, ", softcap {softcap}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem() -> Attention {
        Attention::new(Sequences::Equal { batch: 2, len: 100 }, 4, 128, Dtype::Bf16)
    }

    #[track_caller]
    fn says(problem: Attention, sentence: &str) {
        assert_eq!(problem.check().expect_err("a refusal").to_string(), sentence);
    }

    #[test]
    fn refusals_are_sentences() {
        assert_eq!(problem().check(), Ok(()));
        says(Attention { dtype: Dtype::F32, ..problem() }, "the attention kernels take bf16 and f16, not f32");
        for head_dim in [0, 4, 100, 264] {
            says(
                Attention { head_dim, ..problem() },
                &format!(
                    "the attention kernels take head dimensions that are multiples of 8 up to 256, not {head_dim}"
                ),
            );
        }
        says(
            problem().with_key_heads(3),
            "4 query heads cannot be divided among 3 heads of keys: give one or more, and a multiple",
        );
        assert!(problem().with_key_heads(0).check().is_err());
        says(problem().with_scale(-1.0), "the scale is -1, but must be a positive number");
        assert!(problem().with_scale(f32::NAN).check().is_err());
        says(problem().with_softcap(0.0), "the softcap is 0, but must be a positive number");
        says(problem().with_keys(Sequences::of_lengths(&[1, 2, 3])), "there are queries of 2 sequences, but keys of 3");
        let packed = |offsets: &[usize]| problem().with_keys(Sequences::Packed { offsets: offsets.to_vec() });
        says(packed(&[1, 2, 3]), "the first packed sequence of K begins at token 1, but must begin at 0");
        says(packed(&[0, 5, 3]), "sequence 1 of K begins at token 5 and ends at 3: offsets must not decrease");
        let none = "packed sequences have one offset more than there are sequences, but K has none at all";
        says(packed(&[]), none);
        let decreasing = Attention { queries: Sequences::Packed { offsets: vec![0, 4, 2] }, ..problem() };
        says(decreasing, "sequence 1 of Q begins at token 4 and ends at 2: offsets must not decrease");
    }

    #[test]
    fn sizes_are_refused_with_the_numbers() {
        says(
            problem().with_keys(Sequences::with_room(64, &[64, 70])),
            "sequence 1 of K has 70 tokens, but there is room for 64",
        );
        let long = |len| problem().with_keys(Sequences::Equal { batch: 2, len });
        assert_eq!(long(1 << 20).check(), Ok(()));
        assert_eq!(
            long(1 << 30).check().expect_err("a refusal").to_string(),
            "there are 1073741824 keys in a sequence, but a kernel can number 1073740800 at most"
        );
        let many = Attention::new(Sequences::of_lengths(&[1 << 29; 4]), 4, 128, Dtype::F16);
        assert_eq!(
            many.check().expect_err("a refusal").to_string(),
            "there are 2147483648 packed tokens, but a kernel can number 2147482623 at most"
        );
        let rows = Attention::new(Sequences::Equal { batch: 1 << 12, len: 1 << 16 }, 32, 64, Dtype::F16);
        assert_eq!(
            rows.check().expect_err("a refusal").to_string(),
            "there are 8589934592 rows of O, but a kernel can number 4294966271 at most"
        );
    }

    #[test]
    fn windows_are_aligned_at_the_last_row() {
        assert_eq!(Window::CAUSAL.keys_of(0, 4, 4), 0..1);
        assert_eq!(Window::CAUSAL.keys_of(3, 4, 10), 0..10);
        assert_eq!(Window::CAUSAL.keys_of(0, 4, 10), 0..7);
        assert!(Window::CAUSAL.keys_of(5, 10, 4).is_empty());
        assert_eq!(Window::CAUSAL.keys_of(6, 10, 4), 0..1);
        assert_eq!(Window::sliding(2).keys_of(9, 10, 10), 7..10);
        assert_eq!(Window { left: Some(1), right: Some(2) }.keys_of(4, 10, 10), 3..7);
        assert!(Window { left: Some(0), right: None }.keys_of(0, 1, 0).is_empty());
        assert_eq!(Window { left: Some(u32::MAX), right: Some(u32::MAX) }.keys_of(7, 10, 10), 0..10);
    }

    #[test]
    fn pairs_are_counted() {
        assert_eq!(problem().num_pairs(), 2 * 4 * 100 * 100);
        assert_eq!(problem().with_window(Window::CAUSAL).num_pairs(), 2 * 4 * 5050);
        let packed = Attention::new(Sequences::of_lengths(&[3, 0, 5]), 1, 64, Dtype::F16);
        assert_eq!(packed.num_pairs(), 9 + 25);
    }

    #[test]
    fn a_problem_prints_what_is_special() {
        assert_eq!(problem().to_string(), "attention bf16 full, 2 x 100 queries, 4 heads of 128");
        let special = problem()
            .with_keys(Sequences::of_lengths(&[7, 8]))
            .with_key_heads(2)
            .with_window(Window::sliding(9))
            .with_softcap(30.0);
        assert_eq!(
            special.to_string(),
            "attention bf16 window 9, 0, 2 x 100 queries, 2 packed, 15 in all keys, 4/2 heads of 128, softcap 30"
        );
        let cache = problem().with_keys(Sequences::with_room(512, &[7, 8]));
        assert_eq!(
            cache.to_string(),
            "attention bf16 full, 2 x 100 queries, 2 with room for 512 each, 15 in all keys, 4 heads of 128"
        );
    }
}
