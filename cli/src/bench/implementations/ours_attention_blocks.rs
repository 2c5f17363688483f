//! The library's attention to lists of blocks, on the device.

use hopper_sparse::Element;

use crate::bench::attention::AttentionWorkload;
use crate::bench::attention_on_device::{self, Counted};
use crate::bench::attention_operands::AttentionOperands;
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
    let sparse = workspace.operands().sparse.as_ref().ok_or(Refusal::NotListed)?;
    let plan = sparse.plan(workspace.on_device().0.device().num_multiprocessors()).map_err(Refusal::from)?;
    attention_on_device::prepare::<T>(workspace, &plan, Counted::Tiles)
}
