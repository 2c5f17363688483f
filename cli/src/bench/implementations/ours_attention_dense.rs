//! The library's attention on the device.

use hopper_sparse::ops::attention::AttentionPrepared;
use hopper_sparse::{Element, Error};

use crate::bench::attention::AttentionWorkload;
use crate::bench::attention_operands::{AttentionOperands, device_views};
use crate::bench::elements::with_dtype;
use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::workspace::Workspace;

/// The library's attention kernels, without log-sum-exps.
pub struct Dense;

impl Implementation<AttentionOperands> for Dense {
    fn name(&self) -> &'static str {
        "ours/attention/dense"
    }

    fn place(&self) -> Place {
        Place::Gpu
    }

    fn supports(&self, workload: &AttentionWorkload) -> Result<(), Refusal> {
        match workload.listed {
            None => Ok(workload.problem.check()?),
            Some(_) => Err(Refusal::NoLists),
        }
    }

    fn prepare<'a>(
        &self,
        workspace: &'a Workspace<'a, AttentionOperands>,
    ) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        with_dtype!(workspace.operands().problem().dtype, T => prepare::<T>(workspace))
    }
}

fn prepare<'a, T: Element>(
    workspace: &'a Workspace<'a, AttentionOperands>,
) -> Result<Box<dyn Prepared + 'a>, BenchError> {
    let (gpu, sets) = workspace.on_device();
    let problem = workspace.operands().problem();
    let plan = problem.plan(gpu.device().num_multiprocessors()).map_err(Refusal::from)?;
    let mut ready = Ready { workspace, prepared: plan.prepare::<T>(gpu.device())? };
    // The tensor maps of each set are made on first use; that is part of preparation.
    for set in 0..sets.len() {
        ready.launch(set)?;
    }
    gpu.synchronize()?;
    Ok(Box::new(ready))
}

struct Ready<'a, T> {
    workspace: &'a Workspace<'a, AttentionOperands>,
    prepared: AttentionPrepared<T>,
}

impl<T: Element> Prepared for Ready<'_, T> {
    fn launch(&mut self, set: usize) -> Result<(), BenchError> {
        let (gpu, sets) = self.workspace.on_device();
        let problem = self.workspace.operands().problem();
        // SAFETY: the set is the workload's, whose type is T, on the device that this was prepared on. It outlives `self`, and
        // all work is on the one stream, which is waited for before a set is read or filled from elsewhere.
        unsafe {
            let ([q, k, v], mut o) = device_views::<T>(problem, &sets[set]).map_err(Error::from)?;
            Ok(self.prepared.launch(gpu.stream(), q, k, v, &mut o, None)?)
        }
    }

    fn flops(&self) -> u64 {
        self.workspace.operands().workload.flops()
    }

    fn bytes(&self) -> u64 {
        self.workspace.operands().workload.bytes()
    }

    fn choice(&self) -> String {
        self.prepared.plan().to_string()
    }
}
