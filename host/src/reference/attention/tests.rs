use half::{bf16, f16};

use super::*;
use crate::formats::{Heads, HeadsLayout, HeadsShape};
use crate::ops::attention::{Sequences, Window};

/// Elements that look random, from -1 to 1 times `size`.
fn tensor<T: Element>(shape: HeadsShape, seed: u64, size: f64) -> Heads<T> {
    let mut state = seed;
    let data = (0..shape.batch * shape.tokens * shape.heads * shape.head_dim).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        T::from_f64(size * ((state >> 33) as f64 / (1u64 << 30) as f64 - 1.0))
    });
    Heads::from_vec(data.collect(), shape, HeadsLayout::TokensHeads).expect("as many elements")
}

fn tensors<T: Element>(problem: &Attention) -> [Heads<T>; 3] {
    [tensor(problem.query_shape(), 1, 3.0), tensor(problem.key_shape(), 2, 1.0), tensor(problem.key_shape(), 3, 1.0)]
}

/// O and the log-sum-exps of the textbook for `computed`, judged as results for `asked`.
fn judge<T: Element>(asked: &Attention, computed: &Attention, [q, k, v]: &[Heads<T>; 3]) -> [bool; 2] {
    let rows = rows(asked);
    let exact = attention(asked, q.view(), k.view(), v.view(), &rows).expect("the shapes agree");
    let tolerance = tolerance(asked, q.view(), k.view(), v.view(), &exact).expect("the shapes agree");
    let (values, lse) = textbook(computed, q.view(), k.view(), v.view(), &rows).expect("the shapes agree");
    let mut o = Heads::zeros(asked.query_shape(), HeadsLayout::TokensHeads);
    let [num_rows, num_cols] = asked.lse_shape();
    let mut all_lse = Dense::<f32>::zeros(num_rows, num_cols, Layout::RowMajor);
    for (index, row) in rows.iter().enumerate() {
        let (batch, token) = asked.queries.place(row.sequence, row.row);
        o.view_mut().row_mut(batch, token, row.head).copy_from_slice(values.view().line(index));
        all_lse.data_mut()[asked.lse_index(row.sequence, row.head, row.row)] = lse[index];
    }
    let of_values = exact.compare(o.view()).expect("the shapes agree");
    let of_lse = exact.compare_lse(all_lse.view()).expect("the shapes agree");
    [tolerance.values.judge(&of_values).is_accepted(), tolerance.lse.judge(&of_lse).is_accepted()]
}

fn problem<T: Element>() -> Attention {
    Attention::new(Sequences::of_lengths(&[40, 0, 3, 100]), 4, 64, T::DTYPE).with_key_heads(2)
}

#[test]
fn the_textbook_is_accepted() {
    for window in [Window::FULL, Window::CAUSAL, Window::sliding(7)] {
        let asked = problem::<bf16>().with_window(window);
        assert_eq!(judge::<bf16>(&asked, &asked, &tensors(&asked)), [true; 2]);
        let asked = problem::<f16>().with_window(window).with_softcap(2.0);
        assert_eq!(judge::<f16>(&asked, &asked, &tensors(&asked)), [true; 2]);
    }
}

#[test]
fn another_problem_is_not() {
    let asked = problem::<bf16>().with_window(Window::sliding(20));
    let tensors = tensors(&asked);
    for other in [
        asked.clone().with_window(Window::sliding(21)),
        asked.clone().with_window(Window { left: Some(20), right: Some(1) }),
        asked.clone().with_scale(asked.scale * 1.03),
        asked.clone().with_softcap(4.0),
    ] {
        assert_eq!(judge::<bf16>(&asked, &other, &tensors), [false; 2], "{other}");
    }
}

#[test]
fn rows_that_see_nothing_are_zero() {
    let asked = Attention::new(Sequences::Equal { batch: 1, len: 5 }, 1, 8, Dtype::F16)
        .with_keys(Sequences::Equal { batch: 1, len: 2 })
        .with_window(Window::CAUSAL);
    let [q, k, v] = tensors::<f16>(&asked);
    let exact = attention(&asked, q.view(), k.view(), v.view(), &rows(&asked)).expect("the shapes agree");
    assert!(exact.values().data()[..24].iter().all(|&value| value == 0.0));
    assert!(exact.values().data()[24..].iter().all(|&value| value != 0.0));
    let seen: Vec<bool> = exact.lse().iter().map(|lse| lse.is_finite()).collect();
    assert_eq!(seen, [false, false, false, true, true]);
    assert_eq!(judge(&asked, &asked, &[q, k, v]), [true; 2]);
}

#[test]
fn a_hidden_key_has_no_part() {
    let asked = Attention::new(Sequences::of_lengths(&[4]), 1, 8, Dtype::Bf16).with_window(Window::CAUSAL);
    let [q, mut k, mut v] = tensors::<bf16>(&asked);
    k.view_mut().row_mut(0, 2, 0).fill(bf16::NAN);
    v.view_mut().row_mut(0, 3, 0).fill(bf16::INFINITY);
    let exact = attention(&asked, q.view(), k.view(), v.view(), &rows(&asked)).expect("the shapes agree");
    let finite: Vec<bool> = exact.values().data().chunks(8).map(|row| row.iter().all(|x| x.is_finite())).collect();
    assert_eq!(finite, [true, true, false, false]);
    assert!(exact.values().data()[16..].iter().all(|value| value.is_nan()));
}

#[test]
fn some_rows_are_rows() {
    let asked = problem::<bf16>();
    let some = some_rows(&asked, 200, 7);
    let all = rows(&asked);
    assert!(some.len() > 80 && some.iter().all(|row| all.contains(row)));
    assert_eq!(some, some_rows(&asked, 200, 7));
    assert!(some.iter().any(|row| row.row == 0) && some.iter().any(|row| row.row == 99));
    assert!(some_rows(&asked.with_keys(Sequences::of_lengths(&[0; 4])), 0, 7).is_empty());
    assert!(some_rows(&Attention::new(Sequences::of_lengths(&[]), 1, 8, Dtype::F16), 9, 7).is_empty());
}

#[test]
fn rows_see_the_keys_that_are_named() {
    // Naming what the window shows is the window; naming less is a problem with fewer keys.
    let causal = problem::<bf16>().with_window(Window::CAUSAL);
    let tensors = tensors::<bf16>(&causal);
    let [q, k, v] = [0, 1, 2].map(|index| tensors[index].view());
    let rows = rows(&causal);
    let of_window = |at: AttentionRow| {
        let (queries, keys) = (causal.queries.len_of(at.sequence), causal.keys.len_of(at.sequence));
        causal.window.keys_of(at.row, queries, keys)
    };
    let expected = attention(&causal, q, k, v, &rows).expect("the shapes agree");
    let named = attention_to(&causal, [q, k, v], &rows, &|at| of_window(at).collect()).expect("the shapes agree");
    assert_eq!((named.values(), named.lse()), (expected.values(), expected.lse()));
    let last = attention_to(&causal, [q, k, v], &rows, &|at| of_window(at).rev().take(1).collect()).expect("as above");
    let alone = causal.with_window(Window::sliding(0));
    let expected = attention(&alone, q, k, v, &rows).expect("the shapes agree");
    assert_eq!((last.values(), last.lse()), (expected.values(), expected.lse()));
    let tolerance = tolerance(&alone, q, k, v, &expected).expect("the shapes agree");
    let same = tolerance_to(&alone, [q, k, v], &last, &|at| vec![at.row]).expect("the shapes agree");
    assert_eq!(same, tolerance);
}
