use half::bf16;

use super::vertical::Sums;
use super::*;
use crate::element::Dtype;
use crate::formats::{Heads, HeadsLayout, HeadsShape};
use crate::ops::attention::Window;
use crate::ops::attention::blocks::{KeyLists, SparseAttention};

fn causal(queries: Sequences, keys: Sequences, heads: [usize; 2]) -> Attention {
    Attention::new(queries, heads[0], 16, Dtype::Bf16)
        .with_keys(keys)
        .with_key_heads(heads[1])
        .with_window(Window::CAUSAL)
}

fn equal(batch: usize, len: usize) -> Sequences {
    Sequences::Equal { batch, len }
}

/// Pseudo-random elements from -2 to 2.
fn tensor(shape: HeadsShape, seed: u64) -> Heads<bf16> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bf16::from_f64(((state >> 33) as f64 / (1u64 << 31) as f64 - 0.5) * 4.0)
    };
    let data = (0..shape.batch * shape.tokens * shape.heads * shape.head_dim).map(|_| next()).collect();
    Heads::from_vec(data, shape, HeadsLayout::TokensHeads).expect("as many as the shape has")
}

/// The scaled and capped score of a row and a key, in float64.
fn score(problem: &Attention, q: &Heads<bf16>, k: &Heads<bf16>, at: [usize; 3], key: usize) -> f64 {
    let [sequence, head, row] = at;
    let query = row_of(q.view(), &problem.queries, sequence, head, row);
    let key = row_of(k.view(), &problem.keys, sequence, problem.key_head_of(head), key);
    let sum: f64 = query.iter().zip(key).map(|(q, k)| q.to_f64() * k.to_f64()).sum();
    let score = f64::from(problem.scale) * sum;
    problem.softcap.map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh())
}

/// What the last `count` rows of a head attend to, by key and by distance, in float64.
fn plain_sums(
    problem: &Attention,
    q: &Heads<bf16>,
    k: &Heads<bf16>,
    [sequence, head]: [usize; 2],
    count: usize,
) -> [Vec<f64>; 2] {
    let (num_queries, num_keys) = (problem.queries.len_of(sequence), problem.keys.len_of(sequence));
    let mut sums = [vec![0.0; num_keys], vec![0.0; num_keys]];
    for row in num_queries.saturating_sub(count)..num_queries {
        let diagonal = row as i64 + num_keys as i64 - num_queries as i64;
        let scores: Vec<f64> =
            (0..=diagonal).map(|key| score(problem, q, k, [sequence, head, row], key as usize)).collect();
        let sum: f64 = scores.iter().map(|score| score.exp()).sum();
        for (key, score) in scores.iter().enumerate() {
            sums[0][key] += score.exp() / sum;
            sums[1][diagonal as usize - key] += score.exp() / sum;
        }
    }
    sums
}

#[test]
fn sums_are_those_of_the_attention() {
    for (queries, keys, softcap) in [
        (equal(2, 150), equal(2, 150), None),
        (equal(1, 40), equal(1, 300), Some(1.5)),
        (equal(1, 200), equal(1, 90), None),
        (equal(1, 90), equal(1, 30), None),
        (Sequences::of_lengths(&[70, 0, 1, 130]), Sequences::of_lengths(&[70, 5, 0, 200]), None),
    ] {
        let problem = Attention { softcap, ..causal(queries, keys, [4, 2]) };
        let (q, k) = (tensor(problem.query_shape(), 1), tensor(problem.key_shape(), 2));
        for (sequence, head) in (0..problem.queries.num_sequences()).flat_map(|s| (0..4).map(move |h| (s, h))) {
            let found = Sums::new(&problem, q.view(), k.view(), [sequence, head], 64);
            let expected = plain_sums(&problem, &q, &k, [sequence, head], 64);
            for (found, expected) in [found.columns, found.diagonals].iter().zip(&expected) {
                assert_eq!(found.len(), expected.len());
                for (found, expected) in found.iter().zip(expected) {
                    assert!((found - expected).abs() < 1e-5 * (1.0 + expected), "{found}, not {expected}");
                }
            }
        }
    }
}

/// Every key of a chosen column or diagonal is seen, and what else is lies in a block that a diagonal runs through.
#[test]
fn chosen_columns_and_diagonals_are_seen() {
    for (queries, keys) in [
        (equal(1, 300), equal(1, 300)),
        (equal(1, 100), equal(1, 420)),
        (equal(1, 300), equal(1, 120)),
        (Sequences::of_lengths(&[70, 0, 230]), Sequences::of_lengths(&[70, 0, 230])),
    ] {
        let problem = causal(queries, keys, [2, 1]);
        let (q, k) = (tensor(problem.query_shape(), 3), tensor(problem.key_shape(), 4));
        let options = VerticalSlashOptions { sink: 3, local: 5, ..VerticalSlashOptions::new(8, 9) };
        let lists = vertical_slash(&problem, q.view(), k.view(), options).expect("lists");
        let sparse = SparseAttention::new(problem.clone(), lists);
        assert_eq!(sparse.check(), Ok(()));
        for (sequence, head) in (0..problem.queries.num_sequences()).flat_map(|s| (0..2).map(move |h| (s, h))) {
            let (num_queries, num_keys) = (problem.queries.len_of(sequence), problem.keys.len_of(sequence));
            let mut sums = plain_sums(&problem, &q, &k, [sequence, head], 64);
            for (sums, first) in sums.iter_mut().zip([3, 5]) {
                sums.iter_mut().take(first).for_each(|sum| *sum = f64::INFINITY);
            }
            let chosen = |sums: &[f64], count: usize| {
                let mut order: Vec<usize> = (0..sums.len()).collect();
                order.sort_by(|&a, &b| sums[b].total_cmp(&sums[a]));
                order.truncate(count);
                order
            };
            let (columns, diagonals) = (chosen(&sums[0], 8), chosen(&sums[1], 9));
            for row in 0..num_queries {
                let diagonal = row as i64 + num_keys as i64 - num_queries as i64;
                let seen = sparse.keys_of(sequence, head, row);
                let mut wanted: Vec<i64> = columns.iter().map(|&column| column as i64).collect();
                wanted.extend(diagonals.iter().map(|&distance| diagonal - distance as i64));
                wanted.retain(|&key| (0..=diagonal).contains(&key));
                for key in &wanted {
                    assert!(seen.contains(&(*key as usize)), "row {row} does not see key {key}");
                }
                // A block is at most 63 keys on from one of a diagonal of its 64 rows.
                for &key in seen.iter().filter(|&&key| !columns.contains(&key)) {
                    let near = |&distance: &usize| (diagonal - distance as i64 - key as i64).abs() <= 127;
                    assert!(diagonals.iter().any(near), "row {row} sees key {key}");
                }
            }
        }
    }
}

#[test]
fn blocks_whose_means_agree() {
    for (block, window) in [(BlockSize::B64, Window::CAUSAL), (BlockSize::B128, Window::FULL)] {
        let lengths = Sequences::of_lengths(&[500, 90, 0, 700]);
        let problem = causal(lengths.clone(), lengths, [2, 1]).with_window(window);
        let (q, k) = (tensor(problem.query_shape(), 5), tensor(problem.key_shape(), 6));
        let lists = top_blocks(&problem, q.view(), k.view(), block, 3).expect("lists");
        assert_eq!(SparseAttention::new(problem.clone(), lists.clone()).check(), Ok(()));
        let (mask, tokens) = (lists.to_mask(), block.tokens());
        let average = |tensor: &Heads<bf16>, sequence: usize, head: usize, block: usize| -> Vec<f64> {
            let len = problem.queries.len_of(sequence);
            let rows = block * tokens..((block + 1) * tokens).min(len);
            let row = |at| row_of(tensor.view(), &problem.queries, sequence, head, at);
            let column = |at: usize| rows.clone().map(|token| row(token)[at].to_f64()).sum::<f64>();
            (0..16).map(|at| column(at) / rows.len() as f64).collect()
        };
        for (row, listed) in mask.chunks_exact(lists.num_key_blocks()).enumerate() {
            let place = lists.extents().place(row);
            let num_blocks = problem.queries.len_of(place.sequence).div_ceil(tokens);
            if place.query_block >= num_blocks {
                assert!(listed.iter().all(|listed| !listed));
                continue;
            }
            let end = if window == Window::CAUSAL { place.query_block + 1 } else { num_blocks };
            let query = average(&q, place.sequence, place.head, place.query_block);
            let score = |block: usize| -> f64 {
                query.iter().zip(average(&k, place.sequence, 0, block)).map(|(q, k)| q * k).sum()
            };
            let mut order: Vec<usize> = (0..end).collect();
            order.sort_by(|&a, &b| score(b).total_cmp(&score(a)));
            order.truncate(3);
            for (block, &listed) in listed.iter().enumerate() {
                assert_eq!(listed, order.contains(&block), "{place}, key block {block}");
            }
        }
    }
}

#[test]
fn a_sink_and_what_is_near() {
    for (queries, keys) in [
        (equal(2, 500), equal(2, 500)),
        (equal(1, 100), equal(1, 300)),
        (Sequences::of_lengths(&[500, 70]), Sequences::of_lengths(&[400, 70])),
    ] {
        let problem = causal(queries, keys, [2, 2]);
        for (sink, local) in [(0, 1), (1, 100), (70, 64), (64, 0)] {
            let lists = a_shape(&problem, BlockSize::B64, sink, local).expect("lists");
            let sparse = SparseAttention::new(problem.clone(), lists);
            assert_eq!(sparse.check(), Ok(()));
            for sequence in 0..problem.queries.num_sequences() {
                let (num_queries, num_keys) = (problem.queries.len_of(sequence), problem.keys.len_of(sequence));
                for block in 0..num_queries.div_ceil(64) {
                    let rows = block * 64..((block + 1) * 64).min(num_queries);
                    // A block is listed where some row and some key of it are in the shape.
                    let mut expected = vec![false; num_keys.div_ceil(64)];
                    for (row, key) in rows.clone().flat_map(|row| (0..num_keys).map(move |key| (row, key))) {
                        let distance = row as i64 + num_keys as i64 - num_queries as i64 - key as i64;
                        expected[key / 64] |= distance >= 0 && (key < sink || distance < local as i64);
                    }
                    let row = rows.end - 1;
                    let seen = sparse.keys_of(sequence, 1, row);
                    let window = problem.window.keys_of(row, num_queries, num_keys);
                    let wanted: Vec<usize> = window.filter(|key| expected[key / 64]).collect();
                    assert_eq!(seen, wanted, "sequence {sequence}, block {block}");
                }
            }
        }
    }
}

#[test]
fn threads_do_not_change_lists() {
    let problem = causal(equal(1, 9000), equal(1, 9000), [2, 1]);
    let (q, k) = (tensor(problem.query_shape(), 7), tensor(problem.key_shape(), 8));
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let options = VerticalSlashOptions::new(300, 200);
            let slashes = vertical_slash(&problem, q.view(), k.view(), options).expect("lists");
            let blocks = top_blocks(&problem, q.view(), k.view(), BlockSize::B64, 10).expect("lists");
            (KeyLists::from(slashes), KeyLists::from(blocks))
        })
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn refusals_say_why() {
    let problem = causal(equal(1, 100), equal(1, 100), [1, 1]);
    let (q, k) = (tensor(problem.query_shape(), 1), tensor(problem.key_shape(), 2));
    let full = problem.clone().with_window(Window::FULL);
    let error = vertical_slash(&full, q.view(), k.view(), VerticalSlashOptions::new(1, 1)).expect_err("not causal");
    assert_eq!(error.to_string(), "diagonals are estimated for causal attention alone");
    let longer = causal(equal(1, 101), equal(1, 100), [1, 1]);
    let error = top_blocks(&longer, q.view(), k.view(), BlockSize::B64, 1).expect_err("another shape");
    assert!(error.to_string().starts_with("Q has 1 x 100 tokens"), "{error}");
}
