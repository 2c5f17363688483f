//! Attention of sequences with room to spare, as a cache of keys and values has it.

use hopper_sparse::Element;
use hopper_sparse::ops::attention::{Attention, Sequences, Window};

use super::attention::{Case, Inputs, Output, Runner};
use super::heads::HeadsPlacement;
use super::isolation::check_same_bits;
use super::operands::Random;

/// Fills what lies beyond each sequence with NaN and infinity.
fn spoil_room<T: Element>(problem: &Attention, tensors: &mut Inputs<T>, random: &mut Random) {
    for (tensor, buffer) in tensors.iter_mut().enumerate() {
        let sequences = if tensor == 0 { &problem.queries } else { &problem.keys };
        let Sequences::WithRoom { capacity, lengths } = sequences else { continue };
        let heads = buffer.shape.heads;
        let mut view = buffer.view_mut();
        for (sequence, &len) in lengths.iter().enumerate() {
            for (token, head) in (len..*capacity).flat_map(|token| (0..heads).map(move |head| (token, head))) {
                view.row_mut(sequence, token, head).fill_with(|| random.special());
            }
        }
    }
}

/// Rows of O and log-sum-exps beyond a sequence's end are not written.
fn check_room_is_untouched<T: Element>(case: &Case, output: &Output<T>) {
    let Sequences::WithRoom { capacity, lengths } = &case.problem.queries else { return };
    let heads = case.problem.num_query_heads;
    for (sequence, &len) in lengths.iter().enumerate() {
        for (token, head) in (len..*capacity).flat_map(|token| (0..heads).map(move |head| (token, head))) {
            let row = output.o.view().row(sequence, token, head);
            assert!(row.iter().all(|element| element.to_f64().is_nan()), "{case:?}: row {token} of {sequence} changed");
            let lse = output.lse.view().get(sequence * heads + head, token);
            assert!(lse.is_nan(), "{case:?}: the log-sum-exp of row {token} of {sequence} changed");
        }
    }
}

/// No token, one, as many as there is room for, and numbers in between, with bad numbers behind: a new token each, several
/// and packed ones.
pub fn check_caches<T: Element>(runner: &impl Runner, head_dim: usize) {
    let mut random = Random::fresh();
    let room = Sequences::with_room;
    let equal = |batch, len| Sequences::Equal { batch, len };
    let packed = Sequences::of_lengths;
    let tokens = HeadsPlacement::Tokens;
    for (index, (queries, keys, heads, window, placement)) in [
        (equal(5, 1), room(300, &[0, 1, 300, 130, 299]), (8, 2), Window::FULL, tokens),
        (equal(4, 1), room(200, &[64, 200, 0, 65]), (2, 2), Window::sliding(50), HeadsPlacement::Heads),
        (equal(4, 70), room(150, &[150, 70, 1, 100]), (2, 1), Window::CAUSAL, HeadsPlacement::TokensApart),
        (equal(2, 3), room(90, &[0, 47]), (4, 2), Window::FULL, HeadsPlacement::Heads),
        (packed(&[5, 1, 0, 70]), room(140, &[80, 140, 3, 70]), (2, 1), Window::CAUSAL, tokens),
        (room(90, &[90, 0, 33, 1]), room(160, &[160, 20, 0, 77]), (2, 1), Window::CAUSAL, tokens),
        (room(130, &[1, 129]), packed(&[200, 129]), (4, 2), Window::FULL, HeadsPlacement::Heads),
        (room(1, &[1, 0, 1]), room(1, &[1, 1, 0]), (2, 2), Window::FULL, HeadsPlacement::TokensApart),
        (room(100, &[37]), room(100, &[99]), (1, 1), Window::FULL, HeadsPlacement::HeadsApart),
        (equal(2, 4), room(0, &[0, 0]), (1, 1), Window::FULL, tokens),
        (room(7, &[]), room(5, &[]), (1, 1), Window::FULL, tokens),
    ]
    .into_iter()
    .enumerate()
    {
        let softcap = [None, Some(1.5)][index / 2 % 2];
        let problem = Attention::new(queries, heads.0, head_dim, T::DTYPE)
            .with_keys(keys)
            .with_key_heads(heads.1)
            .with_window(window);
        let case = Case { placements: [placement; 4], ..Case::of(Attention { softcap, ..problem }, &mut random) };
        let mut inputs = case.inputs::<T>();
        spoil_room(&case.problem, &mut inputs, &mut random);
        let output = case.run(runner, &inputs);
        case.expected(&inputs, &case.rows()).check(&output);
        check_room_is_untouched(&case, &output);
    }
}

/// A sequence packed and with room, alone and among others: the same bits.
pub fn check_cache_bits<T: Element>(runner: &impl Runner, head_dim: usize) {
    let mut random = Random::fresh();
    let (room, packed) = (Sequences::with_room, Sequences::of_lengths);
    for num_queries in [1, 75] {
        let of = |queries: Sequences, keys: Sequences| {
            Attention::new(queries, 4, head_dim, T::DTYPE).with_keys(keys).with_key_heads(2).with_window(Window::CAUSAL)
        };
        let alone = Case::of(of(packed(&[num_queries]), packed(&[210])), &mut random);
        let equal = |batch| Sequences::Equal { batch, len: num_queries };
        let batches = [
            (of(equal(1), room(400, &[210])), 0),
            (of(equal(3), room(210, &[0, 210, 3])), 1),
            (of(equal(2), room(333, &[333, 210])), 1),
            (of(packed(&[9, num_queries]), room(250, &[20, 210])), 1),
            (of(room(99, &[num_queries, 99]), room(211, &[210, 99])), 0),
        ];
        check_same_bits::<T>(runner, &alone, &batches, &mut random);
    }
}
