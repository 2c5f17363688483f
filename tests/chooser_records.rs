//! The chooser's predictions against recorded times, without a GPU: the look-alikes of the records are generated again, real matrices read
//! where they are at hand.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use hopper_sparse::Dtype;
use hopper_sparse::formats::CsrPattern;
use hopper_sparse::generate::GeneratorSpec;
use hopper_sparse::io::matrix_market::{ReadOptions, read};
use hopper_sparse::ops::auto::{Format, Question, Recommendation, recommend};

/// A pick is near the best where it takes at most so many times what the fastest format takes that the record has.
const NEAR: f64 = 1.1;

/// The part of the cases whose picks are near the best, at least.
const LEAST_NEAR: f64 = 0.9;

/// Entries of the matrices that every run generates; the others take a minute.
const FEW_ENTRIES: u64 = 3_300_000;

/// A matrix times so many columns, in one record: microseconds by format, and cuSPARSE's of its fastest algorithm.
struct Case {
    matrix: String,
    num_cols: usize,
    num_entries: u64,
    seed: u64,
    formats: BTreeMap<String, f64>,
    peer: f64,
}

fn cases(record: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/records/h200").join(record);
    let text = std::fs::read_to_string(&path).expect("a record");
    let names: Vec<_> = text.lines().next().expect("a header").split(',').collect();
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().skip(1) {
        // A note may hold commas; it is last.
        let values: Vec<_> = line.splitn(names.len(), ',').collect();
        let value = |name| values[names.iter().position(|&column| column == name).expect("a column")];
        let ours = value("implementation").strip_prefix("ours/spmm/");
        // A peer slightly beyond the bound of the error is a peer.
        let is_timed = value("status") == "right" || (value("status") == "near" && ours.is_none());
        if !is_timed {
            continue;
        }
        let matrix = value("workload").split(' ').next().expect("a name");
        let number = |name| value(name).parse::<u64>().expect("a number");
        let (num_cols, time) = (number("n") as usize, value("median_us").parse().expect("a time"));
        if cases.last().is_none_or(|case| (case.matrix.as_str(), case.num_cols) != (matrix, num_cols)) {
            let (matrix, num_entries, seed) = (matrix.to_owned(), number("stored"), number("seed"));
            let (formats, peer) = (BTreeMap::new(), f64::INFINITY);
            cases.push(Case { matrix, num_cols, num_entries, seed, formats, peer });
        }
        let case = cases.last_mut().expect("a case");
        match ours {
            // The kernel's name has the blocks: bcsr_bf16_64x16_row_n128.
            Some("bcsr") => {
                let block = value("note").split('_').nth(2).expect("a kernel");
                case.formats.insert(format!("bcsr:{block}"), time);
            }
            Some(format) => drop(case.formats.insert(format.replace('-', ":"), time)),
            None => case.peer = case.peer.min(time),
        }
    }
    cases
}

/// The look-alikes, with blocks where they were measured.
fn lookalikes() -> Vec<Case> {
    let mut cases = cases("2026-11-30-lookalikes.csv");
    let blocks = ["2026-11-30-lookalikes-blocks.csv", "2026-12-01-lookalikes-blocks.csv"];
    for with_blocks in blocks.into_iter().flat_map(self::cases) {
        let of = |case: &&mut Case| (&case.matrix, case.num_cols) == (&with_blocks.matrix, with_blocks.num_cols);
        let case = cases.iter_mut().find(of).expect("the other record has it");
        case.formats.extend(with_blocks.formats.into_iter().filter(|(format, _)| format.starts_with("bcsr")));
    }
    cases
}

/// Microseconds by the prediction: of what was passed over a bound from below, which is over the best's.
fn predicted(found: &Recommendation, name: &str) -> f64 {
    let format = Format::all().find(|format| format.to_string() == name).expect("a format");
    let bound = || found.passed_over.iter().find(|one| one.format == format).map(|one| one.least_seconds);
    found.candidate(format).map(|candidate| candidate.launch_seconds()).or_else(bound).expect("a prediction") * 1e6
}

/// How a pick did.
struct Outcome {
    line: String,
    /// The recorded time of the pick.
    micros: f64,
    /// Its time over the fastest's.
    loss: f64,
    /// cuSPARSE's time over its.
    speedup: f64,
    /// Predicted over measured, by format.
    ratios: Vec<(String, f64)>,
}

/// The chooser's pick of the formats that the record has.
fn outcome(case: &Case, pattern: &CsrPattern) -> Outcome {
    assert_eq!(pattern.num_entries() as u64, case.num_entries, "{} is not the record's", case.matrix);
    let found = recommend(pattern, &Question::new(case.num_cols, Dtype::Bf16));
    let times: Vec<_> = case.formats.iter().map(|(name, &time)| (name, predicted(&found, name), time)).collect();
    let pick = times.iter().min_by(|one, other| one.1.total_cmp(&other.1)).expect("a format");
    let best = times.iter().min_by(|one, other| one.2.total_cmp(&other.2)).expect("a format");
    let (loss, speedup) = (pick.2 / best.2, case.peer / pick.2);
    let mut line = format!("{} x {}: {}", case.matrix, case.num_cols, pick.0);
    write!(line, " ({:.1} us predicted, {:.1} measured), best {} ({:.1})", pick.1, pick.2, best.0, best.2)
        .expect("a string takes it");
    write!(line, ", {loss:.2} of the best, {speedup:.2} over cuSPARSE").expect("a string takes it");
    let first = found.best().expect("a candidate").format.to_string();
    if first != *pick.0 {
        write!(line, "; of all formats first {first}").expect("a string takes it");
    }
    // Not what was passed over, of which only a bound is known.
    let candidates = found.candidates.iter().filter_map(|candidate| {
        let name = candidate.format.to_string();
        let time = case.formats.get(&name)?;
        Some((name, candidate.launch_seconds() * 1e6 / time))
    });
    Outcome { line, micros: pick.2, loss, speedup, ratios: candidates.collect() }
}

fn outcomes(is_meant: impl Fn(&Case) -> bool) -> Vec<(String, Outcome)> {
    let mut cases = lookalikes();
    cases.retain(is_meant);
    cases.sort_by(|one, other| one.matrix.cmp(&other.matrix));
    let mut matrix = None;
    cases
        .into_iter()
        .map(|case| {
            let spec = format!("lookalike:{},seed={}", case.matrix, case.seed);
            if matrix.as_ref().is_none_or(|(of, _)| *of != spec) {
                matrix =
                    Some((spec.clone(), GeneratorSpec::parse(&spec).expect("a name").generate().expect("a matrix")));
            }
            let found = outcome(&case, matrix.as_ref().expect("it was made").1.pattern());
            (case.matrix, found)
        })
        .collect()
}

fn geometric_mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    (values.clone().map(f64::ln).sum::<f64>() / values.count() as f64).exp()
}

fn num_near<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> usize {
    outcomes.into_iter().filter(|outcome| outcome.loss <= NEAR).count()
}

/// Nine of ten picks are near the best, and none is slower than cuSPARSE.
fn check(outcomes: &[(String, Outcome)]) {
    for (_, Outcome { line, speedup, .. }) in outcomes {
        println!("{line}");
        assert!(*speedup >= 1.0, "{line}");
    }
    let near = num_near(outcomes.iter().map(|(_, outcome)| outcome));
    println!("{near} of {} picks are within 10 % of the best", outcomes.len());
    assert!(near as f64 >= LEAST_NEAR * outcomes.len() as f64, "{near} of {}", outcomes.len());
}

#[test]
fn picks_for_small_lookalikes_are_near_the_best_of_the_record() {
    let found = outcomes(|case| case.num_entries <= FEW_ENTRIES);
    assert_eq!(found.len(), 33);
    check(&found);
}

/// The matrix that was no part of the record which the constants are from.
const LATER: &str = "in-2004";

/// Prints what `docs/performance/chooser.md` says of each half: of the matrices in alphabetical order, but for the one that came later, the
/// constants are from every other one, beginning with the first.
#[test]
#[ignore = "generates 34 matrices of up to 29 million entries: a minute"]
fn picks_are_near_the_best_of_the_record() {
    let all = outcomes(|_| true);
    assert_eq!(all.len(), 102);
    let mut names: Vec<_> = all.iter().map(|(name, _)| name).collect();
    names.sort_by_key(|name| name.to_lowercase());
    names.dedup();
    names.retain(|&name| name != LATER);
    let is_fitted = |name: &String| names.iter().position(|&one| one == name).is_some_and(|at| at % 2 == 0);
    for (title, fitted, least_near) in [("fitted", true, 0.94), ("kept out", false, 0.9)] {
        let is_of_half = |(name, _): &&(String, Outcome)| is_fitted(name) == fitted;
        let found: Vec<_> = all.iter().filter(is_of_half).map(|(_, outcome)| outcome).collect();
        let near = num_near(found.iter().copied());
        let most = found.iter().map(|outcome| outcome.loss).fold(0.0, f64::max);
        let (mean, least) = (
            geometric_mean(found.iter().map(|outcome| outcome.speedup)),
            found.iter().map(|outcome| outcome.speedup).fold(f64::INFINITY, f64::min),
        );
        println!(
            "{title}: {near} of {} within 10 %, most {most:.2}, over cuSPARSE {mean:.2}, least {least:.2}",
            found.len()
        );
        let mut by_format: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (format, ratio) in found.iter().flat_map(|outcome| &outcome.ratios) {
            by_format.entry(format).or_default().push(*ratio);
        }
        for (format, mut ratios) in by_format {
            ratios.sort_by(f64::total_cmp);
            let mean = geometric_mean(ratios.iter().copied());
            let within = |share: f64| ratios.iter().filter(|ratio| ratio.ln().abs() <= share.ln()).count();
            println!(
                "  {format}: {} cases, mean {mean:.2}, {:.2} to {:.2}, {} within 10 %, {} within 25 %",
                ratios.len(),
                ratios[0],
                ratios[ratios.len() - 1],
                within(1.1),
                within(1.25)
            );
        }
        assert!(near as f64 >= least_near * found.len() as f64, "{title}: {near} of {}", found.len());
    }
    check(&all);
}

/// Microseconds of Acc-SpMM's published code, TF32, N = 128, by its own timer on an H200: of no record.
const ACC_SPMM: [(&str, f64); 7] = [
    ("bcsstk33", 24.6),
    ("bcsstk13", 15.3),
    ("fidapex6", 10.3),
    ("cora", 15.3),
    ("ca-CondMat", 40.7),
    ("crack", 11.0),
    ("cage8", 12.1),
];

/// What picks reach over it in the geometric mean, at least.
const LEAST_OVER_ACC_SPMM: f64 = 1.47;

/// Where the real matrices are: `HOPPER_MATRICES`, or beside the repository.
fn matrices() -> PathBuf {
    match std::env::var_os("HOPPER_MATRICES") {
        Some(folder) => folder.into(),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/matrices/suitesparse"),
    }
}

/// Of launches that find everything in the caches, as the other's do.
#[test]
fn picks_for_real_matrices_are_faster_than_a_published_kernel() {
    let folder = matrices();
    if !folder.is_dir() {
        println!("skipped: no folder {}; HOPPER_MATRICES names another", folder.display());
        return;
    }
    let cases = cases("2026-11-30-small-matrices-warm.csv");
    let speedups = ACC_SPMM.map(|(name, theirs)| {
        let case = cases.iter().find(|case| case.matrix == name).expect("the record has it");
        let loaded = read::<f32>(&folder.join(format!("{name}.mtx")), &ReadOptions::default());
        let a = loaded.unwrap_or_else(|error| panic!("{error}")).matrix.to_csr();
        let found = outcome(case, a.pattern());
        println!("{}; {:.2} over {theirs} us", found.line, theirs / found.micros);
        theirs / found.micros
    });
    let mean = geometric_mean(speedups.into_iter());
    println!("{mean:.2} in the geometric mean");
    assert!(mean >= LEAST_OVER_ACC_SPMM, "{mean}");
}
