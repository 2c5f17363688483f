//! One tile of rows, from its queries to its rows of O.

use core::f32::consts::{LN_2, LOG2_E};
use core::ops::Range;

use super::exp::{exp2, tanh};
use super::products::{LANES, Left, Product};
use super::{Place, ROWS};
use crate::cpu::simd::{InstructionSet, Path, Vectorised};
use crate::element::{Element, widen_all};
use crate::formats::HeadsView;
use crate::ops::attention::Attention;

/// Keys that are taken together.
const KEYS: usize = 64;

/// The keys that a tile's rows see, ascending, apart from what the window hides from some of them.
pub(super) enum TileKeys {
    /// Consecutive ones.
    Range(Range<usize>),
    /// These.
    Listed(Vec<usize>),
}

/// Some rows of one head of one sequence.
pub(super) struct Tile<'a, T> {
    pub(super) problem: &'a Attention,
    /// Q, K and V.
    pub(super) tensors: [HeadsView<'a, T>; 3],
    pub(super) place: Place,
}

/// What a thread computes in. A row of the tile is a lane; there is a multiple of [`LANES`], and those that stand for no row hold zeros.
pub(super) struct Buffers {
    /// Columns of a row of V and O, D and zeros.
    width: usize,
    /// Q, transposed: a line of lanes for each of D elements.
    queries: Vec<f32>,
    /// K and V, a line for each key.
    keys: Vec<f32>,
    values: Vec<f32>,
    /// A line of lanes for each key: scores, then their powers.
    scores: Vec<f32>,
    /// Rows of O under the greatest score so far.
    sums: Vec<f32>,
    state: State,
}

/// By lane.
struct State {
    /// The keys that the row sees: the first, and behind the last.
    first_key: [u32; ROWS],
    end_key: [u32; ROWS],
    /// The greatest score so far, for powers of 2.
    max: [f32; ROWS],
    /// The sum of powers so far.
    sum: [f32; ROWS],
    /// What earlier sums are multiplied by.
    factor: [f32; ROWS],
    /// Not 0 where the row has seen a key.
    seen: [u32; ROWS],
}

impl Buffers {
    pub(super) fn new(head_dim: usize) -> Self {
        let width = head_dim.next_multiple_of(LANES);
        let (lanes, numbers) = ([0.0; ROWS], [0; ROWS]);
        let state =
            State { first_key: numbers, end_key: numbers, max: lanes, sum: lanes, factor: lanes, seen: numbers };
        Self {
            width,
            queries: vec![0.0; head_dim * ROWS],
            keys: vec![0.0; KEYS * head_dim],
            values: vec![0.0; KEYS * width],
            scores: vec![0.0; KEYS * ROWS],
            sums: vec![0.0; ROWS * width],
            state,
        }
    }
}

impl TileKeys {
    fn len(&self) -> usize {
        match self {
            Self::Range(range) => range.len(),
            Self::Listed(keys) => keys.len(),
        }
    }

    fn key(&self, at: usize) -> usize {
        match self {
            Self::Range(range) => range.start + at,
            Self::Listed(keys) => keys[at],
        }
    }
}

impl<T: Element> Tile<'_, T> {
    /// Leaves the rows' sums and their states in `buffers`.
    pub(super) fn attend(&self, path: Path, keys: &TileKeys, buffers: &mut Buffers) {
        let num_lanes = self.place.num_rows.next_multiple_of(LANES);
        self.begin(num_lanes, buffers);
        let scale = match self.problem.softcap {
            None => Scale { factor: self.problem.scale * LOG2_E, cap: None },
            Some(softcap) => Scale { factor: self.problem.scale / softcap, cap: Some(softcap * LOG2_E) },
        };
        let mut numbers = [0u32; KEYS];
        for first in (0..keys.len()).step_by(KEYS) {
            let numbers = &mut numbers[..KEYS.min(keys.len() - first)];
            for (at, number) in numbers.iter_mut().enumerate() {
                // Fewer than 2^30: the problem has been checked.
                *number = keys.key(first + at) as u32;
            }
            self.load(numbers, buffers);
            let (num_rows, head_dim) = (self.place.num_rows, self.problem.head_dim);
            take_block(path, Block { scale, numbers, num_rows, num_lanes, head_dim, buffers });
        }
    }

    /// Loads Q, and sets the state to that of no key.
    fn begin(&self, num_lanes: usize, buffers: &mut Buffers) {
        let Self { problem, place, .. } = self;
        let (num_queries, num_keys) = (problem.queries.len_of(place.sequence), problem.keys.len_of(place.sequence));
        let Buffers { width, queries, keys, sums, state, .. } = buffers;
        let queries = &mut queries[..problem.head_dim * num_lanes];
        queries.fill(0.0);
        // Not yet in use.
        let row_of_q = &mut keys[..problem.head_dim];
        for (lane, row) in place.rows().enumerate() {
            let (batch, token) = problem.queries.place(place.sequence, row);
            widen_all(self.tensors[0].row(batch, token, place.head), row_of_q);
            for (line, &element) in queries.chunks_exact_mut(num_lanes).zip(row_of_q.iter()) {
                line[lane] = element;
            }
            let seen = problem.window.keys_of(row, num_queries, num_keys);
            (state.first_key[lane], state.end_key[lane]) = (seen.start as u32, seen.end as u32);
        }
        sums[..num_lanes * *width].fill(0.0);
        state.max.fill(f32::NEG_INFINITY);
        state.sum.fill(0.0);
        state.seen.fill(0);
    }

    /// Loads the rows of K and V that have these numbers.
    fn load(&self, numbers: &[u32], buffers: &mut Buffers) {
        let Self { problem, tensors: [_, k, v], place } = self;
        let Buffers { width, keys, values, .. } = buffers;
        let (head_dim, key_head) = (problem.head_dim, problem.key_head_of(place.head));
        let lines = keys.chunks_exact_mut(head_dim).zip(values.chunks_exact_mut(*width));
        for (&number, (key, value)) in numbers.iter().zip(lines) {
            let (batch, token) = problem.keys.place(place.sequence, number as usize);
            widen_all(k.row(batch, token, key_head), key);
            widen_all(v.row(batch, token, key_head), &mut value[..head_dim]);
        }
    }

    /// Rows of O, and their log-sum-exps where there is room for them.
    pub(super) fn store(&self, buffers: &Buffers, rows: &mut [&mut [T]], lse: &mut [f32]) {
        let Buffers { width, sums, state, .. } = buffers;
        for (lane, (row, sums)) in rows.iter_mut().zip(sums.chunks_exact(*width)).enumerate() {
            let (max, sum) = (state.max[lane], state.sum[lane]);
            let lse_of_row = if state.seen[lane] == 0 {
                row.fill(T::ZERO);
                f32::NEG_INFINITY
            } else {
                row.iter_mut().zip(sums).for_each(|(to, element)| *to = T::from_f32(element / sum));
                // Of infinitely small scores alone the softmax is 0 / 0.
                if max == f32::NEG_INFINITY { f32::NAN } else { max * LN_2 + sum.ln() }
            };
            if let Some(to) = lse.get_mut(lane) {
                *to = lse_of_row;
            }
        }
    }
}

/// Keys that have been loaded, for a tile's rows.
struct Block<'a> {
    scale: Scale,
    numbers: &'a [u32],
    num_rows: usize,
    num_lanes: usize,
    head_dim: usize,
    buffers: &'a mut Buffers,
}

/// Takes some keys in. Nothing here depends on the type of an element, so that it is compiled with the library, as that is.
fn take_block(path: Path, block: Block<'_>) {
    path.run(block);
}

impl Vectorised for Block<'_> {
    #[inline(always)]
    fn run<I: InstructionSet>(self) {
        let Self { scale, numbers, num_rows, num_lanes, head_dim, buffers } = self;
        let Buffers { width, queries, keys, values, scores, sums, state } = buffers;
        let scores = &mut scores[..numbers.len() * num_lanes];
        scores.fill(0.0);
        let product = Product {
            left: Left { data: keys, row_stride: head_dim, step_stride: 1 },
            right: queries,
            num_rows: numbers.len(),
            depth: head_dim,
            width: num_lanes,
        };
        product.add_to::<I>(scores);
        state.take::<I>(scale, numbers, scores, num_lanes);
        for (row, &factor) in sums.chunks_exact_mut(*width).zip(&state.factor[..num_lanes]) {
            row.iter_mut().for_each(|sum| *sum *= factor);
        }
        let product = Product {
            left: Left { data: scores, row_stride: 1, step_stride: num_lanes },
            right: values,
            num_rows,
            depth: numbers.len(),
            width: *width,
        };
        product.add_to::<I>(sums);
    }
}

/// From products to scores, for powers of 2: `factor` times a product, or `cap` times the hyperbolic tangent of that.
#[derive(Clone, Copy)]
struct Scale {
    factor: f32,
    cap: Option<f32>,
}

impl State {
    /// Replaces products by powers of 2 of scores under the greatest so far; what a lane does not see by 0.
    #[inline(always)]
    fn take<I: InstructionSet>(&mut self, scale: Scale, numbers: &[u32], scores: &mut [f32], num_lanes: usize) {
        let before = self.max;
        for (&number, line) in numbers.iter().zip(scores.chunks_exact_mut(num_lanes)) {
            match scale.cap {
                None => line.iter_mut().for_each(|score| *score *= scale.factor),
                Some(cap) => line.iter_mut().for_each(|score| *score = cap * tanh::<I>(scale.factor * *score)),
            }
            let bounds = self.first_key.iter().zip(&self.end_key);
            let states = self.max.iter_mut().zip(&mut self.seen);
            for ((score, (max, seen)), (&first, &end)) in line.iter_mut().zip(states).zip(bounds) {
                let sees = (first <= number) & (number < end);
                *seen |= u32::from(sees);
                *score = if sees { *score } else { f32::NEG_INFINITY };
                *max = if *score > *max { *score } else { *max };
            }
        }
        // Of no score yet, none is subtracted: infinity minus infinity is no number.
        let finite = |max: f32| if max == f32::NEG_INFINITY { 0.0 } else { max };
        for ((factor, before), &max) in self.factor.iter_mut().zip(before).zip(&self.max) {
            *factor = exp2::<I>(before - finite(max));
        }
        let mut sums = [0f32; ROWS];
        for line in scores.chunks_exact_mut(num_lanes) {
            for ((score, sum), &max) in line.iter_mut().zip(&mut sums).zip(&self.max) {
                *score = exp2::<I>(*score - finite(max));
                *sum += *score;
            }
        }
        for ((sum, &factor), added) in self.sum.iter_mut().zip(&self.factor).zip(sums) {
            *sum = *sum * factor + added;
        }
    }
}
