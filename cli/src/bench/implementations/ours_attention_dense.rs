//! The library's attention on the device.

use hopper_sparse::Element;

use crate::bench::attention::AttentionWorkload;
use crate::bench::attention_on_device::{self, Counted};
use crate::bench::attention_operands::AttentionOperands;
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
        workload.check_dense()
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
    let problem = workspace.operands().problem();
    let plan = problem.plan(workspace.on_device().0.device().num_multiprocessors()).map_err(Refusal::from)?;
    attention_on_device::prepare::<T>(workspace, &plan, Counted::Pairs)
}
