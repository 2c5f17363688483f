//! The library's attention to lists of blocks, on the device.

use hopper_sparse::ops::attention::{AttentionPrepared, Pass};
use hopper_sparse::{Element, Error};

use crate::bench::attention::AttentionWorkload;
use crate::bench::attention_operands::{AttentionOperands, device_views};
use crate::bench::elements::with_dtype;
use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::workspace::Workspace;

/// The library's kernels for lists of blocks, without log-sum-exps.
pub struct Blocks;

impl Implementation<AttentionOperands> for Blocks {
    fn name(&self) -> &'static str {
        "ours/attention/blocks"
    }

    fn place(&self) -> Place {
        Place::Gpu
    }

    fn supports(&self, workload: &AttentionWorkload) -> Result<(), Refusal> {
        match workload.listed {
            Some(_) => Ok(workload.problem.check()?),
            None => Err(Refusal::NotListed),
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
    let sparse = workspace.operands().sparse.as_ref().ok_or(Refusal::NotListed)?;
    let plan = sparse.plan(gpu.device().num_multiprocessors()).map_err(Refusal::from)?;
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
        let plan = self.prepared.plan();
        // Of whole tiles: what the lists name, where blocks divide the lengths and no window cuts them.
        let scores = |pass: &Pass| {
            let kernel = pass.configuration();
            pass.num_key_tiles() * (kernel.rows * kernel.keys) as u64
        };
        4 * plan.passes().iter().map(scores).sum::<u64>() * plan.problem().head_dim as u64
    }

    fn bytes(&self) -> u64 {
        self.workspace.operands().workload.bytes()
    }

    fn l2_bytes(&self) -> Option<u64> {
        let plan = self.prepared.plan();
        let problem = plan.problem();
        let row_bytes = (problem.head_dim * problem.dtype.size_bytes()) as u64;
        let rows = |pass: &Pass| {
            let kernel = pass.configuration();
            pass.num_key_tiles() * kernel.keys as u64 + (pass.num_tiles() * kernel.rows) as u64
        };
        Some(2 * plan.passes().iter().map(rows).sum::<u64>() * row_bytes)
    }

    fn choice(&self) -> String {
        self.prepared.plan().to_string()
    }
}
