//! Attention by the GPU kernels, on whatever runs them: a device, or the simulator.

use std::collections::HashSet;

use hopper_sparse::formats::{DenseViewMut, HeadsView, HeadsViewMut};
use hopper_sparse::ops::attention::{Attention, Sequences, Window};
use hopper_sparse::reference::attention::{self as reference, AttentionExact, AttentionRow, AttentionTolerance};
use hopper_sparse::{Element, Result};

use super::heads::{HeadsBuffer, HeadsPlacement, LseBuffer};
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

/// Q, K and V.
pub type Inputs<T> = [HeadsBuffer<T>; 3];

/// O and the log-sum-exps.
pub struct Output<T> {
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

    /// Random Q, K and V, so that scores are about 1. They depend on the problem's shapes, the placements and the seed alone.
    pub fn inputs<T: Element>(&self) -> Inputs<T> {
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
    pub fn run<T: Element>(&self, runner: &impl Runner, [q, k, v]: &Inputs<T>) -> Output<T> {
        let mut o = HeadsBuffer::poisoned(self.problem.query_shape(), self.placements[3]);
        let mut lse = LseBuffer::poisoned(&self.problem);
        let mut lse_view = lse.view_mut();
        let wanted = (self.lse == Lse::Wanted).then_some(&mut lse_view);
        runner
            .attend(&self.problem, [q.view(), k.view(), v.view()], &mut o.view_mut(), wanted)
            .unwrap_or_else(|error| panic!("{}, {self:?}: {error}", T::DTYPE));
        assert!(o.gaps_are_untouched(), "{}, {self:?}: memory between rows of O changed", T::DTYPE);
        Output { o, lse }
    }

    /// The rows that are compared.
    pub fn rows(&self) -> Vec<AttentionRow> {
        let [rows, cols] = self.problem.lse_shape();
        if rows * cols <= self.most_rows {
            return reference::rows(&self.problem);
        }
        reference::some_rows(&self.problem, self.most_rows, self.seed)
    }

    /// What these rows of the result are, where rows see what the window shows.
    pub fn expected<T: Element>(&self, [q, k, v]: &Inputs<T>, rows: &[AttentionRow]) -> Expected<'_> {
        let (problem, [q, k, v]) = (&self.problem, [q.view(), k.view(), v.view()]);
        let exact = reference::attention(problem, q, k, v, rows).expect("the shapes agree");
        let tolerance = reference::tolerance(problem, q, k, v, &exact).expect("the shapes agree");
        Expected { case: self, exact, tolerance }
    }

    /// As [`expected`](Self::expected), where rows see these keys.
    pub fn expected_to<T: Element>(
        &self,
        [q, k, v]: &Inputs<T>,
        rows: &[AttentionRow],
        keys_of: &reference::KeysOfRow<'_>,
    ) -> Expected<'_> {
        let (problem, tensors) = (&self.problem, [q.view(), k.view(), v.view()]);
        let exact = reference::attention_to(problem, tensors, rows, keys_of).expect("the shapes agree");
        let tolerance = reference::tolerance_to(problem, tensors, &exact, keys_of).expect("the shapes agree");
        Expected { case: self, exact, tolerance }
    }
}

/// Rows of the right result.
pub struct Expected<'a> {
    case: &'a Case,
    exact: AttentionExact,
    tolerance: AttentionTolerance,
}

impl Expected<'_> {
    /// Compares a result. A row that sees no key is 0, and its log-sum-exp minus infinity.
    pub fn check<T: Element>(&self, output: &Output<T>) {
        let Self { case, exact, tolerance } = self;
        let verdict = tolerance.values.judge(&exact.compare(output.o.view()).expect("the shapes agree"));
        assert!(verdict.is_accepted(), "{}, {case:?}: O is {verdict}", T::DTYPE);
        if case.lse == Lse::Wanted {
            let verdict = tolerance.lse.judge(&exact.compare_lse(output.lse.view()).expect("the shapes agree"));
            assert!(verdict.is_accepted(), "{}, {case:?}: the log-sum-exps are {verdict}", T::DTYPE);
        }
        let blind = exact.rows().iter().zip(exact.lse()).filter(|(_, lse)| **lse == f64::NEG_INFINITY);
        for (&AttentionRow { sequence, head, row }, _) in blind {
            let (batch, token) = case.problem.queries.place(sequence, row);
            let zero = output.o.view().row(batch, token, head).iter().all(|&element| element == T::ZERO);
            assert!(zero, "{}, {case:?}: row {row} of head {head} of sequence {sequence} sees nothing", T::DTYPE);
        }
    }
}

/// Runs one problem and compares it with the reference.
pub fn check_case<T: Element>(runner: &impl Runner, case: &Case) {
    let inputs = case.inputs::<T>();
    case.expected(&inputs, &case.rows()).check(&case.run(runner, &inputs));
}

/// Variants of each option; the first is the default.
const OPTIONS: [usize; 7] = [7, 6, 2, 2, 3, 4, 2];

/// A problem with these variants of the options, in the order of [`OPTIONS`], by kernels for rows of `head_dim`.
fn variant<T: Element>(head_dim: usize, [window, lengths, softcap, scale, heads, placement, lse]: [usize; 7]) -> Case {
    let (queries, keys) = match lengths {
        0 => (Sequences::Equal { batch: 1, len: 200 }, Sequences::Equal { batch: 1, len: 200 }),
        1 => (Sequences::Equal { batch: 2, len: 70 }, Sequences::Equal { batch: 2, len: 330 }),
        2 => (Sequences::Equal { batch: 1, len: 200 }, Sequences::Equal { batch: 1, len: 75 }),
        3 => (Sequences::of_lengths(&[130, 0, 1, 60]), Sequences::of_lengths(&[130, 0, 1, 60])),
        4 => (Sequences::of_lengths(&[5, 70, 0, 64]), Sequences::of_lengths(&[300, 0, 77, 64])),
        _ => (Sequences::Equal { batch: 3, len: 1 }, Sequences::of_lengths(&[1, 330, 129])),
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

/// Which of the choices of options a kernel is put through: they are dealt out to kernels that differ in nothing that an
/// option is about.
#[derive(Clone, Copy, Debug)]
pub enum Choices {
    /// Every option alone and in pairs.
    All,
    /// Every option alone, and of the pairs each `of`-th from `first` on.
    EachAlone { first: usize, of: usize },
    /// Of all, each `of`-th from `first` on.
    Dealt { first: usize, of: usize },
}

/// Choices of variants: each option alone, and behind them such that every pair of variants of two options is in one. They
/// are the same in each run, lest a pair that is dealt out to another kernel is dealt out to none.
fn choices() -> (Vec<[usize; 7]>, Vec<[usize; 7]>) {
    let mut random = Random::new(0);
    let mut alone = vec![[0; 7]];
    for (option, count) in OPTIONS.into_iter().enumerate() {
        for variant in 1..count {
            let mut choice = [0; 7];
            choice[option] = variant;
            alone.push(choice);
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
    for choice in &alone {
        pairs_of(choice).for_each(|pair| _ = missing.remove(&pair));
    }
    let mut paired = Vec::new();
    while let Some(&(a, x, b, y)) = missing.iter().min() {
        let candidate = |random: &mut Random| {
            let mut choice = OPTIONS.map(|count| random.below(count));
            (choice[a], choice[b]) = (x, y);
            choice
        };
        let candidates: Vec<_> = (0..200).map(|_| candidate(&mut random)).collect();
        let best =
            candidates.into_iter().max_by_key(|choice| pairs_of(choice).filter(|pair| missing.contains(pair)).count());
        let best = best.expect("two hundred candidates");
        pairs_of(&best).for_each(|pair| _ = missing.remove(&pair));
        paired.push(best);
    }
    (alone, paired)
}

/// Options, with rows of `head_dim`.
pub fn check_options<T: Element>(runner: &impl Runner, head_dim: usize, which: Choices) {
    let mut random = Random::fresh();
    let (mut chosen, paired) = choices();
    match which {
        Choices::All => chosen.extend(paired),
        Choices::EachAlone { first, of } => chosen.extend(paired.into_iter().skip(first).step_by(of)),
        Choices::Dealt { first, of } => {
            chosen.extend(paired);
            chosen = chosen.into_iter().skip(first).step_by(of).collect();
        }
    }
    for choice in chosen {
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
        (equal(3, 3), equal(3, 1)),
        (Sequences::of_lengths(&[]), Sequences::of_lengths(&[])),
        (Sequences::of_lengths(&[0, 0]), Sequences::of_lengths(&[3, 0])),
        (Sequences::of_lengths(&[1]), Sequences::of_lengths(&[1])),
    ] {
        for window in [Window::FULL, Window::CAUSAL] {
            let problem = Attention::new(queries.clone(), 2, head_dim, T::DTYPE).with_keys(keys.clone());
            check_case::<T>(runner, &Case::of(problem.with_window(window), &mut random));
        }
    }
}

/// Scores that climb, fall and jump from keys to keys, in the order in which a kernel meets them: from the last one.
///
/// What has been summed up is multiplied only where a row's scores go over 2^8 times its reference, so the steps are smaller
/// than that, larger, and smaller ones that add up.
pub fn check_climbs<T: Element>(runner: &impl Runner, head_dim: usize) {
    const STEPS: [f64; 10] = [0.0, 4.0, 8.0, 12.0, 6.0, 150.0, 140.0, 153.0, -40.0, 400.0];
    const KEYS_PER_STEP: usize = 45;
    let mut random = Random::fresh();
    for window in [Window::FULL, Window::CAUSAL] {
        let (num_queries, num_keys) = (70, STEPS.len() * KEYS_PER_STEP);
        let problem = Attention::new(Sequences::Equal { batch: 1, len: num_queries }, 1, head_dim, T::DTYPE)
            .with_keys(Sequences::Equal { batch: 1, len: num_keys })
            .with_window(window);
        let case = Case::of(problem, &mut random);
        let mut inputs = case.inputs::<T>();
        let [q, k, _] = &mut inputs;
        for query in 0..num_queries {
            // The scale takes this factor out again. The last column: tensor cores cut what they add to a large sum.
            q.view_mut().row_mut(0, query, 0)[head_dim - 1] = T::from_f64((head_dim as f64).sqrt());
        }
        for key in 0..num_keys {
            k.view_mut().row_mut(0, key, 0)[head_dim - 1] = T::from_f64(STEPS[(num_keys - 1 - key) / KEYS_PER_STEP]);
        }
        case.expected(&inputs, &case.rows()).check(&case.run(runner, &inputs));
    }
}

/// Three packed sequences, each with no, one or a few queries, and with no, one or a few keys.
pub fn check_short_sequences<T: Element>(runner: &impl Runner, head_dim: usize) {
    const LENGTHS: [usize; 3] = [0, 1, 5];
    let mut random = Random::fresh();
    for index in 0..27 {
        let [a, b, c] = [index % 3, index / 3 % 3, index / 9].map(|at| LENGTHS[at]);
        let problem = Attention::new(Sequences::of_lengths(&[a, b, c]), 1, head_dim, T::DTYPE)
            // In each place every number of queries meets every number of keys.
            .with_keys(Sequences::of_lengths(&[b, c, a]))
            .with_window([Window::FULL, Window::CAUSAL][index % 2]);
        check_case::<T>(runner, &Case::of(problem, &mut random));
    }
}
