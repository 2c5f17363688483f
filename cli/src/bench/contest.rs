//! One workload: every entrant gets ready and is checked, then those that are right, and peers that are nearly so, are timed in
//! turn.

use std::thread;
use std::time::{Duration, Instant};

use super::error::BenchError;
use super::load::Sizes;
use super::operands::Verdict;
use super::record::{Row, Status};
use super::session::{Progress, Settings};
use super::workload::is_named;
use crate::random::Random;
use crate::statistics::Summary;

/// Launches of each before its samples are sized.
const NUM_WARM_UP: usize = 3;
/// Rounds that are taken whatever the time limit says.
const MIN_ROUNDS: usize = 5;
/// While it settles, each computes for this long before the next does.
const TURN: Duration = Duration::from_millis(50);

/// Launches of which a sample consists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launches {
    /// Before the timed ones, at once. They are not timed.
    pub lead: usize,
    /// Timed.
    pub timed: usize,
}

/// Somebody who is ready to show a result and to be timed.
pub trait Contestant {
    /// Computes, and compares the result with what is right.
    ///
    /// # Errors
    /// What failed; a wrong result is no error.
    fn check(&mut self) -> Result<Verdict, BenchError>;

    /// Called once, when the result has been found right and before the samples.
    ///
    /// # Errors
    /// What failed.
    fn begin_timing(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    /// The launches of a sample where `least` suffice: more for one who takes some at a time only.
    fn whole(&self, least: usize) -> usize {
        least
    }

    /// Microseconds of one launch, over all that are timed, by the clock of where it runs.
    ///
    /// # Errors
    /// What failed.
    fn sample(&mut self, launches: Launches) -> Result<f64, BenchError>;

    /// Launches again and again for so long.
    ///
    /// # Errors
    /// What failed.
    fn warm(&mut self, duration: Duration) -> Result<(), BenchError>;

    /// Operations of a launch.
    fn flops(&self) -> u64;

    /// Bytes that a launch must move at least.
    fn bytes(&self) -> u64;

    /// Bytes of the weights as they are stored, where it has weights.
    fn weight_bytes(&self) -> Option<u64> {
        None
    }

    /// Bytes that a launch asks of L2, where that limits it.
    fn l2_bytes(&self) -> Option<u64> {
        None
    }

    /// What was chosen, for the report.
    fn choice(&self) -> String;
}

/// Gets somebody ready: all that need be done once.
pub type Prepare<'a> = Box<dyn FnOnce() -> Result<Box<dyn Contestant + 'a>, BenchError> + 'a>;

/// Somebody who wants to take part.
pub struct Entrant<'a> {
    /// The row of the record, as far as it is known.
    pub row: Row,
    /// Whether it shares the device with this process, from a process of its own.
    pub process: Process,
    /// Gets it ready.
    pub prepare: Prepare<'a>,
}

/// In which process an entrant computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// In this one.
    This,
    /// In one of its own.
    Own,
}

/// One that is timed, and its samples.
struct Contender<'a> {
    row: usize,
    contestant: Box<dyn Contestant + 'a>,
    launches: Launches,
    /// Microseconds of the fastest launch before the samples.
    warm_us: f64,
    samples: Vec<f64>,
}

impl Contender<'_> {
    fn sample(&mut self) -> Result<f64, BenchError> {
        self.contestant.sample(self.launches)
    }
}

/// Measures the entrants of a workload; a row for each, in their order. What befalls one of them is said in its row.
pub fn hold(entrants: Vec<Entrant<'_>>, settings: &Settings, progress: &Progress) -> Vec<Row> {
    let sizes = settings.load.sizes(entrants.iter().map(|entrant| entrant.process));
    let (mut rows, mut contenders) = (Vec::new(), Vec::new());
    for Entrant { mut row, prepare, .. } in entrants {
        match admit(prepare, &mut row, progress) {
            Ok(Some(contestant)) => {
                let launches = Launches { lead: sizes.lead, timed: contestant.whole(1) };
                contenders.push(Contender { row: rows.len(), contestant, launches, warm_us: 0.0, samples: Vec::new() });
            }
            Ok(None) => {}
            Err(error) => fail(&mut row, &error, progress),
        }
        rows.push(row);
    }
    take_samples(&mut contenders, &mut rows, sizes, settings, progress);
    for contender in &contenders {
        summarise(&mut rows[contender.row], contender);
    }
    add_speedups(&mut rows);
    for row in rows.iter().filter(|row| row.status.is_timed()) {
        progress.line(&format!(
            "  {}: {:.1} us, spread {:.1} %, speed-up {}",
            row.implementation,
            row.median_us.unwrap_or(f64::NAN),
            row.spread_pct.unwrap_or(f64::NAN),
            row.speedup.map_or("unknown".to_owned(), |speedup| format!("{speedup:.2}")),
        ));
    }
    rows
}

/// Gets an entrant ready and checks its result; `None` where that is not to be timed.
fn admit<'a>(
    prepare: Prepare<'a>,
    row: &mut Row,
    progress: &Progress,
) -> Result<Option<Box<dyn Contestant + 'a>>, BenchError> {
    let start = Instant::now();
    let mut contestant = prepare()?;
    row.prepare_ms = Some(start.elapsed().as_secs_f64() * 1e3);
    row.flops = contestant.flops();
    row.bytes = contestant.bytes();
    row.weight_bytes = contestant.weight_bytes();
    if let (Some(bytes), Some(m), Some(k)) = (row.weight_bytes, row.m, row.k) {
        row.bytes_per_element = Some(bytes as f64 / (m as f64 * k as f64));
    }
    row.l2_bytes = contestant.l2_bytes();
    row.note = contestant.choice();
    let verdict = contestant.check()?;
    row.error = Some(verdict.error);
    row.error_limit = Some(verdict.limit);
    row.status = match verdict.is_right() {
        true => Status::Right,
        false if is_peer(row) && verdict.is_near() => Status::Near,
        false => Status::Wrong,
    };
    if row.status != Status::Right {
        row.note = verdict.to_string();
    }
    if !row.status.is_timed() {
        progress.complain(&format!("{} on {}: {verdict}", row.implementation, row.workload));
        return Ok(None);
    }
    contestant.begin_timing()?;
    let (name, status) = (&row.implementation, row.status.name());
    progress.line(&format!("  {name}: {status}, prepared in {:.1} ms", row.prepare_ms.unwrap_or(0.0)));
    Ok(Some(contestant))
}

/// Sizes the samples, then takes them: first of the fast contenders, then of the slow ones.
///
/// NOTE: a kernel that takes many times as long at a fraction of the power lets the card cool, and whoever comes after it
/// finds a clock that no lasting load sees. Those that take more than twice the peer's time have rounds of their own.
fn take_samples(
    contenders: &mut Vec<Contender<'_>>,
    rows: &mut [Row],
    sizes: Sizes,
    settings: &Settings,
    progress: &Progress,
) {
    let mut sampling = Sampling { rows, settings, progress, random: Random::new(settings.rounds as u64) };
    sampling.step(contenders, |contender| {
        contender.warm_us = f64::INFINITY;
        for _ in 0..NUM_WARM_UP {
            contender.warm_us = contender.warm_us.min(contender.sample()?);
        }
        let timed = ((sizes.least_us / contender.warm_us).ceil() as usize).clamp(1, sizes.most_launches);
        let lead = ((sizes.lead_us / contender.warm_us).ceil() as usize).clamp(sizes.lead, sizes.most_launches);
        contender.launches = Launches { lead, timed: contender.contestant.whole(timed) };
        Ok(())
    });
    let peers = contenders.iter().filter(|contender| is_peer(&sampling.rows[contender.row]));
    let limit_us = peers.map(|peer| 2.0 * peer.warm_us).reduce(f64::min).unwrap_or(f64::INFINITY);
    let (mut fast, mut slow): (Vec<_>, Vec<_>) =
        contenders.drain(..).partition(|contender| contender.warm_us <= limit_us);
    for group in [&mut fast, &mut slow] {
        sampling.rounds(group);
        contenders.append(group);
    }
}

/// What the rounds of a workload have in common.
struct Sampling<'a> {
    rows: &'a mut [Row],
    settings: &'a Settings,
    progress: &'a Progress,
    random: Random,
}

impl Sampling<'_> {
    /// Does something with each contender; one that fails is removed, and its row says why.
    fn step<'c>(
        &mut self,
        contenders: &mut Vec<Contender<'c>>,
        mut action: impl FnMut(&mut Contender<'c>) -> Result<(), BenchError>,
    ) {
        contenders.retain_mut(|contender| match action(contender) {
            Ok(()) => true,
            Err(error) => {
                fail(&mut self.rows[contender.row], &error, self.progress);
                false
            }
        });
    }

    /// Takes the samples round by round, so that a change of clock or temperature meets every contender alike. Each round
    /// has its own random order: who follows a hot kernel finds a lower clock than who follows a cool one.
    fn rounds(&mut self, contenders: &mut Vec<Contender<'_>>) {
        let (limit, load) = (Duration::from_secs_f64(self.settings.max_seconds), self.settings.load);
        let start = Instant::now();
        while start.elapsed() < load.settling().min(limit) && !contenders.is_empty() {
            self.random.shuffle(contenders);
            self.step(contenders, |contender| contender.contestant.warm(TURN));
        }
        let start = Instant::now();
        for round in 0..self.settings.rounds {
            if round >= MIN_ROUNDS && start.elapsed() > limit {
                self.progress.line(&format!("  time is up after {round} rounds"));
                break;
            }
            self.random.shuffle(contenders);
            self.step(contenders, |contender| {
                thread::sleep(load.rest());
                let sample = contender.sample()?;
                contender.samples.push(sample);
                Ok(())
            });
        }
    }
}

fn fail(row: &mut Row, error: &BenchError, progress: &Progress) {
    row.note = error.to_string();
    match error {
        BenchError::Refused(_) => {
            row.status = Status::Refused;
            progress.line(&format!("  {}: refused: {error}", row.implementation));
        }
        _ => {
            row.status = Status::Failed;
            progress.complain(&format!("{} on {}: {error}", row.implementation, row.workload));
        }
    }
}

fn summarise(row: &mut Row, contender: &Contender<'_>) {
    let Some(summary) = Summary::of(&contender.samples) else { return };
    row.rounds = summary.num_samples as u64;
    row.launches = contender.launches.timed as u64;
    row.median_us = Some(summary.median);
    (row.min_us, row.max_us) = (Some(summary.min), Some(summary.max));
    row.spread_pct = Some(summary.spread_percent);
    row.tflops = Some(row.flops as f64 / summary.median * 1e-6);
    row.of_copy = row.copy_gbps.map(|copy| row.bytes as f64 / copy * 1e-3 / summary.median);
    if let (Some(copy), Some(dense)) = (row.copy_gbps, row.dense_tflops) {
        let least_us = (row.bytes as f64 / copy * 1e-3).max(row.flops as f64 / dense * 1e-6);
        row.of_limit = Some(least_us / summary.median);
    }
}

/// Whether the row is that of a peer which the speed-ups may be relative to.
fn is_peer(row: &Row) -> bool {
    is_named(&row.peer, &row.implementation)
}

/// The speed-ups over the fastest peer, which each row then names.
fn add_speedups(rows: &mut [Row]) {
    let timed = rows.iter().filter(|row| is_peer(row)).filter_map(|row| Some((row.median_us?, &row.implementation)));
    let fastest = timed.min_by(|(left, _), (right, _)| left.total_cmp(right));
    let Some((peer_us, peer)) = fastest.map(|(median, name)| (median, name.clone())) else { return };
    for row in rows {
        row.speedup = row.median_us.map(|median| peer_us / median);
        row.peer.clone_from(&peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_peers_the_fastest_counts() {
        let row = |implementation: &str, median_us| Row {
            implementation: implementation.to_owned(),
            peer: "vendor/*".to_owned(),
            median_us,
            ..Row::default()
        };
        let mut rows =
            [row("ours/a", Some(2.0)), row("vendor/a", Some(9.0)), row("vendor/b", Some(3.0)), row("vendor/c", None)];
        add_speedups(&mut rows);
        assert_eq!(rows.each_ref().map(|row| row.speedup), [Some(1.5), Some(1.0 / 3.0), Some(1.0), None]);
        assert!(rows.iter().all(|row| row.peer == "vendor/b"));
        let mut rows = [row("ours/a", Some(2.0)), row("vendor/c", None)];
        add_speedups(&mut rows);
        assert_eq!((rows[0].speedup, rows[0].peer.as_str()), (None, "vendor/*"));
    }
}
