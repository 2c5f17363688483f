//! A workload's memory, and the implementations that compute in it.

use std::time::{Duration, Instant};

use super::contest::{Contestant, Entrant, Launches, Process};
use super::error::BenchError;
use super::implementation::{Implementation, Place, Prepared};
use super::launch::Launch;
use super::operands::{Operands, Verdict};
use super::record::Row;
use super::session::{Session, Settings};
use super::workspace::{Graph, Workspace};

/// The memory of a workload on the host and on the device, and the right result.
pub struct Arena<'a, O: Operands> {
    session: &'a Session,
    operands: &'a O,
    host: Option<Workspace<'a, O>>,
    /// Without a device there is none.
    device: Result<Option<Workspace<'a, O>>, BenchError>,
    reference: O::Reference,
    launch: Launch,
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
            launch: settings.launch,
        })
    }

    /// An implementation as one that wants to take part. `row` is what is known of the workload.
    pub fn entrant<'b>(&'b self, implementation: &'static dyn Implementation<O>, mut row: Row) -> Entrant<'b> {
        self.operands.describe(&mut row);
        if implementation.place() == Place::Cpu {
            // The host's caches are left as they are, and the device's limits are not the host's.
            "warm".clone_into(&mut row.cache);
            (row.copy_gbps, row.dense_tflops) = (None, None);
            row.launch.clear();
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
            let launch = if implementation.place() == Place::Cpu { Launch::Stream } else { self.launch };
            let ready =
                InWorkspace { graph: None, prepared, workspace, reference: &self.reference, next_set: 0, launch };
            Ok(Box::new(ready) as Box<dyn Contestant + 'b>)
        };
        Entrant { row, process: Process::This, prepare: Box::new(prepare) }
    }
}

/// An implementation that is ready, in the memory that it was prepared for.
struct InWorkspace<'a, O: Operands> {
    /// A number of launches, and the graph of them.
    ///
    /// NOTE: dropped before what it computes with.
    graph: Option<(usize, Graph<'a>)>,
    prepared: Box<dyn Prepared + 'a>,
    workspace: &'a Workspace<'a, O>,
    reference: &'a O::Reference,
    next_set: usize,
    launch: Launch,
}

impl<'a, O: Operands> InWorkspace<'a, O> {
    fn launch_turns(&mut self, count: usize) -> Result<(), BenchError> {
        for _ in 0..count {
            self.prepared.launch(self.next_set)?;
            self.next_set = (self.next_set + 1) % self.workspace.num_sets();
        }
        Ok(())
    }

    /// The graph of so many launches, sets in turn from the first. A new one has been launched once, which also uploads it.
    fn graph_of(&mut self, count: usize) -> Result<&Graph<'a>, BenchError> {
        let graph = match self.graph.take().filter(|(found, _)| *found == count) {
            Some((_, graph)) => graph,
            None => {
                let (workspace, prepared) = (self.workspace, &mut self.prepared);
                let mut sets = (0..count).map(|index| index % workspace.num_sets());
                let graph = workspace.capture(|| sets.try_for_each(|set| prepared.launch(set)))?;
                graph.launch()?;
                graph
            }
        };
        Ok(&self.graph.insert((count, graph)).1)
    }

    /// Computes the result of a set, as a sample would.
    fn compute(&mut self, set: usize) -> Result<(), BenchError> {
        let workspace = self.workspace;
        let graph = match self.launch {
            Launch::Stream => None,
            Launch::Graph => {
                // What is made on first use is made outside of a capture.
                self.prepared.launch(set)?;
                Some(workspace.capture(|| self.prepared.launch(set))?)
            }
        };
        workspace.poison(set)?;
        workspace.time_us(|| match &graph {
            Some(graph) => graph.launch(),
            None => self.prepared.launch(set),
        })?;
        Ok(())
    }
}

impl<O: Operands> Contestant for InWorkspace<'_, O> {
    fn check(&mut self) -> Result<Verdict, BenchError> {
        let (workspace, operands) = (self.workspace, self.workspace.operands());
        let mut judge = |set| {
            self.compute(set)?;
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

    fn whole(&self, least: usize) -> usize {
        self.launch.whole(least, self.workspace.num_sets())
    }

    fn sample(&mut self, Launches { lead, timed }: Launches) -> Result<f64, BenchError> {
        let workspace = self.workspace;
        let total = match self.launch {
            Launch::Stream => {
                self.launch_turns(lead)?;
                workspace.time_us(|| self.launch_turns(timed))?
            }
            Launch::Graph => {
                self.graph_of(timed)?;
                // The graph begins with the first set, so the launches before it end with the last.
                let num_sets = workspace.num_sets();
                self.next_set = (num_sets - lead % num_sets) % num_sets;
                self.launch_turns(lead)?;
                let graph = self.graph_of(timed)?;
                workspace.time_us(|| graph.launch())?
            }
        };
        Ok(total / timed as f64)
    }

    fn warm(&mut self, duration: Duration) -> Result<(), BenchError> {
        let start = Instant::now();
        while start.elapsed() < duration {
            self.sample(Launches { lead: 0, timed: self.whole(1) })?;
        }
        Ok(())
    }

    fn flops(&self) -> u64 {
        self.prepared.flops()
    }

    fn bytes(&self) -> u64 {
        self.prepared.bytes()
    }

    fn weight_bytes(&self) -> Option<u64> {
        self.prepared.weight_bytes()
    }

    fn l2_bytes(&self) -> Option<u64> {
        self.prepared.l2_bytes()
    }

    fn choice(&self) -> String {
        self.prepared.choice()
    }
}
