//! Attention of sequences of one query, alone and beside longer ones.

use hopper_sparse::Element;
use hopper_sparse::ops::attention::{Attention, Sequences, Window};

use super::attention::{Case, Lse, Runner, check_case};
use super::heads::HeadsPlacement;
use super::isolation::{Bad, check_leak, check_same_bits};
use super::operands::Random;

const fn ones(batch: usize) -> Sequences {
    Sequences::Equal { batch, len: 1 }
}

/// From no key to several parts; groups of one, few and more than 64 heads; windows, softcap, packed and not, mixed.
pub fn check_one_query<T: Element>(runner: &impl Runner, head_dim: usize) {
    let mut random = Random::fresh();
    let packed = Sequences::of_lengths;
    let (full, causal) = (Window::FULL, Window::CAUSAL);
    let from_left = Window { left: Some(70), right: None };
    for (index, (queries, keys, heads, window, softcap)) in [
        (ones(6), packed(&[0, 1, 64, 127, 300, 129]), (8, 2), full, None),
        (ones(2), Sequences::Equal { batch: 2, len: 515 }, (4, 1), causal, Some(1.5)),
        (ones(2), Sequences::Equal { batch: 2, len: 100 }, (2, 2), from_left, None),
        (packed(&[1; 4]), packed(&[0, 500, 65, 1]), (8, 2), Window::sliding(190), None),
        (packed(&[1; 2]), packed(&[200, 30]), (3, 3), full, Some(2.0)),
        (packed(&[1, 70, 1, 0, 1]), packed(&[300, 75, 0, 5, 130]), (6, 3), causal, None),
        (packed(&[2, 1, 1]), packed(&[2, 260, 60]), (4, 1), Window::sliding(0), Some(1.0)),
        // A few new tokens each, as where some are guessed ahead.
        (packed(&[4, 1, 16, 2]), packed(&[140, 70, 90, 2]), (4, 2), causal, None),
        (ones(1), Sequences::Equal { batch: 1, len: 150 }, (140, 2), full, None),
        (packed(&[1]), packed(&[150]), (70, 1), from_left, None),
        (ones(1), Sequences::Equal { batch: 1, len: 2500 }, (8, 1), full, None),
    ]
    .into_iter()
    .enumerate()
    {
        let problem = Attention {
            softcap,
            ..Attention::new(queries, heads.0, head_dim, T::DTYPE)
                .with_keys(keys)
                .with_key_heads(heads.1)
                .with_window(window)
        };
        let at = |tensor: usize| HeadsPlacement::ALL[(index * (1 + tensor)) % 4];
        let placements = [at(0), at(1), at(2), at(3)];
        let lse = if index == 4 { Lse::Unwanted } else { Lse::Wanted };
        check_case::<T>(runner, &Case { placements, lse, ..Case::of(problem, &mut random) });
    }
}

/// As [`check_leaks`](super::isolation::check_leaks), of sequences of one query, whose keys may be in parts.
pub fn check_one_query_leaks<T: Element>(runner: &impl Runner, head_dim: usize) {
    let mut random = Random::fresh();
    let packed = Sequences::of_lengths;
    let equal = |batch, len| Sequences::Equal { batch, len };
    for (queries, keys, window, bad) in [
        (ones(3), packed(&[200, 300, 90]), Window::FULL, Bad::Sequences(&[1])),
        (ones(3), equal(3, 210), Window::CAUSAL, Bad::Sequences(&[0, 2])),
        (packed(&[1, 1, 1]), packed(&[60, 300, 200]), Window::FULL, Bad::Sequences(&[0, 2])),
        (packed(&[1, 70, 1]), packed(&[300, 75, 130]), Window::CAUSAL, Bad::Sequences(&[1])),
        (ones(2), equal(2, 300), Window::FULL, Bad::KeyHead(0)),
    ] {
        let problem =
            Attention::new(queries, 4, head_dim, T::DTYPE).with_keys(keys).with_key_heads(2).with_window(window);
        check_leak::<T>(runner, problem, bad, &mut random);
    }
}

/// A sequence of one query alone, among others and beside longer ones, packed and not: the same bits.
pub fn check_one_query_batches<T: Element>(runner: &impl Runner, head_dim: usize, num_keys: usize) {
    let mut random = Random::fresh();
    for window in [Window::FULL, Window::sliding(num_keys as u32 / 2)] {
        let of = |queries: Sequences, keys: &[usize]| {
            Attention::new(queries, 4, head_dim, T::DTYPE)
                .with_keys(Sequences::of_lengths(keys))
                .with_key_heads(2)
                .with_window(window)
        };
        let packed = Sequences::of_lengths;
        let alone = Case::of(of(packed(&[1]), &[num_keys]), &mut random);
        let batches = [
            (of(packed(&[1, 1, 1]), &[2 * num_keys, num_keys, 3]), 1),
            (of(packed(&[0, 90, 1]), &[9, 40, num_keys]), 2),
            (of(packed(&[1, 1]), &[num_keys, 2]), 0),
            (of(ones(1), &[num_keys]), 0),
            (of(ones(3), &[1, num_keys + 200, num_keys]), 2),
        ];
        check_same_bits::<T>(runner, &alone, &batches, &mut random);
    }
}
