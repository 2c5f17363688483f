//! O = softmax(scale Q K^T) V, row by row: exactly, and as a textbook would in the types of the kernels.
//!
//! [`attention`] computes rows in float64. [`textbook`] computes them from 16-bit inputs with scores, exponentials and sums
//! in f32, each exponential rounded to 16 bits before it meets V, and O rounded at the end: what any kernel for tensor cores
//! must lose. How far that is from the exact rows is the yardstick for a kernel ([`tolerance`]).
//!
//! ```
//! use hopper_sparse::formats::{Heads, HeadsLayout};
//! use hopper_sparse::ops::attention::{Attention, Sequences, Window};
//! use hopper_sparse::reference::attention;
//! use hopper_sparse::{Dtype, bf16};
//!
//! let problem = Attention::new(Sequences::of_lengths(&[3, 5]), 2, 8, Dtype::Bf16).with_window(Window::CAUSAL);
//! let ones = Heads::from_vec(vec![bf16::ONE; 8 * 2 * 8], problem.key_shape(), HeadsLayout::TokensHeads)?;
//! let rows = attention::rows(&problem);
//! let exact = attention::attention(&problem, ones.view(), ones.view(), ones.view(), &rows)?;
//! assert!(exact.values().data().iter().all(|&value| (value - 1.0).abs() < 1e-12));
//! assert!((exact.lse()[2] - (8f64.sqrt() + 3f64.ln())).abs() < 1e-6);
//! # Ok::<(), hopper_sparse::Error>(())
//! ```

use rayon::prelude::*;

use super::error::rounding;
use super::{ErrorReport, Exact, Tolerance};
use crate::element::{Dtype, Element, widen_all};
use crate::formats::{Dense, DenseView, HeadsView, Layout};
use crate::ops::attention::{Attention, AttentionError, AttentionTensor};

/// A row of O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttentionRow {
    /// The sequence, from 0.
    pub sequence: usize,
    /// The head of Q.
    pub head: usize,
    /// The query, counted in the sequence.
    pub row: usize,
}

/// Every row of a problem's O: by sequence, head and query.
pub fn rows(problem: &Attention) -> Vec<AttentionRow> {
    let mut rows = Vec::new();
    for sequence in 0..problem.queries.num_sequences() {
        for head in 0..problem.num_query_heads {
            rows.extend((0..problem.queries.len_of(sequence)).map(|row| AttentionRow { sequence, head, row }));
        }
    }
    rows
}

/// About `count` rows of a problem's O, at most a row a place, where all are too many: the first and the last of some heads,
/// and others at pseudo-random places that `seed` decides.
pub fn some_rows(problem: &Attention, count: usize, seed: u64) -> Vec<AttentionRow> {
    let (num_sequences, num_heads) = (problem.queries.num_sequences(), problem.num_query_heads);
    let mut state = seed;
    // The SplitMix64 generator of Steele, Lea and Flood (OOPSLA 2014).
    let mut below = |bound: usize| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    };
    let mut rows = Vec::with_capacity(count);
    for index in 0..if num_sequences * num_heads == 0 { 0 } else { count } {
        let (sequence, head) = (below(num_sequences), below(num_heads));
        let len = problem.queries.len_of(sequence);
        let row = match index % 8 {
            _ if len == 0 => continue,
            0 => 0,
            1 => len - 1,
            _ => below(len),
        };
        rows.push(AttentionRow { sequence, head, row });
    }
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// Rows of the exact O, and the logarithm of each row's sum of exponentials.
#[derive(Clone, Debug)]
pub struct AttentionExact {
    rows: Vec<AttentionRow>,
    problem: Attention,
    /// The magnitude in the place of each value is what rounding each exponential changes it by, in units of a rounding: the
    /// square root of the sum of squares.
    values: Exact,
    /// The magnitude in the place of each is the largest sum of |scale q k|, and what a softcap adds to it.
    lse: Exact,
}

impl AttentionExact {
    /// The rows that are held.
    pub fn rows(&self) -> &[AttentionRow] {
        &self.rows
    }

    /// The values of these rows, in their order.
    pub fn values(&self) -> &Dense<f64> {
        &self.values.values
    }

    /// The log-sum-exps of these rows, in their order.
    pub fn lse(&self) -> &[f64] {
        self.lse.values.data()
    }

    /// Compares the rows that are held with those of a result. The report's rows are places in the array of log-sum-exps.
    ///
    /// # Errors
    /// [`AttentionError::OtherShape`] where `found` does not have the shape of O.
    pub fn compare<T: Element>(&self, found: HeadsView<'_, T>) -> Result<ErrorReport, AttentionError> {
        self.problem.check_shape(AttentionTensor::O, found.shape())?;
        Ok(ErrorReport::of_rows(&self.values, |index, col| {
            let AttentionRow { sequence, head, row } = self.rows[index];
            let (batch, token) = self.problem.queries.place(sequence, row);
            found.row(batch, token, head)[col]
        }))
    }

    /// Compares the log-sum-exps of the rows that are held with an array of all.
    ///
    /// # Errors
    /// [`AttentionError::LseShape`] where `found` is not such an array.
    pub fn compare_lse(&self, found: DenseView<'_, f32>) -> Result<ErrorReport, AttentionError> {
        self.problem.check_lse(found.shape)?;
        Ok(ErrorReport::of_rows(&self.lse, |index, _| found.data()[self.lse.rows[index]]))
    }
}

/// What a kernel may err by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionTolerance {
    /// For O.
    pub values: Tolerance,
    /// For the log-sum-exps.
    pub lse: Tolerance,
}

/// The keys that a row sees, ascending, where a problem's window does not say it all.
pub type KeysOfRow<'a> = dyn Fn(AttentionRow) -> Vec<usize> + Sync + 'a;

/// The problem's tensors, of the problem's shapes.
#[derive(Clone, Copy)]
struct Inputs<'a, T> {
    problem: &'a Attention,
    keys_of: Option<&'a KeysOfRow<'a>>,
    q: HeadsView<'a, T>,
    k: HeadsView<'a, T>,
    v: HeadsView<'a, T>,
}

/// What a row sees: its query, and its keys and values.
struct Seen<'a, T> {
    query: &'a [T],
    keys: Vec<(&'a [T], &'a [T])>,
}

impl<'a, T: Element> Inputs<'a, T> {
    fn new(
        problem: &'a Attention,
        [q, k, v]: [HeadsView<'a, T>; 3],
        keys_of: Option<&'a KeysOfRow<'a>>,
    ) -> Result<Self, AttentionError> {
        problem.check()?;
        let tensors = [(AttentionTensor::Q, q), (AttentionTensor::K, k), (AttentionTensor::V, v)];
        tensors.into_iter().try_for_each(|(tensor, view)| problem.check_shape(tensor, view.shape()))?;
        Ok(Self { problem, keys_of, q, k, v })
    }

    fn seen(&self, at: AttentionRow) -> Seen<'a, T> {
        let (problem, AttentionRow { sequence, head, row }) = (self.problem, at);
        let (num_queries, num_keys) = (problem.queries.len_of(sequence), problem.keys.len_of(sequence));
        assert!(row < num_queries, "row {row} of {num_queries} of sequence {sequence}");
        let (batch, token) = problem.queries.place(sequence, row);
        let key_head = problem.key_head_of(head);
        let rows_of = |key| {
            let (batch, token) = problem.keys.place(sequence, key);
            (self.k.row(batch, token, key_head), self.v.row(batch, token, key_head))
        };
        let keys = match self.keys_of {
            Some(keys_of) => keys_of(at).into_iter().map(rows_of).collect(),
            None => problem.window.keys_of(row, num_queries, num_keys).map(rows_of).collect(),
        };
        Seen { query: self.q.row(batch, token, head), keys }
    }
}

/// O = softmax(scale Q K^T) V in float64, of some rows.
///
/// A key that a row does not see has no part in it, whatever it holds. Apart from that NaN and infinity take the way that IEEE
/// 754 prescribes.
///
/// # Errors
/// As [`Attention::check`]; [`AttentionError::OtherShape`].
///
/// # Panics
/// Where one of `rows` is not a row of O.
pub fn attention<T: Element>(
    problem: &Attention,
    q: HeadsView<'_, T>,
    k: HeadsView<'_, T>,
    v: HeadsView<'_, T>,
    rows: &[AttentionRow],
) -> Result<AttentionExact, AttentionError> {
    Ok(exact_rows(Inputs::new(problem, [q, k, v], None)?, rows))
}

/// As [`attention`], where rows see other keys than the window says.
///
/// # Errors
/// As [`attention`].
///
/// # Panics
/// As [`attention`], and where `keys_of` names a key that there is not.
pub fn attention_to<T: Element>(
    problem: &Attention,
    tensors: [HeadsView<'_, T>; 3],
    rows: &[AttentionRow],
    keys_of: &KeysOfRow<'_>,
) -> Result<AttentionExact, AttentionError> {
    Ok(exact_rows(Inputs::new(problem, tensors, Some(keys_of))?, rows))
}

fn exact_rows<T: Element>(inputs: Inputs<'_, T>, rows: &[AttentionRow]) -> AttentionExact {
    let problem = inputs.problem;
    let exact: Vec<ExactRow> = rows.par_iter().map(|&row| exact_row(problem, &inputs.seen(row))).collect();
    let places: Vec<usize> = rows.iter().map(|row| problem.lse_index(row.sequence, row.head, row.row)).collect();
    let dense = |num_cols, of: fn(&ExactRow) -> &[f64]| {
        let mut dense = Dense::zeros(exact.len(), num_cols, Layout::RowMajor);
        let values = exact.iter().flat_map(of);
        dense.data_mut().iter_mut().zip(values).for_each(|(to, &value)| *to = value);
        dense
    };
    let exact = |num_cols, values: fn(&ExactRow) -> &[f64], magnitudes: fn(&ExactRow) -> &[f64]| Exact {
        rows: places.clone(),
        num_rows: problem.lse_shape().into_iter().product(),
        values: dense(num_cols, values),
        magnitudes: dense(num_cols, magnitudes),
    };
    AttentionExact {
        rows: rows.to_vec(),
        problem: problem.clone(),
        values: exact(problem.head_dim, |row| &row.values, |row| &row.magnitudes),
        lse: exact(1, |row| &row.lse, |row| &row.lse_magnitude),
    }
}

/// One row of an [`AttentionExact`].
struct ExactRow {
    values: Vec<f64>,
    magnitudes: Vec<f64>,
    lse: [f64; 1],
    lse_magnitude: [f64; 1],
}

fn exact_row<T: Element>(problem: &Attention, seen: &Seen<'_, T>) -> ExactRow {
    let scale = f64::from(problem.scale);
    let query: Vec<f64> = seen.query.iter().map(|element| element.to_f64()).collect();
    let mut widened = vec![0f32; query.len()];
    let mut lse_magnitude = 0f64;
    let scores: Vec<f64> = seen
        .keys
        .iter()
        .map(|(key, _)| {
            widen_all(key, &mut widened);
            let [sum, magnitude] = product(&query, &widened);
            lse_magnitude = lse_magnitude.max(scale * magnitude);
            let score = scale * sum;
            problem.softcap.map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh())
        })
        .collect();
    // The cap itself is what a tanh close to 0 may be rounded beside.
    lse_magnitude += problem.softcap.map_or(0.0, |cap| 2.0 * f64::from(cap));
    let (mut values, mut squares) = (vec![0.0; query.len()], vec![0.0; query.len()]);
    if scores.is_empty() {
        return ExactRow { values, magnitudes: squares, lse: [f64::NEG_INFINITY], lse_magnitude: [lse_magnitude] };
    }
    let largest = largest(&scores);
    let exponentials: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    for (exponential, (_, value)) in exponentials.iter().zip(&seen.keys) {
        widen_all(value, &mut widened);
        let weight = exponential / sum;
        for ((to, square), &element) in values.iter_mut().zip(&mut squares).zip(&widened) {
            let term = weight * f64::from(element);
            *to += term;
            *square += term * term;
        }
    }
    let magnitudes = squares.iter().map(|square: &f64| square.sqrt()).collect();
    ExactRow { values, magnitudes, lse: [largest + sum.ln()], lse_magnitude: [lse_magnitude] }
}

/// The product of two rows, and of their magnitudes, in eight sums each that a processor adds to side by side. Rows have a
/// multiple of eight elements.
fn product(a: &[f64], b: &[f32]) -> [f64; 2] {
    let (mut sums, mut magnitudes) = ([0f64; 8], [0f64; 8]);
    for (a, b) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        for lane in 0..8 {
            let term = a[lane] * f64::from(b[lane]);
            sums[lane] += term;
            magnitudes[lane] += term.abs();
        }
    }
    [sums.iter().sum(), magnitudes.iter().sum()]
}

/// The largest number; NaN where there is one, unlike `f64::max`.
fn largest(numbers: &[f64]) -> f64 {
    numbers
        .iter()
        .fold(f64::NEG_INFINITY, |largest, &number| if number > largest || number.is_nan() { number } else { largest })
}

/// Rows of O and their log-sum-exps as a textbook computes them in the kernels' types, in the order of `rows`.
///
/// # Errors
/// As [`attention`].
///
/// # Panics
/// As [`attention`].
pub fn textbook<T: Element>(
    problem: &Attention,
    q: HeadsView<'_, T>,
    k: HeadsView<'_, T>,
    v: HeadsView<'_, T>,
    rows: &[AttentionRow],
) -> Result<(Dense<T>, Vec<f32>), AttentionError> {
    Ok(textbook_rows(Inputs::new(problem, [q, k, v], None)?, rows))
}

fn textbook_rows<T: Element>(inputs: Inputs<'_, T>, rows: &[AttentionRow]) -> (Dense<T>, Vec<f32>) {
    let problem = inputs.problem;
    let computed: Vec<(Vec<T>, f32)> = rows.par_iter().map(|&row| textbook_row(problem, &inputs.seen(row))).collect();
    let mut values = Dense::zeros(rows.len(), problem.head_dim, Layout::RowMajor);
    for ((row, _), to) in computed.iter().zip(values.data_mut().chunks_exact_mut(problem.head_dim)) {
        to.copy_from_slice(row);
    }
    (values, computed.into_iter().map(|(_, lse)| lse).collect())
}

fn textbook_row<T: Element>(problem: &Attention, seen: &Seen<'_, T>) -> (Vec<T>, f32) {
    if seen.keys.is_empty() {
        return (vec![T::ZERO; seen.query.len()], f32::NEG_INFINITY);
    }
    let query: Vec<f32> = seen.query.iter().map(|element| element.to_f32()).collect();
    let scores: Vec<f32> = textbook_products(&query, &seen.keys)
        .map(|product| {
            let score = problem.scale * product;
            problem.softcap.map_or(score, |cap| cap * (score / cap).tanh())
        })
        .collect();
    let largest =
        scores.iter().fold(f32::NEG_INFINITY, |most, &score| if score > most || score.is_nan() { score } else { most });
    let mut sum = 0f32;
    let (mut values, mut widened) = (vec![0f32; query.len()], vec![0f32; query.len()]);
    for (score, (_, value)) in scores.iter().zip(&seen.keys) {
        let exponential = (score - largest).exp();
        sum += exponential;
        let rounded = T::from_f32(exponential).to_f32();
        widen_all(value, &mut widened);
        for (to, element) in values.iter_mut().zip(&widened) {
            *to += rounded * element;
        }
    }
    (values.iter().map(|value| T::from_f32(value / sum)).collect(), largest + sum.ln())
}

/// The product of a row with each key, every one summed in the order of the elements. Four keys at a time: a processor
/// adds to one sum while it waits for another.
fn textbook_products<T: Element>(query: &[f32], keys: &[(&[T], &[T])]) -> impl Iterator<Item = f32> {
    const KEYS: usize = 4;
    let mut widened = vec![0f32; KEYS * query.len()];
    keys.chunks(KEYS).flat_map(move |keys| {
        for ((key, _), to) in keys.iter().zip(widened.chunks_exact_mut(query.len())) {
            widen_all(key, to);
        }
        let rows: [&[f32]; KEYS] = core::array::from_fn(|key| &widened[key * query.len()..][..query.len()]);
        let mut sums = [0f32; KEYS];
        for (at, element) in query.iter().enumerate() {
            for (sum, row) in sums.iter_mut().zip(rows) {
                *sum += element * row[at];
            }
        }
        sums.into_iter().take(keys.len())
    })
}

/// From so many rows on, roundings are on average what they are on average.
const MANY_ROWS: usize = 64;

/// What a kernel may err by, given what it reads and rows of the exact result: twice what the textbook does, and never less
/// than the unavoidable roundings, since the textbook may be lucky.
///
/// The roundings of O are one of the value to its type and one of each exponential, which add up as independent ones do; half
/// of that where there are many rows. Those of a log-sum-exp are a few of itself and of the scores' terms to f32, and
/// what the hardware's exp2 and log2 err by.
///
/// # Errors
/// As [`attention`].
pub fn tolerance<T: Element>(
    problem: &Attention,
    q: HeadsView<'_, T>,
    k: HeadsView<'_, T>,
    v: HeadsView<'_, T>,
    exact: &AttentionExact,
) -> Result<AttentionTolerance, AttentionError> {
    Ok(tolerance_of(Inputs::new(problem, [q, k, v], None)?, exact))
}

/// As [`tolerance`], where rows see other keys than the window says.
///
/// # Errors
/// As [`attention`].
///
/// # Panics
/// As [`attention_to`].
pub fn tolerance_to<T: Element>(
    problem: &Attention,
    tensors: [HeadsView<'_, T>; 3],
    exact: &AttentionExact,
    keys_of: &KeysOfRow<'_>,
) -> Result<AttentionTolerance, AttentionError> {
    Ok(tolerance_of(Inputs::new(problem, tensors, Some(keys_of))?, exact))
}

fn tolerance_of<T: Element>(inputs: Inputs<'_, T>, exact: &AttentionExact) -> AttentionTolerance {
    let (values, lse) = textbook_rows(inputs, &exact.rows);
    let of_values = ErrorReport::of_rows(&exact.values, |index, col| values.get(index, col));
    let of_lse = ErrorReport::of_rows(&exact.lse, |index, _| lse[index]);
    let rounding_of_row = |value, magnitude| rounding(value, T::DTYPE) + rounding(magnitude, T::DTYPE);
    let mut values = Tolerance::with_floor(&of_values, &exact.values, rounding_of_row);
    if exact.rows.len() >= MANY_ROWS {
        let average = |value, magnitude| rounding_of_row(value, magnitude) / 2.0;
        let averaged = Tolerance::with_floor(&of_values, &exact.values, average);
        values.relative_frobenius = averaged.relative_frobenius;
    }
    let lse = Tolerance::with_floor(&of_lse, &exact.lse, |value, magnitude| {
        // 2^-21: two of the approximations, each of which is exact to about 2^-22.
        4.0 * (rounding(value, Dtype::F32) + rounding(magnitude, Dtype::F32)) + 2f64.powi(-21)
    });
    AttentionTolerance { values, lse }
}

#[cfg(test)]
mod tests;
