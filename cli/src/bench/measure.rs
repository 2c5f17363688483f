//! One workload: every implementation is prepared and checked, then those that are right are timed in turn.

use std::time::{Duration, Instant};

use super::check::Reference;
use super::error::BenchError;
use super::implementation::{Implementation, Place, Prepared};
use super::operands::{Operands, Stored};
use super::record::{Row, Status};
use super::session::{Progress, Session, Settings};
use super::workload::layout_name;
use super::workspace::Workspace;
use crate::random::Random;
use crate::statistics::Summary;

/// Launches of each before its samples are sized.
const NUM_WARM_UP: usize = 3;
/// Rounds are run for this long before the first sample counts.
///
/// NOTE: a card at its power limit takes a few tenths of a second to find its clock. Without this, the first rounds run at a
/// clock that no lasting load sees: spreads of 10 to 20 % on an H200.
const SETTLE: Duration = Duration::from_millis(700);
/// Rounds that are taken whatever the time limit says.
const MIN_ROUNDS: usize = 5;
/// A sample takes at least this long, or [`MAX_LAUNCHES`] launches: an event resolves about half a microsecond.
const MIN_SAMPLE_US: f64 = 50.0;
const MAX_LAUNCHES: usize = 32;

/// An implementation that gave a right result, and its samples.
struct Contender<'a> {
    row: usize,
    prepared: Box<dyn Prepared + 'a>,
    workspace: &'a Workspace<'a>,
    next_set: usize,
    launches: usize,
    /// Microseconds of the fastest launch before the samples.
    warm_us: f64,
    samples: Vec<f64>,
}

impl<'a> Contender<'a> {
    fn new(row: usize, prepared: Box<dyn Prepared + 'a>, workspace: &'a Workspace<'a>) -> Self {
        Self { row, prepared, workspace, next_set: 0, launches: 1, warm_us: 0.0, samples: Vec::new() }
    }

    /// Microseconds a launch, over `launches` launches in a row.
    fn sample(&mut self) -> Result<f64, BenchError> {
        let launches = self.launches;
        let total = self.workspace.time_us(|| {
            for _ in 0..launches {
                self.prepared.launch(self.next_set)?;
                self.next_set = (self.next_set + 1) % self.workspace.num_sets();
            }
            Ok(())
        })?;
        Ok(total / launches as f64)
    }
}

/// Measures `implementations` on a workload's matrices; a row for each, in their order.
///
/// # Errors
/// What concerns the whole workload. What befalls one implementation is said in its row.
pub fn measure(
    session: &Session,
    operands: &Operands,
    implementations: &[&'static dyn Implementation],
    settings: &Settings,
    progress: &Progress,
) -> Result<Vec<Row>, BenchError> {
    let mut rows: Vec<Row> =
        implementations.iter().map(|implementation| empty_row(session, operands, *implementation, settings)).collect();
    let uses_host = implementations.iter().any(|implementation| implementation.place() == Place::Cpu);
    let host = uses_host.then(|| Workspace::host(operands));
    let uses_device = |implementation: &&dyn Implementation| {
        implementation.place() == Place::Gpu && implementation.supports(&operands.workload).is_ok()
    };
    let device = match implementations.iter().any(uses_device) {
        true => session.device_workspace(operands, settings.cache),
        false => Ok(None),
    };
    let reference = Reference::of(operands)?;

    let mut contenders = Vec::new();
    for (row, implementation) in implementations.iter().enumerate() {
        let workspace = match (implementation.place(), &device) {
            (Place::Cpu, _) => host.as_ref(),
            (Place::Gpu, Ok(device)) => device.as_ref(),
            (Place::Gpu, Err(error)) => {
                fail(&mut rows[row], error, progress);
                continue;
            }
        };
        let Some(workspace) = workspace else {
            let refusal = implementation.supports(&operands.workload).err();
            fail(&mut rows[row], &refusal.map_or_else(|| session.no_device(), BenchError::from), progress);
            continue;
        };
        match admit(*implementation, workspace, &reference, &mut rows[row], progress) {
            Ok(Some(prepared)) => {
                contenders.push(Contender::new(row, prepared, workspace));
            }
            Ok(None) => {}
            Err(error) => fail(&mut rows[row], &error, progress),
        }
    }
    take_samples(&mut contenders, &mut rows, settings, progress);
    for contender in &contenders {
        summarise(&mut rows[contender.row], contender);
    }
    add_speedups(&mut rows);
    for row in rows.iter().filter(|row| row.status == Status::Right) {
        progress.line(&format!(
            "  {}: {:.1} us, spread {:.1} %, speed-up {}",
            row.implementation,
            row.median_us.unwrap_or(f64::NAN),
            row.spread_pct.unwrap_or(f64::NAN),
            row.speedup.map_or("unknown".to_owned(), |speedup| format!("{speedup:.2}")),
        ));
    }
    Ok(rows)
}

/// Prepares an implementation and checks its result; `None` where that is wrong.
fn admit<'a>(
    implementation: &dyn Implementation,
    workspace: &'a Workspace<'a>,
    reference: &Reference,
    row: &mut Row,
    progress: &Progress,
) -> Result<Option<Box<dyn Prepared + 'a>>, BenchError> {
    implementation.supports(&workspace.operands().workload)?;
    let start = Instant::now();
    let mut prepared = implementation.prepare(workspace)?;
    row.prepare_ms = Some(start.elapsed().as_secs_f64() * 1e3);
    row.flops = prepared.flops();
    row.bytes = prepared.bytes();
    row.note = prepared.choice();
    // The first set and the last: the ones between them differ by address alone.
    let last = workspace.num_sets() - 1;
    for set in if last == 0 { vec![0] } else { vec![0, last] } {
        workspace.poison(set)?;
        workspace.time_us(|| prepared.launch(set))?;
        let verdict = reference.judge(workspace.operands(), &*workspace.output(set)?)?;
        row.error = Some(row.error.unwrap_or(0.0).max(verdict.error));
        row.error_limit = Some(verdict.limit);
        if !verdict.is_right() {
            row.status = Status::Wrong;
            row.note = verdict.to_string();
            progress.complain(&format!("{} on {}: {verdict}", row.implementation, row.workload));
            return Ok(None);
        }
    }
    prepared.begin_timing()?;
    progress.line(&format!("  {}: right, prepared in {:.1} ms", row.implementation, row.prepare_ms.unwrap_or(0.0)));
    Ok(Some(prepared))
}

/// Sizes the samples, then takes them: first of the fast contenders, then of the slow ones.
///
/// NOTE: a kernel that takes many times as long at a fraction of the power lets the card cool, and whoever comes after it
/// finds a clock that no lasting load sees. Those that take more than twice the peer's time have rounds of their own.
fn take_samples(contenders: &mut Vec<Contender<'_>>, rows: &mut [Row], settings: &Settings, progress: &Progress) {
    let mut sampling = Sampling { rows, settings, progress, random: Random::new(settings.rounds as u64) };
    sampling.step(contenders, |contender| {
        contender.warm_us = f64::INFINITY;
        for _ in 0..NUM_WARM_UP {
            contender.warm_us = contender.warm_us.min(contender.sample()?);
        }
        contender.launches = ((MIN_SAMPLE_US / contender.warm_us).ceil() as usize).clamp(1, MAX_LAUNCHES);
        Ok(())
    });
    let peer = contenders.iter().find(|contender| is_peer(&sampling.rows[contender.row]));
    let limit_us = peer.map_or(f64::INFINITY, |peer| 2.0 * peer.warm_us);
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
        let limit = Duration::from_secs_f64(self.settings.max_seconds);
        let start = Instant::now();
        while start.elapsed() < SETTLE.min(limit) && !contenders.is_empty() {
            self.random.shuffle(contenders);
            self.step(contenders, |contender| contender.sample().map(drop));
        }
        let start = Instant::now();
        for round in 0..self.settings.rounds {
            if round >= MIN_ROUNDS && start.elapsed() > limit {
                self.progress.line(&format!("  time is up after {round} rounds"));
                break;
            }
            self.random.shuffle(contenders);
            self.step(contenders, |contender| {
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
    row.launches = contender.launches as u64;
    row.median_us = Some(summary.median);
    row.min_us = Some(summary.min);
    row.spread_pct = Some(summary.spread_percent);
    row.tflops = Some(row.flops as f64 / summary.median * 1e-6);
    if let (Some(copy), Some(dense)) = (row.copy_gbps, row.dense_tflops) {
        let least_us = (row.bytes as f64 / copy * 1e-3).max(row.flops as f64 / dense * 1e-6);
        row.of_limit = Some(least_us / summary.median);
    }
}

/// Whether the row is that of the peer which its speed-ups are relative to.
fn is_peer(row: &Row) -> bool {
    row.implementation == row.peer
}

fn add_speedups(rows: &mut [Row]) {
    let Some(peer_us) = rows.iter().find(|row| is_peer(row)).and_then(|row| row.median_us) else { return };
    for row in rows {
        row.speedup = row.median_us.map(|median| peer_us / median);
    }
}

fn empty_row(session: &Session, operands: &Operands, implementation: &dyn Implementation, settings: &Settings) -> Row {
    let workload = &operands.workload;
    let machine = session.machine();
    let on_device = implementation.place() == Place::Gpu;
    let block = match &operands.a {
        Stored::Blocks(block, _) => block.to_string(),
        Stored::Entries(_) => String::new(),
    };
    Row {
        commit: machine.commit.clone(),
        card: machine.card.clone(),
        driver: machine.driver.clone(),
        date: machine.date.clone(),
        suite: settings.suite.clone(),
        workload: workload.name.clone(),
        operation: workload.operation.to_string(),
        implementation: implementation.name().to_owned(),
        m: workload.m as u64,
        n: workload.n as u64,
        k: workload.k as u64,
        block,
        stored: operands.num_stored(),
        dtype: workload.dtype.to_string(),
        c_dtype: workload.c_dtype.to_string(),
        b_layout: layout_name(workload.b_layout).to_owned(),
        c_layout: layout_name(workload.c_layout).to_owned(),
        seed: workload.seed,
        // The host's caches are left as they are.
        cache: if on_device { settings.cache.name() } else { "warm" }.to_owned(),
        peer: workload.peer.clone().unwrap_or_default(),
        copy_gbps: session.limits().copy_gbps.filter(|_| on_device),
        dense_tflops: session.limits().dense_tflops(workload.dtype).filter(|_| on_device),
        ..Row::default()
    }
}
