//! Every look-alike, shrunk where it is large; all at full size where somebody asks (`--ignored`, with `--release`).

use super::*;

/// Entries above which a matrix is shrunk.
const SMALL: u64 = 1_000_000;
/// Rows of a window.
const WINDOW: usize = 64;

/// What decides how fast a product with the matrix is.
struct Facts {
    num_entries: u64,
    longest_row: u32,
    /// Entries over the elements of all windows: 64 rows, and the columns that any of them has.
    fill: f64,
    /// Columns of all windows over entries: rows of B that are fetched for an entry.
    fetched: f64,
}

impl Facts {
    fn of(pattern: &CsrPattern) -> Self {
        let offsets = pattern.row_offsets();
        let longest = offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        let mut columns = 0;
        for first in (0..pattern.num_rows()).step_by(WINDOW) {
            let last = (first + WINDOW).min(pattern.num_rows());
            let mut union = pattern.col_indices()[offsets[first] as usize..offsets[last] as usize].to_vec();
            union.sort_unstable();
            union.dedup();
            columns += union.len();
        }
        let num_entries = pattern.num_entries() as u64;
        Self {
            num_entries,
            longest_row: longest as u32,
            fill: num_entries as f64 / (columns * WINDOW) as f64,
            fetched: columns as f64 / num_entries as f64,
        }
    }
}

/// The same law for about a `divisor`-th of the rows; the longest row shrinks where it would not fit the law.
fn shrunk(matrix: &Lookalike, divisor: u64) -> (Rule, Size) {
    let Size { num_rows, num_entries, longest_row } = matrix.size;
    let mut size = Size { num_rows: num_rows / divisor as usize, num_entries: num_entries / divisor, longest_row };
    let mut rule = matrix.rule;
    match &mut rule {
        Rule::Kkt(kkt) => {
            kkt.side = (f64::from(kkt.side) / (divisor as f64).cbrt()) as u32;
            size.num_rows = kkt.num_rows();
            size.num_entries = kkt_entries(kkt.side.into());
        }
        Rule::Edges(_) | Rule::Webs(_) => size.longest_row = (f64::from(longest_row) / (divisor as f64).sqrt()) as u32,
        Rule::Arrow(_) => size.longest_row = longest_row / divisor as u32,
        // A layer is a part of the entries that counts.
        Rule::Mesh(_) if matrix.kind == LookalikeKind::Grid => (rule, size) = (matrix.rule, matrix.size),
        Rule::Kronecker(graph) => {
            // A node of the greatest degree has 0.76 of its edges in its half.
            graph.scale -= 2;
            size.num_rows = 1 << graph.scale;
            size.num_entries = num_entries / 4;
            size.longest_row = (f64::from(longest_row) / 4.0 / 0.76_f64.powi(2)) as u32;
        }
        // A smaller body has more surface, so fewer neighbours, and might be left without the rarest junctions.
        Rule::Mesh(mesh) if divisor > 2 => {
            size.num_entries = size.num_entries * 97 / 100;
            if let Some(junctions) = mesh.junctions.as_mut().filter(|junctions| junctions.every > 1000) {
                junctions.every /= 4;
            }
        }
        Rule::Mesh(_) | Rule::Roads(_) | Rule::Strips(_) => {}
    }
    (rule, size)
}

/// States and multipliers with their up to 27 neighbours, controls with up to nine, and the diagonal.
fn kkt_entries(side: u64) -> u64 {
    let line = 3 * side - 2;
    2 * line.pow(3) + 2 * 6 * line.pow(2) + 2 * side.pow(3) + 6 * side.pow(2)
}

fn is_symmetric(pattern: &CsrPattern) -> bool {
    let ones = Csr::from_checked(pattern.clone(), vec![1.0_f32; pattern.num_entries()]);
    ones.transpose() == ones
}

/// Fails unless the pattern is what the size and the kind promise.
#[track_caller]
fn check(matrix: &Lookalike, rule: &Rule, size: Size, pattern: &CsrPattern) {
    let name = matrix.name;
    assert_eq!((pattern.num_rows(), pattern.num_cols()), (size.num_rows, size.num_rows), "{name}");
    let sound = CsrPattern::try_new(
        size.num_rows,
        size.num_rows,
        pattern.row_offsets().to_vec(),
        pattern.col_indices().to_vec(),
    );
    assert_eq!(sound.as_ref(), Ok(pattern), "{name}: columns increase strictly");
    let facts = Facts::of(pattern);
    let entries = facts.num_entries as f64 / size.num_entries as f64;
    assert!((0.99..=1.01).contains(&entries), "{name}: {} entries for {}", facts.num_entries, size.num_entries);
    let longest = f64::from(facts.longest_row) / f64::from(size.longest_row);
    assert!((0.75..=1.25).contains(&longest), "{name}: a row of {} for {}", facts.longest_row, size.longest_row);
    assert_eq!(is_symmetric(pattern), rule.is_symmetric(), "{name}");
    match matrix.kind {
        LookalikeKind::FiniteElements => {
            assert!((0.10..=0.40).contains(&facts.fill), "{name}: windows filled to {:.3}", facts.fill);
        }
        LookalikeKind::Optimisation => {}
        _ => assert!(facts.fill < 0.05, "{name}: windows filled to {:.3}", facts.fill),
    }
}

#[test]
fn every_law_gives_what_its_matrix_has() {
    for matrix in Lookalike::all() {
        // Bodies and blocks must keep their insides.
        let small =
            if matches!(matrix.rule, Rule::Edges(_) | Rule::Webs(_) | Rule::Roads(_)) { SMALL / 3 } else { SMALL };
        let (rule, size) = shrunk(matrix, matrix.num_entries().div_ceil(small));
        // A grid does not shrink; another test has them whole.
        if matrix.kind == LookalikeKind::Grid {
            continue;
        }
        let pattern = rule.pattern(size, 5);
        check(matrix, &rule, size, &pattern);
    }
}

#[test]
fn the_same_seed_gives_the_same_matrix_on_any_number_of_threads() {
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    for matrix in Lookalike::all() {
        let (rule, size) = shrunk(matrix, matrix.num_entries().div_ceil(SMALL / 6));
        // The grids do not shrink; others of their law do.
        if size.num_entries > SMALL {
            continue;
        }
        let generate = |seed| rule.pattern(size, seed);
        let one = pool(1).install(|| generate(3));
        assert!(pool(3).install(|| generate(3)) == one, "{}: on three threads", matrix.name);
        // A small body may have every neighbour that there is.
        if !matches!(rule, Rule::Kkt(_) | Rule::Mesh(_)) {
            assert!(generate(4) != one, "{}: another seed", matrix.name);
        }
    }
}

#[test]
fn names_are_unique_and_kinds_are_all_there() {
    let all = Lookalike::all();
    assert!(all.len() >= 20);
    for (index, matrix) in all.iter().enumerate() {
        let found = Lookalike::find(&matrix.name.to_uppercase()).expect("in whatever case");
        assert!(core::ptr::eq(found, matrix), "{} is there twice", matrix.name);
        assert!(
            index == 0
                || all[index - 1].kind == matrix.kind
                || !all[..index - 1].iter().any(|other| other.kind == matrix.kind)
        );
        assert!(matrix.num_entries() > 1_000_000 && !matrix.law().is_empty());
        assert!(matrix.label().ends_with("(look-alike)"));
    }
    let count = |kind| all.iter().filter(|matrix| matrix.kind == kind).count();
    assert!(count(LookalikeKind::FiniteElements) >= 8);
    for kind in [
        LookalikeKind::Grid,
        LookalikeKind::Graph,
        LookalikeKind::Road,
        LookalikeKind::Web,
        LookalikeKind::Circuit,
        LookalikeKind::Optimisation,
    ] {
        assert!(count(kind) > 0, "{kind}");
    }
    assert!(Lookalike::find("cant2").is_none());
}

#[test]
fn sizes_that_a_law_gives_exactly() {
    let kkt = Kkt { side: 80 };
    let nlpkkt80 = Lookalike::find("nlpkkt80").expect("it is there");
    assert_eq!((kkt.num_rows(), kkt_entries(80)), (nlpkkt80.num_rows(), nlpkkt80.num_entries()));
    let small = Kkt { side: 7 }.pattern();
    assert_eq!(small.num_entries() as u64, kkt_entries(7));
    for name in ["ecology1", "atmosmodd"] {
        let grid = Lookalike::find(name).expect("it is there");
        let pattern = grid.rule.pattern(grid.size, 0);
        assert_eq!(pattern.num_entries() as u64, grid.num_entries(), "{name}");
        check(grid, &grid.rule, grid.size, &pattern);
    }
}

#[test]
fn symmetric_matrices_have_symmetric_values() {
    let matrix = Lookalike::find("crystk03").expect("it is there").generate(9);
    assert_eq!(matrix.transpose(), matrix);
    assert!(matrix.values().iter().all(|value| (-1.0..1.0).contains(value)));
}

#[test]
#[ignore = "some hundred million entries: a minute with --release"]
fn every_look_alike_at_full_size() {
    println!(
        "{:18} {:>9} {:>10} {:>7} {:>6} {:>6} {:>5} {:>7}",
        "", "rows", "entries", "longest", "of", "fill", "fetch", "seconds"
    );
    for matrix in Lookalike::all() {
        let start = std::time::Instant::now();
        let csr = matrix.generate(1);
        let seconds = start.elapsed().as_secs_f64();
        let facts = Facts::of(csr.pattern());
        println!(
            "{:18} {:9} {:10} {:7} {:6} {:6.3} {:5.2} {seconds:7.2}",
            matrix.name,
            csr.num_rows(),
            facts.num_entries,
            facts.longest_row,
            matrix.longest_row(),
            facts.fill,
            facts.fetched,
        );
        check(matrix, &matrix.rule, matrix.size, csr.pattern());
    }
}
