//! A CUDA graph: what was captured from the stream, to be launched as one.

use core::{fmt, ptr};

use cuda_loader::driver;
use cuda_loader::types::{CUgraph, CUgraphExec, CUstreamCaptureMode};
use hopper_sparse::gpu::GpuError;

use super::device::{Gpu, library};
use super::error::BenchError;
use super::implementation::Refusal;

/// A graph on the stream of a [`Gpu`]. It holds addresses: what it computes with must be alive at each launch.
pub struct Graph<'a> {
    gpu: &'a Gpu,
    /// As it was captured. The workspaces that are allocated in it have their addresses for as long as it lives.
    captured: CUgraph,
    /// Ready to be launched; null until it is.
    executable: CUgraphExec,
}

impl<'a> Graph<'a> {
    /// Captures what `work` enqueues on the stream of `gpu`, and launches nothing. All that is made on first use must have been
    /// made before.
    ///
    /// NOTE: a capture by thread has the driver refuse what a replay would miss: allocations that wait, and copies elsewhere.
    ///
    /// # Errors
    /// [`Refusal::NotCaptured`] with the driver's code; what `work` failed at, where the capture did not suffer from it.
    pub fn capture(gpu: &'a Gpu, work: impl FnOnce() -> Result<(), BenchError>) -> Result<Self, BenchError> {
        gpu.device().make_current().map_err(library)?;
        let stream = gpu.stream().as_inner();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive, and not the legacy default one.
        let begun = check("cuStreamBeginCapture_v2", unsafe { driver::cuStreamBeginCapture_v2(stream, mode) });
        begun.map_err(|error| not_captured(&error))?;
        let outcome = work();
        let mut graph = Self { gpu, captured: ptr::null_mut(), executable: ptr::null_mut() };
        // SAFETY: this thread has begun the capture; the out-pointer is valid. Where the call fails, the capture has ended, too.
        let ended = check("cuStreamEndCapture", unsafe { driver::cuStreamEndCapture(stream, &mut graph.captured) });
        match (outcome, ended) {
            (outcome, Ok(())) => outcome?,
            (Ok(()), Err(error)) => return Err(not_captured(&error)),
            // What broke the capture says more than that it is broken.
            (Err(cause), Err(error)) => return Err(not_captured(&format_args!("{cause}; {error}"))),
        }
        // SAFETY: the graph is alive; the out-pointer is valid; no flag is set.
        let code = unsafe { driver::cuGraphInstantiateWithFlags(&mut graph.executable, graph.captured, 0) };
        check("cuGraphInstantiateWithFlags", code).map_err(|error| not_captured(&error))?;
        Ok(graph)
    }

    /// Enqueues all that was captured.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the driver refuses.
    pub fn launch(&self) -> Result<(), BenchError> {
        self.gpu.device().make_current().map_err(library)?;
        // SAFETY: graph and stream are alive, and of the current context; who captured keeps alive what it computes with.
        let code = unsafe { driver::cuGraphLaunch(self.executable, self.gpu.stream().as_inner()) };
        check("cuGraphLaunch", code).map_err(library)
    }
}

impl Drop for Graph<'_> {
    /// Where a call fails the driver is gone, or a fault of a launch has taken the context: the graph is gone with it.
    fn drop(&mut self) {
        let _ = self.gpu.device().make_current();
        if !self.executable.is_null() {
            // SAFETY: it is destroyed nowhere else; the driver puts that off until a launch under way has ended.
            let _ = unsafe { driver::cuGraphExecDestroy(self.executable) };
        }
        if !self.captured.is_null() {
            // SAFETY: it is destroyed nowhere else, and nothing that was made of it is left.
            let _ = unsafe { driver::cuGraphDestroy(self.captured) };
        }
        // The driver keeps the memory of workspaces for other graphs; whatever is prepared next may want it.
        // SAFETY: the function has no precondition beyond a device; what is in use stays.
        let _ = unsafe { driver::cuDeviceGraphMemTrim(self.gpu.device().cust_device().as_raw()) };
    }
}

fn check(call: &'static str, code: u32) -> Result<(), GpuError> {
    if code == cuda_loader::SUCCESS { Ok(()) } else { Err(GpuError::Driver { call, code }) }
}

fn not_captured(reason: &dyn fmt::Display) -> BenchError {
    Refusal::NotCaptured { reason: reason.to_string() }.into()
}
