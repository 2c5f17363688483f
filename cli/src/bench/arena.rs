//! A workload's memory, and the implementations that compute in it.

use std::time::{Duration, Instant};

use super::contest::{Contestant, Entrant, Launches, Process};
use super::error::BenchError;
use super::implementation::{Implementation, Place, Prepared};
use super::operands::{Operands, Verdict};
use super::record::Row;
use super::session::{Session, Settings};
use super::workspace::Workspace;

/// The memory of a workload on the host and on the device, and the right result.
pub struct Arena<'a, O: Operands> {
    session: &'a Session,
    operands: &'a O,
    host: Option<Workspace<'a, O>>,
    /// Without a device there is none.
    device: Result<Option<Workspace<'a, O>>, BenchError>,
    reference: O::Reference,
}

impl<'a, O: Operands> Arena<'a, O> {
    /// The memory that `implementations` need.
    ///
    /// # Errors
    /// What concerns all of them; where the device's memory does not suffice, those on the device hear of it.
    pub fn new(
        session: &'a Session,
        operands: &'a O,
        implementations: &[&'static dyn Implementation<O>],
        settings: &Settings,
    ) -> Result<Self, BenchError> {
        let needs = |place| {
            let mut those = implementations.iter().filter(|implementation| implementation.place() == place);
            those.any(|implementation| implementation.supports(operands.problem()).is_ok())
        };
        Ok(Self {
            session,
            operands,
            host: needs(Place::Cpu).then(|| Workspace::host(operands)),
            device: if needs(Place::Gpu) { session.device_workspace(operands, settings.cache) } else { Ok(None) },
            reference: operands.reference()?,
        })
    }

    /// An implementation as one that wants to take part. `row` is what is known of the workload.
    pub fn entrant<'b>(&'b self, implementation: &'static dyn Implementation<O>, mut row: Row) -> Entrant<'b> {
        self.operands.describe(&mut row);
        if implementation.place() == Place::Cpu {
            // The host's caches are left as they are, and the device's limits are not the host's.
            "warm".clone_into(&mut row.cache);
            (row.copy_gbps, row.dense_tflops) = (None, None);
        }
        let prepare = move || {
            implementation.supports(self.operands.problem())?;
            let workspace = match (implementation.place(), &self.device) {
                (Place::Cpu, _) => self.host.as_ref(),
                (Place::Gpu, Ok(device)) => device.as_ref(),
                (Place::Gpu, Err(error)) => return Err(error.again()),
            };
            let workspace = workspace.ok_or_else(|| self.session.no_device())?;
            let prepared = implementation.prepare(workspace)?;
            let ready = InWorkspace { prepared, workspace, reference: &self.reference, next_set: 0 };
            Ok(Box::new(ready) as Box<dyn Contestant + 'b>)
        };
        Entrant { row, process: Process::This, prepare: Box::new(prepare) }
    }
}

/// An implementation that is ready, in the memory that it was prepared for.
struct InWorkspace<'a, O: Operands> {
    prepared: Box<dyn Prepared + 'a>,
    workspace: &'a Workspace<'a, O>,
    reference: &'a O::Reference,
    next_set: usize,
}

impl<O: Operands> InWorkspace<'_, O> {
    fn launch(&mut self, count: usize) -> Result<(), BenchError> {
        for _ in 0..count {
            self.prepared.launch(self.next_set)?;
            self.next_set = (self.next_set + 1) % self.workspace.num_sets();
        }
        Ok(())
    }
}

impl<O: Operands> Contestant for InWorkspace<'_, O> {
    fn check(&mut self) -> Result<Verdict, BenchError> {
        let (workspace, operands) = (self.workspace, self.workspace.operands());
        let mut judge = |set| {
            workspace.poison(set)?;
            workspace.time_us(|| self.prepared.launch(set))?;
            operands.judge(self.reference, &*workspace.output(set)?)
        };
        // The first set and the last: the ones between them differ by address alone.
        let first = judge(0)?;
        let last = workspace.num_sets() - 1;
        if last == 0 || !first.is_right() {
            return Ok(first);
        }
        let second = judge(last)?;
        Ok(if !second.is_right() || second.error > first.error { second } else { first })
    }

    fn begin_timing(&mut self) -> Result<(), BenchError> {
        self.prepared.begin_timing()
    }

    fn sample(&mut self, launches: Launches) -> Result<f64, BenchError> {
        self.launch(launches.lead)?;
        let workspace = self.workspace;
        let total = workspace.time_us(|| self.launch(launches.timed))?;
        Ok(total / launches.timed as f64)
    }

    fn warm(&mut self, duration: Duration) -> Result<(), BenchError> {
        let start = Instant::now();
        while start.elapsed() < duration {
            self.sample(Launches { lead: 0, timed: 1 })?;
        }
        Ok(())
    }

    fn flops(&self) -> u64 {
        self.prepared.flops()
    }

    fn bytes(&self) -> u64 {
        self.prepared.bytes()
    }

    fn l2_bytes(&self) -> Option<u64> {
        self.prepared.l2_bytes()
    }

    fn choice(&self) -> String {
        self.prepared.choice()
    }
}
