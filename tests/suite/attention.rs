//! Attention by the GPU kernels, on whatever runs them: a device, or the simulator.

use std::collections::HashSet;

use hopper_sparse::formats::{DenseView, DenseViewMut, HeadsShape, HeadsStrides, HeadsView, HeadsViewMut, Layout};
use hopper_sparse::ops::attention::{Attention, Sequences, Window};
use hopper_sparse::reference::attention::{self as reference, AttentionRow};
use hopper_sparse::{Element, Result};

use super::operands::Random;

/// Plans a problem and runs its kernel.
pub trait Runner {
    /// O = softmax(scale Q K^T) V, and the log-sum-exps where there is an array for them.
    fn attend<T: Element>(
        &self,
        problem: &Attention,
        tensors: [HeadsView<'_, T>; 3],
        o: &mut HeadsViewMut<'_, T>,
        lse: Option<&mut DenseViewMut<'_, f32>>,
    ) -> Result<()>;
}

/// How a tensor lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadsPlacement {
    /// `[batch, tokens, heads, head_dim]`.
    Tokens,
    /// `[batch, heads, tokens, head_dim]`.
    Heads,
    /// `[batch, tokens, heads, head_dim]`, eight elements between rows and 24 between tokens.
    TokensApart,
    /// `[batch, heads, tokens, head_dim]`, eight elements between rows and 40 between heads.
    HeadsApart,
}

impl HeadsPlacement {
    pub const ALL: [Self; 4] = [Self::Tokens, Self::Heads, Self::TokensApart, Self::HeadsApart];

    fn strides(self, shape: HeadsShape) -> HeadsStrides {
        let HeadsShape { tokens, heads, head_dim, .. } = shape;
        let (row, line) = match self {
            Self::Tokens | Self::Heads => (head_dim, 0),
            Self::TokensApart => (head_dim + 8, 24),
            Self::HeadsApart => (head_dim + 8, 40),
        };
        match self {
            Self::Tokens | Self::TokensApart => {
                HeadsStrides { batch: tokens * (heads * row + line), token: heads * row + line, head: row }
            }
            Self::Heads | Self::HeadsApart => {
                HeadsStrides { batch: heads * (tokens * row + line), token: row, head: tokens * row + line }
            }
        }
    }
}

/// A tensor whose memory ends with its last row. What lies between rows, and all poison, is NaN.
pub struct HeadsBuffer<T> {
    data: Vec<T>,
    shape: HeadsShape,
    strides: HeadsStrides,
}

impl<T: Element> HeadsBuffer<T> {
    pub fn poisoned(shape: HeadsShape, placement: HeadsPlacement) -> Self {
        let strides = placement.strides(shape);
        let HeadsShape { batch, tokens, heads, head_dim } = shape;
        let reach = match batch * tokens * heads {
            0 => 0,
            _ => (batch - 1) * strides.batch + (tokens - 1) * strides.token + (heads - 1) * strides.head + head_dim,
        };
        Self { data: vec![T::from_f64(f64::NAN); reach], shape, strides }
    }

    /// Elements from `-size` to `size`.
    pub fn random(shape: HeadsShape, placement: HeadsPlacement, size: f64, random: &mut Random) -> Self {
        let mut buffer = Self::poisoned(shape, placement);
        buffer.for_each_row(|row| row.fill_with(|| T::from_f64(size * (2.0 * random.unit() - 1.0))));
        buffer
    }

    fn for_each_row(&mut self, mut visit: impl FnMut(&mut [T])) {
        let HeadsShape { batch, tokens, heads, .. } = self.shape;
        let mut view = self.view_mut();
        for batch in 0..batch {
            for token in 0..tokens {
                for head in 0..heads {
                    visit(view.row_mut(batch, token, head));
                }
            }
        }
    }

    pub fn view(&self) -> HeadsView<'_, T> {
        HeadsView::try_new(&self.data, self.shape, self.strides).expect("the buffer was made for this view")
    }

    pub fn view_mut(&mut self) -> HeadsViewMut<'_, T> {
        HeadsViewMut::try_new(&mut self.data, self.shape, self.strides).expect("the buffer was made for this view")
    }

    /// Whether what lies between rows still is poison.
    pub fn gaps_are_untouched(&self) -> bool {
        let mut rest = Self { data: self.data.clone(), shape: self.shape, strides: self.strides };
        rest.for_each_row(|row| row.fill(T::from_f64(f64::NAN)));
        rest.data.iter().all(|element| element.to_f64().is_nan())
    }
}

/// The array of log-sum-exps, poisoned.
pub struct LseBuffer {
    data: Vec<f32>,
    shape: [usize; 2],
}

impl LseBuffer {
    pub fn poisoned(problem: &Attention) -> Self {
        let shape = problem.lse_shape();
        Self { data: vec![f32::NAN; shape[0] * shape[1]], shape }
    }

    pub fn view(&self) -> DenseView<'_, f32> {
        let [rows, cols] = self.shape;
        DenseView::try_new(&self.data, rows, cols, cols, Layout::RowMajor).expect("the buffer was made for this view")
    }

    pub fn view_mut(&mut self) -> DenseViewMut<'_, f32> {
        let [rows, cols] = self.shape;
        DenseViewMut::try_new(&mut self.data, rows, cols, cols, Layout::RowMajor)
            .expect("the buffer was made for this view")
    }
}

/// Whether log-sum-exps are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lse {
    Wanted,
    Unwanted,
}

/// One problem. Its `Debug` form says all that is needed to see a failure again.
#[derive(Clone, Debug)]
pub struct Case {
    pub problem: Attention,
    /// Of Q, K, V and O.
    pub placements: [HeadsPlacement; 4],
    pub lse: Lse,
    /// Rows that are compared, where all are too many.
    pub most_rows: usize,
    pub seed: u64,
}

/// What ran: inputs and outputs.
pub struct Run<T> {
    pub tensors: [HeadsBuffer<T>; 3],
    pub o: HeadsBuffer<T>,
    pub lse: LseBuffer,
}

impl Case {
    /// The default of everything but the problem.
    pub fn of(problem: Attention, random: &mut Random) -> Self {
        Self {
            problem,
            placements: [HeadsPlacement::Tokens; 4],
            lse: Lse::Wanted,
            most_rows: usize::MAX,
            seed: random.next(),
        }
    }

    /// Random Q, K and V, so that scores are about 1.
    pub fn inputs<T: Element>(&self) -> [HeadsBuffer<T>; 3] {
        let mut random = Random::new(self.seed);
        let (queries, keys) = (self.problem.query_shape(), self.problem.key_shape());
        let [q, k, v, _] = self.placements;
        [
            HeadsBuffer::random(queries, q, 3.0, &mut random),
            HeadsBuffer::random(keys, k, 1.0, &mut random),
            HeadsBuffer::random(keys, v, 1.0, &mut random),
        ]
    }

    /// Runs the problem on these inputs.
    pub fn run<T: Element>(&self, runner: &impl Runner, tensors: [HeadsBuffer<T>; 3]) -> Run<T> {
        let mut o = HeadsBuffer::poisoned(self.problem.query_shape(), self.placements[3]);
        let mut lse = LseBuffer::poisoned(&self.problem);
        let views = [tensors[0].view(), tensors[1].view(), tensors[2].view()];
        let mut lse_view = lse.view_mut();
        let wanted = (self.lse == Lse::Wanted).then_some(&mut lse_view);
        runner
            .attend(&self.problem, views, &mut o.view_mut(), wanted)
            .unwrap_or_else(|error| panic!("{}, {self:?}: {error}", T::DTYPE));
        assert!(o.gaps_are_untouched(), "{}, {self:?}: memory between rows of O changed", T::DTYPE);
        Run { tensors, o, lse }
    }

    /// The rows that are compared.
    pub fn rows(&self) -> Vec<AttentionRow> {
        let [rows, cols] = self.problem.lse_shape();
        if rows * cols <= self.most_rows {
            return reference::rows(&self.problem);
        }
        reference::some_rows(&self.problem, self.most_rows, self.seed)
    }

    /// Compares these rows of a result with the reference.
    pub fn compare<T: Element>(&self, run: &Run<T>, rows: &[AttentionRow]) {
        let [q, k, v] = [0, 1, 2].map(|index| run.tensors[index].view());
        let exact = reference::attention(&self.problem, q, k, v, rows).expect("the shapes agree");
        let tolerance = reference::tolerance(&self.problem, q, k, v, &exact).expect("the shapes agree");
        let verdict = tolerance.values.judge(&exact.compare(run.o.view()).expect("the shapes agree"));
        assert!(verdict.is_accepted(), "{}, {self:?}: O is {verdict}", T::DTYPE);
        if self.lse == Lse::Wanted {
            let verdict = tolerance.lse.judge(&exact.compare_lse(run.lse.view()).expect("the shapes agree"));
            assert!(verdict.is_accepted(), "{}, {self:?}: the log-sum-exps are {verdict}", T::DTYPE);
        }
    }
}

/// Runs one problem and compares it with the reference.
pub fn check_case<T: Element>(runner: &impl Runner, case: &Case) {
    let run = case.run::<T>(runner, case.inputs());
    case.compare(&run, &case.rows());
}

/// Variants of each option; the first is the default.
const OPTIONS: [usize; 7] = [7, 6, 2, 2, 3, 4, 2];

/// A problem with these variants of the options, in the order of [`OPTIONS`], by kernels for rows of `head_dim`.
fn variant<T: Element>(head_dim: usize, [window, lengths, softcap, scale, heads, placement, lse]: [usize; 7]) -> Case {
    let (queries, keys) = match lengths {
        0 => (Sequences::Equal { batch: 1, len: 200 }, Sequences::Equal { batch: 1, len: 200 }),
        1 => (Sequences::Equal { batch: 2, len: 70 }, Sequences::Equal { batch: 2, len: 420 }),
        2 => (Sequences::Equal { batch: 1, len: 300 }, Sequences::Equal { batch: 1, len: 75 }),
        3 => (Sequences::of_lengths(&[130, 0, 1, 270]), Sequences::of_lengths(&[130, 0, 1, 270])),
        4 => (Sequences::of_lengths(&[5, 200, 0, 64]), Sequences::of_lengths(&[300, 0, 77, 64])),
        _ => (Sequences::Equal { batch: 3, len: 1 }, Sequences::of_lengths(&[1, 500, 129])),
    };
    let (num_heads, num_key_heads) = [(2, 2), (4, 2), (3, 1)][heads];
    let problem = Attention {
        window: [
            Window::FULL,
            Window::CAUSAL,
            Window::sliding(37),
            Window::sliding(0),
            Window { left: Some(20), right: Some(150) },
            Window { left: None, right: Some(9) },
            Window { left: Some(64), right: None },
        ][window],
        softcap: [None, Some(1.5)][softcap],
        ..Attention::new(queries, num_heads, head_dim, T::DTYPE).with_keys(keys).with_key_heads(num_key_heads)
    };
    let problem = if scale == 1 { problem.with_scale(0.4) } else { problem };
    let at = |tensor: usize| HeadsPlacement::ALL[(placement * (1 + tensor)) % 4];
    Case {
        problem,
        placements: [at(0), at(1), at(2), at(3)],
        lse: [Lse::Wanted, Lse::Unwanted][lse],
        most_rows: usize::MAX,
        seed: 0,
    }
}

/// Choices of variants: each option alone, and then rows such that every pair of variants of two options is in one.
fn choices(random: &mut Random) -> Vec<[usize; 7]> {
    let mut choices = vec![[0; 7]];
    for (option, count) in OPTIONS.into_iter().enumerate() {
        for variant in 1..count {
            let mut choice = [0; 7];
            choice[option] = variant;
            choices.push(choice);
        }
    }
    let pairs_of = |choice: &[usize; 7]| {
        let choice = *choice;
        (0..7).flat_map(move |a| (a + 1..7).map(move |b| (a, choice[a], b, choice[b])))
    };
    let mut missing: HashSet<_> = (0..7)
        .flat_map(|a| (a + 1..7).map(move |b| (a, b)))
        .flat_map(|(a, b)| (0..OPTIONS[a]).flat_map(move |x| (0..OPTIONS[b]).map(move |y| (a, x, b, y))))
        .collect();
    for choice in &choices {
        pairs_of(choice).for_each(|pair| _ = missing.remove(&pair));
    }
    while let Some(&(a, x, b, y)) = missing.iter().min() {
        let candidate = |random: &mut Random| {
            let mut choice = OPTIONS.map(|count| random.below(count));
            (choice[a], choice[b]) = (x, y);
            choice
        };
        let candidates: Vec<_> = (0..20).map(|_| candidate(random)).collect();
        let best =
            candidates.into_iter().max_by_key(|choice| pairs_of(choice).filter(|pair| missing.contains(pair)).count());
        let best = best.expect("twenty candidates");
        pairs_of(&best).for_each(|pair| _ = missing.remove(&pair));
        choices.push(best);
    }
    choices
}

/// Every option alone and in pairs, with rows of `head_dim`.
pub fn check_options<T: Element>(runner: &impl Runner, head_dim: usize) {
    let mut random = Random::fresh();
    for choice in choices(&mut random) {
        check_case::<T>(runner, &Case { seed: random.next(), ..variant::<T>(head_dim, choice) });
    }
}

/// Nothing, one and few: queries, keys, sequences.
pub fn check_edges<T: Element>(runner: &impl Runner, head_dim: usize) {
    let mut random = Random::fresh();
    let equal = |batch, len| Sequences::Equal { batch, len };
    for (queries, keys) in [
        (equal(0, 5), equal(0, 5)),
        (equal(2, 0), equal(2, 5)),
        (equal(2, 5), equal(2, 0)),
        (equal(1, 1), equal(1, 1)),
        (equal(1, 1), equal(1, 2)),
        (equal(5, 3), equal(5, 1)),
        (Sequences::of_lengths(&[]), Sequences::of_lengths(&[])),
        (Sequences::of_lengths(&[0, 0]), Sequences::of_lengths(&[3, 0])),
        (Sequences::of_lengths(&[3, 2]), Sequences::of_lengths(&[0, 0])),
        (Sequences::of_lengths(&[1]), Sequences::of_lengths(&[1])),
        (Sequences::of_lengths(&[1, 1, 1]), Sequences::of_lengths(&[2, 0, 1])),
    ] {
        for window in [Window::FULL, Window::CAUSAL] {
            let problem = Attention::new(queries.clone(), 2, head_dim, T::DTYPE).with_keys(keys.clone());
            check_case::<T>(runner, &Case::of(problem.with_window(window), &mut random));
        }
    }
}

/// A sequence of NaN and infinity beside others: packed and not, before, between and behind.
pub fn check_leaks<T: Element>(runner: &impl Runner, head_dim: usize) {
    let mut random = Random::fresh();
    for (sequences, bad) in [
        (Sequences::of_lengths(&[70, 40, 90]), 0),
        (Sequences::of_lengths(&[70, 40, 90]), 1),
        (Sequences::of_lengths(&[70, 40, 90]), 2),
        (Sequences::Equal { batch: 3, len: 75 }, 1),
    ] {
        for window in [Window::FULL, Window::CAUSAL] {
            let problem = Attention::new(sequences.clone(), 2, head_dim, T::DTYPE).with_window(window);
            let case = Case::of(problem, &mut random);
            let mut tensors = case.inputs::<T>();
            for buffer in &mut tensors {
                let mut view = buffer.view_mut();
                for (at, head) in (0..sequences.len_of(bad)).flat_map(|at| [(at, 0), (at, 1)]) {
                    let (batch, token) = sequences.place(bad, at);
                    view.row_mut(batch, token, head).fill_with(|| random.special());
                }
            }
            let run = case.run(runner, tensors);
            let rows: Vec<_> = case.rows().into_iter().filter(|row| row.sequence != bad).collect();
            case.compare(&run, &rows);
        }
    }
}

/// A sequence of several queries alone and in batches: the same bits.
pub fn check_batches<T: Element>(runner: &impl Runner, head_dim: usize) {
    const QUERIES: usize = 150;
    const KEYS: usize = 333;
    let mut random = Random::fresh();
    for window in [Window::FULL, Window::CAUSAL, Window::sliding(100)] {
        let of = |queries: &[usize], keys: &[usize]| {
            Attention::new(Sequences::of_lengths(queries), 4, head_dim, T::DTYPE)
                .with_keys(Sequences::of_lengths(keys))
                .with_key_heads(2)
                .with_window(window)
        };
        let alone = Case::of(of(&[QUERIES], &[KEYS]), &mut random);
        let batches = [
            (of(&[400, QUERIES, 3], &[10, KEYS, 700]), 1),
            (of(&[QUERIES, 1], &[KEYS, 1]), 0),
            (of(&[0, 64, QUERIES], &[9, 0, KEYS]), 2),
        ];
        check_same_bits::<T>(runner, &alone, &batches, &mut random);
    }
}

/// The one sequence of a problem, and the same sequence at a place among others: the same bits.
pub fn check_same_bits<T: Element>(
    runner: &impl Runner,
    alone: &Case,
    batches: &[(Attention, usize)],
    random: &mut Random,
) {
    let inputs = alone.inputs::<T>();
    let expected = alone.run::<T>(runner, alone.inputs());
    let sequences_of = |problem: &Attention| [problem.queries.clone(), problem.keys.clone(), problem.keys.clone()];
    for (problem, at) in batches {
        let batch = Case::of(problem.clone(), random);
        let mut tensors = batch.inputs::<T>();
        let sequences = sequences_of(&batch.problem).into_iter().zip(sequences_of(&alone.problem));
        for ((to, from), (batched, single)) in tensors.iter_mut().zip(&inputs).zip(sequences) {
            let mut to = to.view_mut();
            for (token, head) in (0..single.len_of(0)).flat_map(|at| (0..from.shape.heads).map(move |h| (at, h))) {
                let ((batch, place), (alone, row)) = (batched.place(*at, token), single.place(0, token));
                to.row_mut(batch, place, head).copy_from_slice(from.view().row(alone, row, head));
            }
        }
        let found = batch.run(runner, tensors);
        let heads = problem.num_query_heads;
        for (row, head) in (0..alone.problem.queries.len_of(0)).flat_map(|row| (0..heads).map(move |h| (row, h))) {
            let result = |run: &Run<T>, (batch, token): (usize, usize)| {
                let bits = run.o.view().row(batch, token, head).iter().map(|element| element.to_f64().to_bits());
                (bits.collect::<Vec<_>>(), run.lse.view().get(batch * heads + head, token).to_bits())
            };
            assert_eq!(
                result(&found, problem.queries.place(*at, row)),
                result(&expected, alone.problem.queries.place(0, row)),
                "row {row} of head {head} has other bits in {batch:?}"
            );
        }
    }
}
