//! A linear layer with two weights of every four by cuSPARSELt.

use crate::bench::device::DeviceBytes;
use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::linear::{LinearWorkload, WeightMask, WeightsLaw};
use crate::bench::linear_operands::LinearOperands;
use crate::bench::vendor::cusparselt::{StructuredProduct, present};
use crate::bench::workspace::Workspace;

/// The algorithm that cuSPARSELt's own search finds to be the fastest.
pub struct CusparseLt;

impl Implementation<LinearOperands> for CusparseLt {
    fn name(&self) -> &'static str {
        "vendor/linear/cusparselt"
    }

    fn place(&self) -> Place {
        Place::Gpu
    }

    fn supports(&self, workload: &LinearWorkload) -> Result<(), Refusal> {
        if workload.weights.mask != WeightMask::TwoOfFour {
            return Err(Refusal::NotTwoOfFour);
        }
        present()
    }

    fn prepare<'a>(&self, workspace: &'a Workspace<'a, LinearOperands>) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        let (gpu, sets) = workspace.on_device();
        let operands = workspace.operands();
        let WeightsLaw { m, k, dtype, .. } = operands.weights.law;
        let mut product = StructuredProduct::new(gpu, [m, operands.workload.tokens, k], dtype)?;
        // The library does not say that all plans of one matrix store it alike: each compresses its own.
        let compressed = product.compress(&operands.weights.dense_copies(gpu, sets.len())?[0])?;
        let weights = gpu.copies_of(compressed, sets.len())?;
        product.search(&weights[0], &sets[0].inputs[0], &sets[0].output)?;
        Ok(Box::new(Ready { workspace, weights, product }))
    }
}

struct Ready<'a> {
    workspace: &'a Workspace<'a, LinearOperands>,
    /// Compressed, a copy for each set.
    weights: Vec<DeviceBytes>,
    product: StructuredProduct<'a>,
}

impl Prepared for Ready<'_> {
    fn launch(&mut self, set: usize) -> Result<(), BenchError> {
        let (_, sets) = self.workspace.on_device();
        self.product.launch(&self.weights[set], &sets[set].inputs[0], &sets[set].output)
    }

    /// Half of a dense product's.
    fn flops(&self) -> u64 {
        self.workspace.operands().workload.dense_flops() / 2
    }

    fn bytes(&self) -> u64 {
        self.weights[0].len() as u64 + self.workspace.operands().workload.activation_bytes()
    }

    fn weight_bytes(&self) -> Option<u64> {
        Some(self.weights[0].len() as u64)
    }

    fn choice(&self) -> String {
        self.product.choice()
    }
}
