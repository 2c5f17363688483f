use std::collections::HashMap;

use hopper_std::KernelSpec;
use kernels_gpu::attention::{SHIFT, TileWork};

use super::*;

static WIDE: KernelSpec = KernelSpec::new("wide", 384, 1, 1, 1024);
static NARROW: KernelSpec = KernelSpec::new("narrow", 384, 1, 1, 1024);
static PAIRS: KernelSpec = KernelSpec::new("pairs", 384, 1, 2, 1024);

const fn kernel(spec: &'static KernelSpec, head_dim: usize, rows: usize, keys: usize, serves: Serves) -> Configuration {
    Configuration {
        spec,
        dtype: KernelDtype::Bf16,
        head_dim,
        rows,
        keys,
        serves,
        #[cfg(feature = "sim")]
        simulate: |_, _| (),
    }
}

static KERNELS: [Configuration; 4] = [
    kernel(&WIDE, 128, 192, 80, Serves::Either),
    kernel(&NARROW, 128, 128, 128, Serves::Masked),
    kernel(&PAIRS, 64, 192, 128, Serves::Either),
    kernel(&WIDE, 256, 128, 80, Serves::Either),
];

fn problem(queries: &[usize], keys: &[usize], heads: (usize, usize)) -> Attention {
    Attention::new(Sequences::of_lengths(queries), heads.0, 128, Dtype::Bf16)
        .with_keys(Sequences::of_lengths(keys))
        .with_key_heads(heads.1)
}

fn plan(problem: &Attention, multiprocessors: u32) -> AttentionPlan {
    problem.plan_among(&KERNELS, multiprocessors).expect("a plan")
}

/// The one pass of a plan with rows in it.
fn pass(problem: &Attention, multiprocessors: u32) -> Pass {
    let [pass] = <[Pass; 1]>::try_from(plan(problem, multiprocessors).passes).expect("one pass");
    pass
}

/// Every row of O is in one tile; what it sees is in the tile's keys, whose first and last tile some row sees.
fn check_cover(problem: &Attention) {
    let plan = plan(problem, 5);
    let Some(pass) = plan.passes.first() else {
        return assert_eq!(problem.lse_shape().into_iter().product::<usize>(), 0);
    };
    assert_eq!((plan.passes.len(), pass.kind), (1, PassKind::Queries));
    let (rows, keys) = (pass.configuration.rows, pass.configuration.keys);
    let mut tile_of: HashMap<(u32, usize), TileWork> = HashMap::new();
    for tile in &pass.schedule.tiles {
        assert!((1..=rows).contains(&(tile.num_rows as usize)));
        for at in 0..tile.num_rows as usize {
            let row = tile.lse_index as usize + at;
            assert_eq!(tile_of.insert((tile.query_head, row), *tile), None, "a row is in two tiles");
        }
    }
    let mut num_rows = 0;
    for sequence in 0..problem.queries.num_sequences() {
        let (num_queries, num_keys) = (problem.queries.len_of(sequence), problem.keys.len_of(sequence));
        for head in 0..problem.num_query_heads {
            let mut seen: HashMap<usize, (usize, usize)> = HashMap::new();
            for row in 0..num_queries {
                num_rows += 1;
                let index = problem.lse_index(sequence, head, row);
                let tile = tile_of[&(head as u32, index)];
                let first_row = row - (index - tile.lse_index as usize);
                assert_eq!(tile.num_keys as usize, num_keys);
                assert_eq!(tile.key_head as usize, problem.key_head_of(head));
                assert_eq!(tile.diagonal as i64, first_row as i64 + num_keys as i64 - num_queries as i64);
                assert_eq!(tile.num_rows as usize, rows.min(num_queries - first_row));
                let visible = problem.window.keys_of(row, num_queries, num_keys);
                let range = seen.entry(first_row).or_insert((usize::MAX, 0));
                if !visible.is_empty() {
                    assert!(visible.start >= tile.first_tile as usize * keys, "{tile:?}, row {row}: {visible:?}");
                    assert!(visible.end <= tile.end_tile as usize * keys, "{tile:?}, row {row}: {visible:?}");
                    *range = (range.0.min(visible.start / keys), range.1.max(visible.end.div_ceil(keys)));
                }
            }
            for (row, (first, end)) in seen {
                let tile = tile_of[&(head as u32, problem.lse_index(sequence, head, row))];
                let behind = num_keys.div_ceil(keys);
                let (first, end) = if first < end { (first, end) } else { (behind, behind + 1) };
                let met = (first as u32, end as u32);
                assert_eq!((tile.first_tile, tile.end_tile), met, "keys that no row sees");
            }
        }
    }
    assert_eq!(tile_of.len(), num_rows);
    let offsets = &pass.schedule.offsets;
    assert_eq!((offsets[0], offsets[offsets.len() - 1]), (0, plan.num_tiles() as u32));
    assert!(offsets.is_sorted() && pass.grid() == offsets.len() as u32 - 1);
}

#[test]
fn every_visible_pair_is_in_one_tile() {
    let windows = [
        Window::FULL,
        Window::CAUSAL,
        Window::sliding(50),
        Window::sliding(0),
        Window { left: Some(300), right: Some(17) },
        Window { left: None, right: Some(130) },
        Window { left: Some(5), right: None },
    ];
    for window in windows {
        for (queries, keys) in [
            ([0, 1, 127, 300].as_slice(), [5, 1, 127, 300].as_slice()),
            (&[1, 1, 400, 129], &[0, 1000, 33, 128]),
            (&[128, 256], &[128, 0]),
            (&[], &[]),
        ] {
            check_cover(&problem(queries, keys, (4, 2)).with_window(window));
            check_cover(&problem(queries, keys, (3, 1)).with_window(window));
        }
        for (batch, len) in [(0, 7), (3, 0), (2, 1), (2, 257)] {
            let equal = Attention::new(Sequences::Equal { batch, len }, 2, 128, Dtype::Bf16).with_window(window);
            check_cover(&equal);
        }
    }
}

/// What a tile computes, whatever the batch: not where its rows lie.
fn shape_of(tile: &TileWork) -> [u32; 7] {
    [tile.query_head, tile.key_head, tile.first_tile, tile.end_tile, tile.diagonal as u32, tile.num_rows, tile.num_keys]
}

#[test]
fn a_sequence_has_the_same_tiles_in_any_batch() {
    for window in [Window::FULL, Window::CAUSAL, Window::sliding(200)] {
        let tiles = |queries: &[usize], keys: &[usize]| {
            let passes = plan(&problem(queries, keys, (4, 2)).with_window(window), 132).passes;
            let mut tiles: Vec<_> = passes
                .iter()
                .flat_map(|pass| pass.schedule.tiles.iter().map(|tile| (pass.configuration.spec.name, tile)))
                .filter(|(_, tile)| tile.num_keys == 1000)
                .map(|(name, tile)| (name, shape_of(tile)))
                .collect();
            tiles.sort_unstable();
            tiles
        };
        let alone = tiles(&[300], &[1000]);
        assert_eq!(alone.len(), 4 * if window == Window::FULL { 2 } else { 3 });
        assert_eq!(alone, tiles(&[7, 300, 5000], &[7, 1000, 5000]));
        assert_eq!(alone, tiles(&[2000, 0, 0, 300], &[1, 0, 9, 1000]));
    }
}

#[test]
fn packed_coordinates_end_at_the_bound() {
    let problem = problem(&[3, 0, 200], &[10, 20, 5], (2, 2));
    for tile in pass(&problem, 3).schedule.tiles {
        // Places are counted back from the bound.
        let place = |token: i32, outer: i32| token + outer - SHIFT;
        let (first, len, first_key) = if tile.num_keys == 10 { (0, 3, 0) } else { (3, 200, 30) };
        let row = tile.diagonal + len - tile.num_keys as i32;
        assert_eq!(place(tile.query_token, tile.query_outer), first + row);
        assert_eq!(tile.query_token + (len - row), SHIFT);
        assert_eq!(place(tile.key_token, tile.key_outer), first_key);
        assert_eq!(tile.key_token + tile.num_keys as i32, SHIFT);
        assert_eq!(tile.lse_index as i32, tile.query_head as i32 * 203 + first + row);
    }
}

#[test]
fn equal_coordinates_are_plain() {
    let problem = Attention::new(Sequences::Equal { batch: 3, len: 200 }, 4, 128, Dtype::Bf16).with_key_heads(2);
    for tile in pass(&problem, 3).schedule.tiles {
        assert_eq!((tile.query_token, tile.key_token), (tile.diagonal, 0));
        assert_eq!(tile.query_outer, tile.key_outer);
        assert_eq!(tile.key_head, tile.query_head / 2);
        assert_eq!(tile.lse_index, (tile.query_outer as u32 * 4 + tile.query_head) * 200 + tile.diagonal as u32);
    }
}

#[test]
fn kernels_by_options_alone() {
    let name = |problem: Attention| pass(&problem, 132).configuration().spec.name;
    let base = problem(&[100], &[100], (2, 2));
    assert_eq!(name(base.clone()), "wide");
    assert_eq!(name(base.clone().with_window(Window::CAUSAL)), "narrow");
    assert_eq!(name(base.clone().with_window(Window { left: None, right: Some(1 << 20) })), "narrow");
    let long = problem(&[100], &[5000], (2, 2));
    assert_eq!(name(long.clone().with_window(Window::CAUSAL)), "wide");
    assert_eq!(name(long.clone().with_window(Window::sliding(4095))), "narrow");
    assert_eq!(name(long.with_window(Window { left: Some(4095), right: Some(1) })), "wide");
    assert_eq!(name(Attention { head_dim: 72, ..base.clone() }), "wide");
    assert_eq!(name(Attention { head_dim: 40, ..base.clone() }.with_window(Window::CAUSAL)), "pairs");
    assert_eq!(pass(&Attention { head_dim: 200, ..base.clone() }, 132).configuration().keys, 80);
    let f16 = Attention { dtype: Dtype::F16, ..base.clone() }.plan_among(&KERNELS, 132).expect_err("none in f16");
    assert_eq!(f16.to_string(), "no attention kernel takes a head dimension of 128 in f16");
}

#[test]
fn sequences_of_few_keys_have_a_pass_of_their_own() {
    let causal = problem(&[5000, 300, 4097], &[5000, 300, 4097], (2, 1)).with_window(Window::CAUSAL);
    let passes = plan(&causal, 132).passes;
    let shape = |pass: &Pass| (pass.kind, pass.configuration.spec.name, pass.num_tiles());
    let tiles = |rows: usize, of: usize| 2 * rows.div_ceil(of);
    assert_eq!(
        passes.iter().map(shape).collect::<Vec<_>>(),
        [
            (PassKind::Queries, "wide", tiles(5000, 192) + tiles(4097, 192)),
            (PassKind::Queries, "narrow", tiles(300, 128))
        ]
    );
}

#[test]
fn causal_work_is_balanced() {
    let causal = |lengths: &[usize]| plan(&problem(lengths, lengths, (16, 16)).with_window(Window::CAUSAL), 132);
    for lengths in [&[16384][..], &[4096; 4], &[1024; 16], &[16000, 30, 5000, 12000, 7000, 8000]] {
        let imbalance = causal(lengths).passes[0].imbalance();
        assert!(imbalance < 1.06, "{lengths:?}: {imbalance}");
    }
    let tiles = |plan: AttentionPlan| plan.passes.into_iter().map(|pass| pass.schedule.tiles).collect::<Vec<_>>();
    assert_eq!(tiles(causal(&[3000, 200])), tiles(causal(&[3000, 200])));
}

#[test]
fn heads_of_a_section_fit_in_l2() {
    // K and V of a head take 8 MB: four heads a section, so that a worker meets them in this order.
    let lengths = [16384];
    let pass = pass(&problem(&lengths, &lengths, (16, 16)).with_window(Window::CAUSAL), 132);
    let (tiles, offsets) = pass.lists();
    for worker in offsets.windows(2) {
        let sections = tiles[worker[0] as usize..worker[1] as usize].iter().map(|tile| tile.key_head / 4);
        assert!(sections.is_sorted());
    }
}

#[test]
fn a_cluster_is_a_worker() {
    let problem = Attention { head_dim: 64, ..problem(&[5000], &[5000], (8, 8)) };
    let plan = plan(&problem, 132);
    assert_eq!((plan.passes[0].num_workers(), plan.passes[0].grid()), (66, 132));
    assert_eq!(plan.to_string(), "pairs: 216 tiles of 192 rows on 66 workers, 8640 tiles of 128 keys, imbalance 1.22");
}

#[test]
fn keys_that_are_not_there_are_out_of_bounds() {
    // The token axis of a map of no tokens has one.
    let equal = |len| Sequences::Equal { batch: 2, len };
    for (keys, bound) in [(equal(0), 1), (Sequences::of_lengths(&[0, 0]), SHIFT)] {
        let problem = Attention::new(equal(3), 1, 128, Dtype::Bf16).with_keys(keys);
        assert!(pass(&problem, 4).schedule.tiles.iter().all(|tile| tile.key_token == bound));
    }
}

#[test]
fn nothing_to_do_is_a_plan() {
    let plan = plan(&problem(&[0, 0], &[5, 0], (2, 1)), 132);
    assert_eq!((plan.num_tiles(), plan.num_key_tiles(), plan.num_workspace_bytes()), (0, 0, 0));
    assert_eq!(plan.to_string(), "nothing to do");
}

#[test]
fn a_million_keys_are_planned() {
    let pass = pass(&problem(&[1, 1 << 20], &[1 << 20, 1 << 20], (1, 1)).with_window(Window::CAUSAL), 132);
    assert!(pass.schedule.tiles.iter().any(|tile| tile.num_rows == 1 && tile.end_tile == (1_u32 << 20).div_ceil(80)));
}

#[test]
fn too_many_tiles_are_refused() {
    let batch = Sequences::Equal { batch: (1 << 30) + (1 << 29), len: 1 };
    let problem = Attention::new(batch, 1, 128, Dtype::Bf16);
    let error = problem.plan_among(&KERNELS, 132).expect_err("a refusal");
    assert_eq!(error.to_string(), "there are 1610612736 tiles of O, but a kernel can number 1431655765 at most");
}
