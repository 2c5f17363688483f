use std::collections::{HashMap, HashSet};

use hopper_std::KernelSpec;
use kernels_gpu::attention::{SHIFT, TileWork};

use super::*;

static MANY: KernelSpec = KernelSpec::new("many", 384, 1, 1, 1024);
static FEW: KernelSpec = KernelSpec::new("few", 256, 2, 1, 1024);

const fn kernel(spec: &'static KernelSpec, rows: usize, keys: usize, serves: Serves) -> Configuration {
    Configuration {
        spec,
        dtype: KernelDtype::Bf16,
        head_dim: 128,
        rows,
        keys,
        serves,
        #[cfg(feature = "sim")]
        simulate: |_, _| (),
    }
}

static KERNELS: [Configuration; 2] = [kernel(&MANY, 128, 128, Serves::Either), kernel(&FEW, 64, 64, Serves::FewRows)];

const STORED: OneQuery = OneQuery { keys_per_part: 128, whole: Whole::Stored };
const COMBINED: OneQuery = OneQuery { whole: Whole::Combined, ..STORED };

fn problem(queries: Sequences, keys: &[usize], heads: (usize, usize)) -> Attention {
    Attention::new(queries, heads.0, 128, Dtype::Bf16).with_keys(Sequences::of_lengths(keys)).with_key_heads(heads.1)
}

fn ones(batch: usize) -> Sequences {
    Sequences::Equal { batch, len: 1 }
}

fn plan(problem: &Attention, options: OneQuery) -> AttentionPlan {
    problem.plan_with(&KERNELS, 7, options).expect("a plan")
}

fn tiles_of(plan: &AttentionPlan, kind: PassKind) -> Vec<TileWork> {
    let pass = plan.passes.iter().find(|pass| pass.kind == kind);
    pass.map_or(Vec::new(), |pass| pass.schedule.tiles.clone())
}

/// Every row of O comes of one place: a tile of queries, a tile of heads, or parts that meet each visible key once.
fn check_cover(problem: &Attention, options: OneQuery) {
    let plan = plan(problem, options);
    let mut rows: Vec<u32> = Vec::new();
    for kind in [PassKind::Queries, PassKind::Heads] {
        let tiles = tiles_of(&plan, kind);
        rows.extend(tiles.iter().flat_map(|tile| (0..tile.num_rows).map(|row| tile.lse_index + row)));
    }
    let mut partial: HashMap<u32, TileWork> = HashMap::new();
    for tile in tiles_of(&plan, PassKind::Parts) {
        for row in 0..tile.num_rows {
            assert_eq!(partial.insert(tile.lse_index + row, tile), None, "two parts in one place");
        }
    }
    let combination = plan.combination.as_ref();
    let num_partial_rows = combination.map_or(0, |combination| combination.num_partial_rows);
    assert_eq!(partial.len(), num_partial_rows);
    assert!(partial.keys().all(|&row| (row as usize) < num_partial_rows));
    let mut used = HashSet::new();
    for row in combination.map_or([].as_slice(), |combination| &combination.rows) {
        rows.push(row.lse_index);
        let parts: Vec<_> = (0..row.count).map(|part| row.first + part * row.step).collect();
        assert!(parts.iter().all(|part| used.insert(*part)), "a part counts twice");
        let tiles: Vec<_> = parts.iter().map(|part| partial[part]).collect();
        let num_keys = tiles[0].num_keys as usize;
        assert!(tiles.windows(2).all(|pair| pair[0].end_tile == pair[1].first_tile));
        let seen = problem.window.keys_of(0, 1, num_keys);
        let met = tiles[0].first_tile as usize * 64..tiles[tiles.len() - 1].end_tile as usize * 64;
        assert!(seen.is_empty() || (met.start <= seen.start && seen.end <= met.end));
        assert!(seen.is_empty() || (met.start + 64 > seen.start && seen.end + 64 > met.end));
        for (tile, part) in tiles.iter().zip(&parts) {
            let head = (tile.query_head * problem.num_query_heads as u32 / problem.num_key_heads as u32)
                + tile.query_token as u32
                + (part - tile.lse_index);
            assert_eq!((head, tile.key_head), (row.head, tile.query_head));
            assert!(tile.end_tile - tile.first_tile <= 2);
        }
    }
    assert_eq!(used.len(), num_partial_rows);
    rows.sort_unstable();
    let num_rows: usize = problem.lse_shape().into_iter().product();
    assert_eq!(rows, (0..num_rows as u32).collect::<Vec<_>>());
}

#[test]
fn every_row_is_made_once() {
    for window in
        [Window::FULL, Window::CAUSAL, Window::sliding(0), Window::sliding(200), Window { left: Some(64), right: None }]
    {
        for (queries, keys) in [
            (ones(6), [0, 1, 63, 128, 129, 1000].as_slice()),
            (Sequences::of_lengths(&[1; 6]), &[0, 1, 63, 128, 129, 1000]),
            (Sequences::of_lengths(&[1, 0, 300, 1, 2, 1]), &[700, 9, 300, 0, 1, 100]),
            (ones(0), &[]),
        ] {
            for heads in [(8, 2), (4, 4), (150, 2), (5, 1)] {
                for options in [STORED, COMBINED, OneQuery::default()] {
                    let problem = problem(queries.clone(), keys, heads).with_window(window);
                    if options == OneQuery::default() {
                        plan(&problem, options);
                    } else {
                        check_cover(&problem, options);
                    }
                }
            }
        }
    }
}

#[test]
fn the_pass_is_chosen_by_the_sequence() {
    let kinds = |plan: &AttentionPlan| plan.passes.iter().map(|pass| (pass.kind, pass.num_tiles())).collect::<Vec<_>>();
    let equal = problem(ones(3), &[100, 128, 300], (8, 2));
    assert_eq!(kinds(&plan(&equal, STORED)), [(PassKind::Heads, 4), (PassKind::Parts, 6)]);
    assert_eq!(kinds(&plan(&equal, COMBINED)), [(PassKind::Parts, 10)]);
    let mixed = |heads| problem(Sequences::of_lengths(&[1, 2, 1]), &[100, 128, 300], heads);
    assert_eq!(kinds(&plan(&mixed((8, 2)), STORED)), [(PassKind::Queries, 8), (PassKind::Parts, 8)]);
    let alone = [(PassKind::Queries, 2), (PassKind::Heads, 2), (PassKind::Parts, 6)];
    assert_eq!(kinds(&plan(&mixed((2, 2)), STORED)), alone);
    // Without a kernel for few rows, queries are rows.
    let only = equal.plan_with(&KERNELS[..1], 7, STORED).expect("a plan");
    assert_eq!(kinds(&only), [(PassKind::Queries, 24)]);
}

/// What a tile computes, whatever the batch: not where its rows lie.
fn shape_of(tile: &TileWork) -> [u32; 8] {
    let TileWork { query_token, query_head, key_head, first_tile, end_tile, diagonal, num_rows, num_keys, .. } = *tile;
    [query_token as u32, query_head, key_head, first_tile, end_tile, diagonal as u32, num_rows, num_keys]
}

#[test]
fn a_sequence_has_the_same_parts_in_any_batch() {
    for (window, options) in [(Window::FULL, STORED), (Window::sliding(290), STORED), (Window::CAUSAL, COMBINED)] {
        let tiles = |queries: &[usize], keys: &[usize]| {
            let plan = plan(&problem(Sequences::of_lengths(queries), keys, (8, 2)).with_window(window), options);
            let mut tiles: Vec<_> = plan
                .passes
                .iter()
                .flat_map(|pass| pass.schedule.tiles.iter().map(move |tile| (pass.configuration.spec.name, tile)))
                .filter(|(_, tile)| tile.num_keys == 500)
                .map(|(name, tile)| (name, shape_of(tile)))
                .collect();
            tiles.sort_unstable();
            tiles
        };
        let alone = tiles(&[1], &[500]);
        assert_eq!(alone.len() as u64, 2 * if window == Window::sliding(290) { 3 } else { 4 });
        assert_eq!(alone, tiles(&[1, 1, 1], &[1, 500, 9000]));
        assert_eq!(alone, tiles(&[300, 0, 1, 2], &[7, 9, 500, 499]));
    }
}

#[test]
fn places_are_those_of_the_maps() {
    let group = 150;
    let equal = plan(&problem(ones(2), &[60, 70], (2 * group, 2)), STORED);
    for tile in tiles_of(&equal, PassKind::Heads) {
        let [token, outer, head] = [tile.query_token as u32, tile.query_outer as u32, tile.query_head];
        assert_eq!(tile.num_rows, 64.min(group as u32 - token));
        assert_eq!(tile.lse_index, outer * 2 * group as u32 + head * group as u32 + token);
        assert_eq!((tile.num_keys, tile.diagonal), if outer == 0 { (60, 59) } else { (70, 69) });
    }
    let packed = plan(&problem(Sequences::of_lengths(&[1, 5, 1]), &[60, 5, 70], (8, 2)), STORED);
    for tile in tiles_of(&packed, PassKind::Parts) {
        assert_eq!(tile.query_outer, if tile.num_keys == 60 { 0 } else { 6 });
        assert_eq!((tile.key_token + tile.num_keys as i32, tile.diagonal), (SHIFT, tile.num_keys as i32 - 1));
    }
    for row in packed.combination.expect("parts").rows {
        assert_eq!((row.batch, row.lse_index), (0, row.head * 7 + row.token));
    }
}

#[test]
fn plans_repeat_and_print_every_pass() {
    let mixed = problem(Sequences::of_lengths(&[1, 2, 1]), &[100, 128, 3000], (2, 2));
    let twice = [plan(&mixed, OneQuery::default()), plan(&mixed, OneQuery::default())];
    let lists = |plan: &AttentionPlan| {
        let passes: Vec<_> = plan.passes.iter().map(|pass| (pass.kind, pass.schedule.tiles.clone())).collect();
        (passes, plan.combination.as_ref().map(|parts| parts.rows.clone()))
    };
    assert_eq!(lists(&twice[0]), lists(&twice[1]));
    assert_eq!(
        twice[0].to_string(),
        "many: 2 tiles of 128 rows on 2 workers, 2 tiles of 128 keys, imbalance 1.00; \
         few: 2 tiles of 64 heads on 2 workers, 4 tiles of 64 keys, imbalance 1.00; \
         few: 6 tiles of 64 heads in parts on 6 workers, 94 tiles of 64 keys, imbalance 1.02; \
         attention_combine_bf16: 2 rows of 6 parts"
    );
    assert_eq!(twice[0].num_workspace_bytes(), 6 * 129 * 4);
}

#[test]
fn workers_are_all_that_run_at_a_time() {
    let many = plan(&problem(ones(40), &[1 << 16; 40], (32, 8)), OneQuery::default());
    assert_eq!((many.passes[0].grid(), many.num_tiles()), (14, 40 * 8 * 64));
    assert!(many.passes[0].imbalance() < 1.01);
}

#[test]
fn too_many_parts_are_refused() {
    let keys = Sequences::Equal { batch: 1 << 15, len: 1 << 29 };
    let problem = Attention::new(ones(1 << 15), 1, 128, Dtype::Bf16).with_keys(keys);
    let error = problem.plan_with(&KERNELS, 7, OneQuery::default()).expect_err("a refusal");
    assert_eq!(error.to_string(), "there are 17179869184 tiles of O, but a kernel can number 1431655765 at most");
    let wide = Attention { num_query_heads: 64, ..problem };
    let wide = wide.with_keys(Sequences::Equal { batch: 1 << 15, len: 1 << 21 });
    let error = wide.plan_with(&KERNELS, 7, OneQuery::default()).expect_err("a refusal");
    assert_eq!(
        error.to_string(),
        "there are 4294967296 parts of rows of O, but a kernel can number 4294966271 at most"
    );
}
