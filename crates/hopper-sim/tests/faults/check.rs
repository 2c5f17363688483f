//! What it means that a kernel is right, and that a fault is caught.

use std::path::Path;

use hopper_sim::{Finding, FindingKind, Mode, Report, Schedule};
use hopper_std::ptx::mbarrier::mbarrier_try_wait_parity;

/// Seeds of each mode for a right kernel; `HOPPER_SIM_SEEDS` takes their place.
const SEEDS: u64 = 3;

/// Seeds of each mode until a fault must be caught, however many a right kernel is given.
const SEEDS_FOR_A_FAULT: u64 = 20;

/// What a run came to, and whether the numbers were right.
pub type Outcome = (Report, bool);

/// Nothing is found and the numbers are right, whatever the schedule.
#[track_caller]
pub fn right(run: impl Fn(Schedule) -> Outcome) {
    for schedule in Schedule::all(SEEDS) {
        let (report, numbers) = run(schedule);
        assert!(report.findings.is_empty(), "{schedule:?}: {report}");
        assert!(numbers, "{schedule:?}: nothing found, but the numbers are wrong");
    }
}

/// Some schedule finds `kind` first of all: at a line that contains `line`, in words that contain `words`.
#[track_caller]
pub fn caught(kind: FindingKind, line: &str, words: &str, run: impl Fn(Schedule) -> Outcome) {
    let mut seen = Vec::new();
    let schedules = (0..SEEDS_FOR_A_FAULT).flat_map(|seed| Mode::ALL.map(|mode| Schedule::new(mode, seed)));
    for schedule in schedules {
        let (report, _) = run(schedule);
        let Some(first) = report.findings.first() else { continue };
        if first.kind == kind && source_of(first).contains(line) && first.details.contains(words) {
            return;
        }
        seen.push(format!("{first} [{}]", source_of(first)));
    }
    seen.sort();
    seen.dedup();
    seen.truncate(8);
    panic!("no {kind:?} at `{line}` with `{words}`, but:\n{}", seen.join("\n"));
}

/// No schedule comes to the right numbers without a finding.
#[track_caller]
pub fn wrong(run: impl Fn(Schedule) -> Outcome) {
    for schedule in Schedule::all(SEEDS) {
        let (report, numbers) = run(schedule);
        assert!(!numbers || !report.findings.is_empty(), "{schedule:?}: the fault does not show");
    }
}

/// The line of source that was caught; nothing where there is none.
pub fn source_of(finding: &Finding) -> String {
    let Some(at) = finding.at else { return String::new() };
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(workspace.join(at.file())).expect("a file of this test");
    text.lines().nth(at.line() as usize - 1).expect("a line of the file").trim().to_owned()
}

/// Waits for the phase of this parity.
#[track_caller]
pub unsafe fn wait(barrier: u32, parity: u32) {
    while !mbarrier_try_wait_parity(barrier, parity) {}
}
