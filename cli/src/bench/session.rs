//! What lasts for a whole run: the machine, the device if there is one, and its limits.

use std::cell::RefCell;
use std::io::Write;
use std::time::Duration;

use hopper_sparse::Dtype;

#[cfg(feature = "gpu")]
use super::device::Gpu;
use super::error::BenchError;
use super::implementation::Refusal;
use super::launch::Launch;
use super::load::Load;
use super::machine::Machine;
use super::operands::Operands;
use super::peer_process::{PeerError, PeerProcess, Script};
use super::record::Row;
use super::workload::Workload;
use super::workspace::{Cache, Workspace};

/// How long a peer's process may take to start: torch is imported, and the device opened.
const START_LIMIT: Duration = Duration::from_secs(180);

/// How a run measures.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The suite's name, for the record.
    pub suite: String,
    /// Samples of each implementation.
    pub rounds: usize,
    /// Seconds of sampling after which a workload ends early.
    pub max_seconds: f64,
    /// Whether launches may find their operands in the cache.
    pub cache: Cache,
    /// What the card does between samples.
    pub load: Load,
    /// How launches reach the device.
    pub launch: Launch,
}

/// What the device can do at most, measured in the same run.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Bytes a second read and written by a copy on the device, in GB/s.
    pub copy_gbps: Option<f64>,
    /// TFLOP/s of the dense peer, by element type.
    pub dense: Vec<(Dtype, f64)>,
}

impl Limits {
    /// The dense peer's TFLOP/s for elements of `dtype`.
    pub fn dense_tflops(&self, dtype: Dtype) -> Option<f64> {
        self.dense.iter().find(|(known, _)| *known == dtype).map(|(_, tflops)| *tflops)
    }
}

/// What lasts for a whole run.
pub struct Session {
    machine: Machine,
    limits: Limits,
    /// Running peers, by the names of their scripts.
    peers: RefCell<Vec<(&'static str, PeerProcess)>>,
    #[cfg(feature = "gpu")]
    gpu: Result<Gpu, Refusal>,
}

impl Session {
    /// Opens device number `device`, counted from 0, where there is one; the CPU's implementations need none.
    #[cfg_attr(not(feature = "gpu"), allow(unused_variables, reason = "the number of a device that is not used"))]
    pub fn open(commit: Option<&str>, device: u32) -> Self {
        #[cfg_attr(not(feature = "gpu"), allow(unused_mut, reason = "the card's name is filled in"))]
        let mut machine = Machine::without_card(commit);
        #[cfg(feature = "gpu")]
        let gpu = Gpu::open(device);
        #[cfg(feature = "gpu")]
        if let Ok(gpu) = &gpu {
            (machine.card, machine.driver) = (gpu.name(), gpu.driver());
        }
        Self {
            machine,
            limits: Limits::default(),
            peers: RefCell::default(),
            #[cfg(feature = "gpu")]
            gpu,
        }
    }

    /// Where and when the run takes place.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Measures what the device can do with these element types; does nothing without a device or a type.
    ///
    /// # Errors
    /// What the device failed at. Where the dense peer is missing, its limit stays unknown.
    #[cfg_attr(not(feature = "gpu"), allow(unused_variables, reason = "there is nothing to measure"))]
    pub fn measure_limits(&mut self, dtypes: &[Dtype], progress: &Progress) -> Result<(), BenchError> {
        #[cfg(feature = "gpu")]
        if let Ok(gpu) = &self.gpu
            && !dtypes.is_empty()
        {
            self.limits = super::limits::measure(gpu, dtypes, progress)?;
        }
        Ok(())
    }

    /// What is known of a row before anything is measured, for an implementation on the device.
    pub fn row(&self, workload: &Workload, implementation: &str, settings: &Settings) -> Row {
        let Machine { commit, card, driver, date } = self.machine.clone();
        Row {
            commit,
            card,
            driver,
            date,
            suite: settings.suite.clone(),
            workload: workload.name.clone(),
            class: workload.class.clone().unwrap_or_default(),
            operation: workload.problem.operation().to_string(),
            implementation: implementation.to_owned(),
            cache: settings.cache.name().to_owned(),
            load: settings.load.name().to_owned(),
            launch: settings.launch.name().to_owned(),
            peer: workload.peer.clone().unwrap_or_default(),
            copy_gbps: self.limits.copy_gbps,
            dense_tflops: self.limits.dense_tflops(workload.problem.dtype()),
            ..Row::default()
        }
    }

    /// Does something with the process of `script`, which is started where it does not run, or does no more.
    ///
    /// # Errors
    /// Why it does not start, or what `action` returns.
    pub fn with_peer<R>(
        &self,
        script: &'static Script,
        action: impl FnOnce(&mut PeerProcess) -> Result<R, PeerError>,
    ) -> Result<R, PeerError> {
        let mut peers = self.peers.borrow_mut();
        peers.retain_mut(|(_, process)| !process.has_ended());
        let index = match peers.iter().position(|(name, _)| *name == script.name) {
            Some(index) => index,
            None => {
                peers.push((script.name, PeerProcess::start(script, START_LIMIT)?));
                peers.len() - 1
            }
        };
        action(&mut peers[index].1)
    }

    /// Operands and result on the device; `None` without a device.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the device's memory does not suffice.
    #[cfg_attr(not(feature = "gpu"), allow(unused_variables, reason = "there is no device to put them on"))]
    pub fn device_workspace<'a, O: Operands>(
        &'a self,
        operands: &'a O,
        cache: Cache,
    ) -> Result<Option<Workspace<'a, O>>, BenchError> {
        #[cfg(feature = "gpu")]
        if let Ok(gpu) = &self.gpu {
            return Workspace::device(operands, gpu, cache).map(Some);
        }
        Ok(None)
    }

    /// Why there is no device.
    pub fn no_device(&self) -> BenchError {
        #[cfg(feature = "gpu")]
        if let Err(refusal) = &self.gpu {
            return BenchError::Refused(refusal.clone());
        }
        BenchError::Refused(Refusal::NoDevice { reason: "this program was built without the feature `gpu`".to_owned() })
    }
}

/// Where the lines about the run go: each is written out at once, since a long run may be cut off.
#[derive(Clone, Copy, Debug)]
pub struct Progress;

impl Progress {
    /// Says how the run goes, on standard error: standard output holds the table alone.
    pub fn line(&self, text: &str) {
        let mut out = std::io::stderr().lock();
        // Where nobody listens the run goes on.
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }

    /// Says that an implementation gave a wrong result or failed.
    pub fn complain(&self, text: &str) {
        self.line(&format!("error: {text}"));
    }
}
