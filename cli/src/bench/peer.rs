//! A peer in a process of its own, as one that takes part.
//!
//! It draws operands of its own of the same kind, compares its result with its own reference, and times its launches
//! with its own events, while this process waits: nothing of the pipe is in a time.

use std::time::Duration;

use serde_json::{Value, json};

use super::attention::AttentionWorkload;
use super::contest::{Contestant, Entrant, Launches, Process};
use super::error::BenchError;
use super::implementation::Refusal;
use super::launch::Launch;
use super::operands::{Finding, Verdict};
use super::peer_process::{PeerProcess, Script};
use super::record::Row;
use super::session::Session;

/// How long preparing, which may try algorithms, and checking may take.
const PREPARE_LIMIT: Duration = Duration::from_secs(180);
/// How long a sample may take.
const SAMPLE_LIMIT: Duration = Duration::from_secs(60);

/// A peer: a script, and which of the things that it can do.
#[derive(Debug)]
pub struct Peer {
    /// As in workload files and records.
    pub name: &'static str,
    /// The script.
    pub script: &'static Script,
    /// What the script calls it.
    pub backend: &'static str,
}

impl Peer {
    /// As one that wants to take part in `workload`, which it does on a stream alone. `row` is what is known of the workload.
    pub fn entrant<'a>(
        &'static self,
        session: &'a Session,
        workload: &'a AttentionWorkload,
        launch: Launch,
        mut row: Row,
    ) -> Entrant<'a> {
        workload.describe(&mut row);
        let prepare = move || {
            if launch == Launch::Graph {
                return Err(Refusal::NoGraphs.into());
            }
            let mut ready = InProcess { session, workload, peer: self, note: String::new() };
            let request = json!({ "workload": workload.to_json() });
            let reply = ready.ask("prepare", request, |process, request| process.ask(request, PREPARE_LIMIT))?;
            reply["note"].as_str().unwrap_or_default().clone_into(&mut ready.note);
            Ok(Box::new(ready) as Box<dyn Contestant + 'a>)
        };
        // Whoever refuses shares the device with nobody, and samples need not be long on its account.
        let process = if launch == Launch::Graph { Process::This } else { Process::Own };
        Entrant { row, process, prepare: Box::new(prepare) }
    }
}

/// A peer that is ready.
struct InProcess<'a> {
    session: &'a Session,
    workload: &'a AttentionWorkload,
    peer: &'static Peer,
    note: String,
}

impl InProcess<'_> {
    /// Asks the process, with `request` made complete.
    fn ask<R>(
        &self,
        command: &str,
        mut request: Value,
        action: impl FnOnce(&mut PeerProcess, &Value) -> Result<R, super::peer_process::PeerError>,
    ) -> Result<R, BenchError> {
        (request["command"], request["backend"]) = (json!(command), json!(self.peer.backend));
        Ok(self.session.with_peer(self.peer.script, |process| action(process, &request))?)
    }
}

impl Contestant for InProcess<'_> {
    fn check(&mut self) -> Result<Verdict, BenchError> {
        self.ask("error", json!({}), |process, request| {
            let reply = process.ask(request, PREPARE_LIMIT)?;
            let (error, limit) = (process.number(&reply, "error")?, process.number(&reply, "limit")?);
            Ok(Verdict { error, limit, finding: Finding::Numbers })
        })
    }

    fn sample(&mut self, Launches { lead, timed }: Launches) -> Result<f64, BenchError> {
        let request = json!({ "lead": lead, "launches": timed });
        self.ask("time", request, |process, request| process.ask_number(request, "microseconds", SAMPLE_LIMIT))
    }

    fn warm(&mut self, duration: Duration) -> Result<(), BenchError> {
        let request = json!({ "seconds": duration.as_secs_f64() });
        self.ask("warm", request, |process, request| process.ask(request, SAMPLE_LIMIT + duration)).map(drop)
    }

    fn flops(&self) -> u64 {
        self.workload.flops()
    }

    fn bytes(&self) -> u64 {
        self.workload.bytes()
    }

    fn choice(&self) -> String {
        self.note.clone()
    }
}
