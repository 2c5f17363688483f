//! The chooser's predictions against recorded times, without a GPU: the matrices of the records are generated again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use hopper_sparse::Dtype;
use hopper_sparse::generate::GeneratorSpec;
use hopper_sparse::ops::auto::{Format, Question, Recommendation, recommend};

/// A pick takes at most so many times what the fastest format takes that the record has.
const MOST_LOSS: f64 = 1.25;

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
        let values: Vec<_> = line.split(',').collect();
        let value = |name| values[names.iter().position(|&column| column == name).expect("a column")];
        if value("status") != "right" {
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
        match value("implementation").strip_prefix("ours/spmm/") {
            Some(format) => drop(case.formats.insert(format.replace('-', ":"), time)),
            None => case.peer = case.peer.min(time),
        }
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
    /// Its time over the fastest's.
    loss: f64,
    /// cuSPARSE's time over its.
    speedup: f64,
    /// Predicted over measured, by format.
    ratios: Vec<(String, f64)>,
}

fn outcomes(record: &str, is_meant: impl Fn(&Case) -> bool) -> Vec<(String, Outcome)> {
    let mut cases = cases(record);
    cases.retain(is_meant);
    assert!(!cases.is_empty(), "{record}");
    let mut matrix = None;
    cases
        .into_iter()
        .map(|case| {
            let spec = format!("lookalike:{},seed={}", case.matrix, case.seed);
            if matrix.as_ref().is_none_or(|(of, _)| *of != spec) {
                matrix =
                    Some((spec.clone(), GeneratorSpec::parse(&spec).expect("a name").generate().expect("a matrix")));
            }
            let a = &matrix.as_ref().expect("it was made").1;
            assert_eq!(a.pattern().num_entries() as u64, case.num_entries, "{spec} is not the record's");
            let found = recommend(a.pattern(), &Question::new(case.num_cols, Dtype::Bf16));
            let times: Vec<_> =
                case.formats.iter().map(|(name, &time)| (name, predicted(&found, name), time)).collect();
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
            let ratios = candidates.collect();
            (case.matrix, Outcome { line, loss, speedup, ratios })
        })
        .collect()
}

fn geometric_mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    (values.clone().map(f64::ln).sum::<f64>() / values.count() as f64).exp()
}

const RECORDS: [&str; 2] = ["2026-11-30-lookalikes.csv", "2026-11-30-lookalikes-n128.csv"];

/// Each pick is near the best, and no slower than cuSPARSE.
fn check(outcomes: &[(String, Outcome)]) {
    for (_, Outcome { line, loss, speedup, .. }) in outcomes {
        println!("{line}");
        assert!(*loss <= MOST_LOSS && *speedup >= 1.0, "{line}");
    }
}

#[test]
fn picks_for_small_matrices_are_near_the_best_of_the_records() {
    for record in RECORDS {
        let found = outcomes(record, |case| case.num_entries <= FEW_ENTRIES);
        assert!(found.len() >= 9, "{record}: {} cases", found.len());
        check(&found);
    }
}

/// Prints what `docs/performance/chooser.md` says of each half: of the matrices in alphabetical order the constants are from every
/// other one, beginning with the first.
#[test]
#[ignore = "generates 34 matrices of up to 29 million entries: a minute"]
fn picks_are_near_the_best_of_the_records() {
    let all: Vec<_> = RECORDS.into_iter().flat_map(|record| outcomes(record, |_| true)).collect();
    check(&all);
    let mut names: Vec<_> = all.iter().map(|(name, _)| name).collect();
    names.sort_by_key(|name| name.to_lowercase());
    names.dedup();
    for (title, half) in [("fitted", 0), ("kept out", 1)] {
        let is_of_half = |name: &String| names.iter().position(|&one| one == name).is_some_and(|at| at % 2 == half);
        let found: Vec<_> = all.iter().filter(|(name, _)| is_of_half(name)).map(|(_, outcome)| outcome).collect();
        let near = found.iter().filter(|outcome| outcome.loss <= 1.1).count();
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
        assert!(near * 5 >= found.len() * 4, "{title}: {near} of {}", found.len());
    }
}
