//! A plan of attention on the device, as a bench launches it: what dense attention and lists of blocks have in common.

use hopper_sparse::ops::attention::{AttentionPlan, AttentionPrepared, Pass};
use hopper_sparse::{Element, Error};

use super::attention_operands::{AttentionOperands, device_views};
use super::error::BenchError;
use super::implementation::Prepared;
use super::workspace::Workspace;

/// What counts as work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// The pairs that the mask shows.
    Pairs,
    /// Whole tiles: what the lists name, where blocks divide the lengths and no window cuts them.
    Tiles,
}

struct Ready<'a, T> {
    workspace: &'a Workspace<'a, AttentionOperands>,
    prepared: AttentionPrepared<T>,
    counted: Counted,
}

/// Prepares `plan`, for all sets of operands.
pub fn prepare<'a, T: Element>(
    workspace: &'a Workspace<'a, AttentionOperands>,
    plan: &AttentionPlan,
    counted: Counted,
) -> Result<Box<dyn Prepared + 'a>, BenchError> {
    let (gpu, sets) = workspace.on_device();
    let mut ready = Ready { workspace, prepared: plan.prepare::<T>(gpu.device())?, counted };
    // The tensor maps of each set are made on first use; that is part of preparation.
    for set in 0..sets.len() {
        ready.launch(set)?;
    }
    gpu.synchronize()?;
    Ok(Box::new(ready))
}

impl<T: Element> Ready<'_, T> {
    /// The sum of what each pass counts.
    fn sum(&self, count: impl Fn(&Pass) -> u64) -> u64 {
        self.prepared.plan().passes().iter().map(count).sum()
    }
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
        match self.counted {
            Counted::Pairs => self.workspace.operands().workload.flops(),
            Counted::Tiles => {
                let scores = self.sum(|pass| {
                    let kernel = pass.configuration();
                    pass.num_key_tiles() * (kernel.rows * kernel.keys) as u64
                });
                4 * scores * self.prepared.plan().problem().head_dim as u64
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.workspace.operands().workload.bytes()
    }

    fn l2_bytes(&self) -> Option<u64> {
        if self.counted == Counted::Pairs {
            return None;
        }
        let problem = self.prepared.plan().problem();
        let row_bytes = (problem.head_dim * problem.dtype.size_bytes()) as u64;
        let rows = self.sum(|pass| {
            let kernel = pass.configuration();
            pass.num_key_tiles() * kernel.keys as u64 + (pass.num_tiles() * kernel.rows) as u64
        });
        Some(2 * rows * row_bytes)
    }

    fn choice(&self) -> String {
        self.prepared.plan().to_string()
    }
}
