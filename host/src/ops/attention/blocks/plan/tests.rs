use std::collections::BTreeSet;

use super::*;
use crate::element::Dtype;
use crate::ops::attention::blocks::{BlockLists, BlockSize, CountedLists, ListExtents, VerticalSlash};
use crate::ops::attention::{Attention, PassKind, Sequences, Window};

fn problem(queries: &[usize], keys: &[usize], heads: usize) -> Attention {
    Attention::new(Sequences::of_lengths(queries), heads, 128, Dtype::Bf16).with_keys(Sequences::of_lengths(keys))
}

/// Lists of blocks for a problem, from whether a block of queries of a head of a sequence lists a block of keys.
fn blocks(problem: &Attention, block: BlockSize, lists: impl Fn([usize; 4]) -> bool) -> SparseAttention {
    let tokens = block.tokens();
    let extents = ListExtents {
        sequences: problem.queries.num_sequences(),
        heads: problem.num_query_heads,
        query_blocks: problem.queries.longest().div_ceil(tokens),
    };
    let num_key_blocks = problem.keys.longest().div_ceil(tokens);
    let mask: Vec<bool> = (0..extents.rows())
        .flat_map(|row| (0..num_key_blocks).map(move |key_block| (row, key_block)))
        .map(|(row, key_block)| {
            let place = extents.place(row);
            lists([place.sequence, place.head, place.query_block, key_block])
        })
        .collect();
    let lists = BlockLists::from_mask(block, extents, num_key_blocks, &mask).expect("a mask");
    SparseAttention::new(problem.clone(), lists)
}

/// The keys that a tile meets, and how often it meets a tile of them.
fn keys_of(pass: &Pass, tile: &TileWork) -> BTreeSet<u32> {
    let entries = pass.entries();
    let tokens = pass.configuration().keys;
    let mut keys = BTreeSet::new();
    for &entry in &entries.blocks[tile.first_tile as usize..tile.end_tile as usize] {
        let of_entry: Vec<u32> = match entry & COLUMNS {
            0 => (entry..entry + tokens as u32).collect(),
            _ => {
                let begin = (entry & !COLUMNS) as usize;
                assert!(begin.is_multiple_of(2), "columns are read in pairs");
                entries.columns[begin..begin + tokens].to_vec()
            }
        };
        for key in of_entry.into_iter().filter(|&key| key < tile.num_keys) {
            assert!(keys.insert(key), "key {key} counts twice");
        }
    }
    keys
}

/// The one pass of a plan.
fn pass_of(plan: &AttentionPlan) -> &Pass {
    assert_eq!(plan.num_workspace_bytes(), 0, "{plan}");
    match plan.passes() {
        [pass] if pass.kind() == PassKind::Queries => pass,
        _ => panic!("one pass by queries is wanted: {plan}"),
    }
}

/// Every row is in one tile, whose keys are those that the rows see and nothing in tiles that no row sees.
fn check(sparse: &SparseAttention) {
    let problem = &sparse.attention;
    let plan = sparse.plan(3).expect("a plan");
    let pass = pass_of(&plan);
    let mut rows = BTreeSet::new();
    for tile in pass.lists().0 {
        for at in 0..tile.num_rows {
            assert!(rows.insert(tile.lse_index + at), "a row is in two tiles");
        }
        assert!(tile.first_tile < tile.end_tile, "a tile meets no tile of keys");
    }
    assert_eq!(rows.len(), problem.lse_shape().into_iter().product::<usize>());
    for sequence in 0..problem.queries.num_sequences() {
        let (num_queries, num_keys) = (problem.queries.len_of(sequence), problem.keys.len_of(sequence));
        for (head, row) in (0..problem.num_query_heads).flat_map(|head| (0..num_queries).map(move |row| (head, row))) {
            let index = problem.lse_index(sequence, head, row) as u32;
            let is_its = |tile: &&TileWork| (tile.lse_index..tile.lse_index + tile.num_rows).contains(&index);
            let tile = pass.lists().0.iter().find(is_its).expect("each row has a tile");
            let window = problem.window.keys_of(row, num_queries, num_keys);
            let met: Vec<usize> =
                keys_of(pass, tile).into_iter().map(|key| key as usize).filter(|key| window.contains(key)).collect();
            assert_eq!(met, sparse.keys_of(sequence, head, row), "row {row} of head {head} of sequence {sequence}");
        }
    }
}

#[test]
fn tiles_meet_the_keys_of_their_lists() {
    for window in [Window::FULL, Window::CAUSAL, Window::sliding(70), Window { left: Some(9), right: Some(200) }] {
        for (queries, keys) in [(&[300, 0, 129][..], &[300, 7, 500][..]), (&[64, 1], &[0, 640])] {
            let problem = problem(queries, keys, 2).with_window(window);
            for block in [BlockSize::B64, BlockSize::B128] {
                check(&blocks(&problem, block, |[s, h, q, k]| (s + 2 * h + 3 * q + 5 * k) % 3 == 0));
                check(&blocks(&problem, block, |_| false));
                check(&blocks(&problem, block, |_| true));
            }
            let extents = ListExtents { sequences: 1, heads: 1, query_blocks: problem.queries.longest().div_ceil(64) };
            let num_keys = problem.keys.longest();
            let of = |keys: Vec<usize>| -> Vec<i32> { keys.into_iter().map(|key| key as i32).collect() };
            let rows = |of_row: &dyn Fn(usize) -> Vec<usize>| {
                let rows: Vec<_> = (0..extents.query_blocks).map(|row| of(of_row(row))).collect();
                CountedLists::of_rows(&rows)
            };
            let starts = rows(&|row| (row..num_keys).step_by(130 - row).collect());
            let columns = rows(&|row| (0..num_keys).step_by(2 + row).collect());
            let lists = VerticalSlash::try_new(extents, num_keys, starts, columns).expect("proper lists");
            check(&SparseAttention::new(problem, lists));
        }
    }
}

#[test]
fn what_a_window_hides_costs_nothing() {
    let causal = problem(&[640], &[640], 1).with_window(Window::CAUSAL);
    let plan = blocks(&causal, BlockSize::B64, |_| true).plan(132).expect("a plan");
    assert_eq!((plan.num_tiles(), plan.num_key_tiles()), (10, 55));
    let sliding = causal.with_window(Window::sliding(64));
    let plan = blocks(&sliding, BlockSize::B128, |_| true).plan(132).expect("a plan");
    assert_eq!((plan.num_tiles(), plan.num_key_tiles()), (5, 9));
}

#[test]
fn neighbours_are_worked_on_at_the_same_time() {
    let problem = problem(&[64 * 40], &[64 * 40], 3);
    let plan = blocks(&problem, BlockSize::B64, |[_, _, q, k]| (q + k) % 4 == 0).plan(4).expect("a plan");
    // Two blocks fit on a multiprocessor.
    let pass = pass_of(&plan);
    assert_eq!((pass.num_workers(), pass.imbalance()), (8, 1.0));
    let (tiles, offsets) = pass.lists();
    let of_worker = |worker: usize| &tiles[offsets[worker] as usize..offsets[worker + 1] as usize];
    for step in 0..15 {
        let at: Vec<_> =
            (0..8).map(|worker| of_worker(worker)[step]).map(|tile| (tile.query_head, tile.query_token)).collect();
        for pair in at.windows(2) {
            assert_eq!(pair[0].0, pair[1].0);
            assert_eq!(pair[0].1, pair[1].1 + 64);
        }
    }
}

#[test]
fn uneven_lists_are_balanced() {
    let problem = problem(&[64 * 500], &[64 * 500], 1);
    // One tile of 500, and 499 of one.
    let plan = blocks(&problem, BlockSize::B64, |[_, _, q, k]| q == 3 || q == k).plan(2).expect("a plan");
    assert!(pass_of(&plan).imbalance() < 1.05, "{plan}");
    let causal = problem.with_window(Window::CAUSAL);
    let plan = blocks(&causal, BlockSize::B64, |_| true).plan(16).expect("a plan");
    assert!(pass_of(&plan).imbalance() < 1.05, "{plan}");
}

#[test]
fn other_problems_lists_are_refused() {
    let problem = problem(&[300, 100], &[300, 200], 4);
    let says = |extents: [usize; 3], num_key_blocks: usize, sentence: &str| {
        let [sequences, heads, query_blocks] = extents;
        let extents = ListExtents { sequences, heads, query_blocks };
        let mask = vec![true; extents.rows() * num_key_blocks];
        let lists = BlockLists::from_mask(BlockSize::B64, extents, num_key_blocks, &mask).expect("a mask");
        let error = SparseAttention::new(problem.clone(), lists).plan(132).expect_err("a refusal");
        assert_eq!(error.to_string(), sentence);
    };
    says([3, 1, 5], 5, "the lists are of 3 sequences, but the problem has 2: give one, for all, or as many");
    says([1, 2, 5], 5, "the lists are of 2 heads, but the problem has 4: give one, for all, or as many");
    says([1, 1, 4], 5, "the lists are of 4 blocks of 64 queries, but the longest sequence has 5");
    says([2, 4, 5], 6, "the lists are of 6 blocks of 64 keys, but the longest sequence has 5");
    let extents = ListExtents { sequences: 1, heads: 1, query_blocks: 5 };
    let lists = VerticalSlash::try_new(extents, 299, CountedLists::default(), CountedLists::default()).expect("lists");
    let error = SparseAttention::new(problem.clone(), lists).plan(132).expect_err("a refusal");
    assert_eq!(error.to_string(), "the lists are of 299 keys, but the longest sequence has 300");
    let wide = blocks(&Attention { head_dim: 192, ..problem }, BlockSize::B128, |_| true);
    assert_eq!(
        wide.plan(132).expect_err("a refusal").to_string(),
        "no attention kernel takes lists of blocks of 128 keys with a head dimension of 192 in bf16"
    );
}

#[test]
fn a_problem_prints_its_lists() {
    let sparse = blocks(&problem(&[128], &[128], 2), BlockSize::B64, |[_, _, q, k]| q == k);
    assert_eq!(
        sparse.to_string(),
        "attention bf16 full, 1 packed, 128 in all queries, 2 heads of 128, 4 listed blocks of 64 in 1 x 2 heads"
    );
}
