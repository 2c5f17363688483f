//! Sequences of a batch have nothing to do with one another: neither NaN nor company changes a bit of a result.

use hopper_sparse::Element;
use hopper_sparse::ops::attention::{Attention, Sequences, Window};
use hopper_sparse::reference::attention::AttentionRow;

use super::attention::{Case, Output, Runner};
use super::operands::Random;

/// What is full of NaN and infinity.
#[derive(Clone, Copy, Debug)]
pub enum Bad<'a> {
    /// Queries, keys and values of these sequences.
    Sequences(&'a [usize]),
    /// Keys and values of a head of keys.
    KeyHead(usize),
    /// The query of this number in each sequence, of every head.
    Query(usize),
}

impl Bad<'_> {
    /// Of Q where `tensor` is 0, else of K or V.
    fn has(self, tensor: usize, AttentionRow { sequence, head, row }: AttentionRow) -> bool {
        match self {
            Self::Sequences(bad) => bad.contains(&sequence),
            Self::KeyHead(bad) => tensor > 0 && head == bad,
            Self::Query(bad) => tensor == 0 && row == bad,
        }
    }

    /// Whether a row of O has a part in it.
    fn reaches(self, problem: &Attention, at: AttentionRow) -> bool {
        self.has(0, at) || self.has(1, AttentionRow { head: problem.key_head_of(at.head), ..at })
    }
}

/// The rows that do not see what is bad are what they are without it.
pub fn check_leak<T: Element>(runner: &impl Runner, problem: Attention, bad: Bad<'_>, random: &mut Random) {
    let case = Case::of(problem, random);
    let problem = &case.problem;
    let mut inputs = case.inputs::<T>();
    for (tensor, buffer) in inputs.iter_mut().enumerate() {
        let sequences = if tensor == 0 { &problem.queries } else { &problem.keys };
        let heads = buffer.shape.heads;
        let mut view = buffer.view_mut();
        for sequence in 0..sequences.num_sequences() {
            for (row, head) in (0..sequences.len_of(sequence)).flat_map(|row| (0..heads).map(move |head| (row, head))) {
                if bad.has(tensor, AttentionRow { sequence, head, row }) {
                    let (batch, token) = sequences.place(sequence, row);
                    view.row_mut(batch, token, head).fill_with(|| random.special());
                }
            }
        }
    }
    let all = case.rows();
    let rows: Vec<_> = all.iter().copied().filter(|&row| !bad.reaches(problem, row)).collect();
    assert!(!rows.is_empty() && rows.len() < all.len(), "{bad:?} of {problem}: nothing to compare, or nothing bad");
    case.expected(&inputs, &rows).check(&case.run(runner, &inputs));
}

/// Sequences, heads and queries of NaN and infinity beside others: packed and not, before, between and behind.
pub fn check_leaks<T: Element>(runner: &impl Runner, head_dim: usize) {
    let mut random = Random::fresh();
    let packed = Sequences::of_lengths(&[70, 40, 90]);
    let equal = Sequences::Equal { batch: 3, len: 75 };
    for (sequences, heads, window, bad) in [
        (&packed, (2, 1), Window::FULL, Bad::Sequences(&[1])),
        (&packed, (2, 2), Window::CAUSAL, Bad::Sequences(&[0, 2])),
        (&equal, (2, 2), Window::CAUSAL, Bad::Sequences(&[1])),
        (&equal, (2, 1), Window::FULL, Bad::Sequences(&[0, 2])),
        (&packed, (4, 2), Window::FULL, Bad::KeyHead(1)),
        (&equal, (2, 2), Window::CAUSAL, Bad::KeyHead(0)),
        (&packed, (2, 1), Window::CAUSAL, Bad::Query(30)),
    ] {
        let problem =
            Attention::new(sequences.clone(), heads.0, head_dim, T::DTYPE).with_key_heads(heads.1).with_window(window);
        check_leak::<T>(runner, problem, bad, &mut random);
    }
}

/// A sequence of several queries alone and in batches, packed and not, at each place: the same bits.
pub fn check_batches<T: Element>(runner: &impl Runner, head_dim: usize) {
    const QUERIES: usize = 140;
    const KEYS: usize = 200;
    let mut random = Random::fresh();
    let packed = Sequences::of_lengths;
    let equal = |batch, len| Sequences::Equal { batch, len };
    for window in [Window::FULL, Window::CAUSAL] {
        let of = |queries: Sequences, keys: Sequences| {
            Attention::new(queries, 2, head_dim, T::DTYPE).with_keys(keys).with_key_heads(1).with_window(window)
        };
        let alone = Case::of(of(packed(&[QUERIES]), packed(&[KEYS])), &mut random);
        let batches = [
            (of(packed(&[200, QUERIES, 3]), packed(&[10, KEYS, 330])), 1),
            (of(packed(&[QUERIES, 1]), packed(&[KEYS, 1])), 0),
            (of(packed(&[0, 64, QUERIES]), packed(&[9, 0, KEYS])), 2),
            (of(equal(2, QUERIES), equal(2, KEYS)), 1),
            (of(equal(1, QUERIES), packed(&[KEYS])), 0),
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
    let expected = alone.run::<T>(runner, &inputs);
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
        let found = batch.run(runner, &tensors);
        let heads = problem.num_query_heads;
        for (row, head) in (0..alone.problem.queries.len_of(0)).flat_map(|row| (0..heads).map(move |h| (row, h))) {
            let result = |run: &Output<T>, (batch, token): (usize, usize)| {
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
