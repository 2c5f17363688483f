//! A linear layer with a dense W by cuBLASLt: what a sparse one has to beat.
//!
//! W keeps its zeros: the same instructions are carried out as without, on values that draw less power.

use std::rc::Rc;

use hopper_sparse::formats::Layout;

use crate::bench::device::DeviceBytes;
use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::linear::{LinearWorkload, WeightsLaw};
use crate::bench::linear_operands::LinearOperands;
use crate::bench::vendor::cublaslt::{DenseProduct, Shape, present};
use crate::bench::workspace::Workspace;

/// The fastest of the algorithms that cuBLASLt's heuristics name.
pub struct CublasLt;

impl Implementation<LinearOperands> for CublasLt {
    fn name(&self) -> &'static str {
        "vendor/linear/cublaslt"
    }

    fn place(&self) -> Place {
        Place::Gpu
    }

    fn supports(&self, _: &LinearWorkload) -> Result<(), Refusal> {
        present()
    }

    fn prepare<'a>(&self, workspace: &'a Workspace<'a, LinearOperands>) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        let (gpu, sets) = workspace.on_device();
        let operands = workspace.operands();
        let WeightsLaw { m, k, dtype, .. } = operands.weights.law;
        // X row-major is X^T column-major, and so is Y.
        let shape = Shape {
            m,
            n: operands.workload.tokens,
            k,
            dtype,
            c_dtype: dtype,
            b_layout: Layout::ColumnMajor,
            c_layout: Layout::ColumnMajor,
        };
        let weights = operands.weights.dense_copies(gpu, sets.len())?;
        let turns: Vec<_> = weights.iter().zip(sets).map(|(w, set)| [w, &set.inputs[0], &set.output]).collect();
        let product = DenseProduct::new(gpu, shape, &turns)?;
        Ok(Box::new(Ready { workspace, weights, product }))
    }
}

struct Ready<'a> {
    workspace: &'a Workspace<'a, LinearOperands>,
    /// A copy for each set.
    weights: Rc<Vec<DeviceBytes>>,
    product: DenseProduct<'a>,
}

impl Prepared for Ready<'_> {
    fn launch(&mut self, set: usize) -> Result<(), BenchError> {
        let (_, sets) = self.workspace.on_device();
        self.product.launch(&self.weights[set], &sets[set].inputs[0], &sets[set].output)
    }

    fn flops(&self) -> u64 {
        self.workspace.operands().workload.dense_flops()
    }

    fn bytes(&self) -> u64 {
        let workload = &self.workspace.operands().workload;
        workload.dense_bytes() + workload.activation_bytes()
    }

    fn weight_bytes(&self) -> Option<u64> {
        Some(self.workspace.operands().workload.dense_bytes())
    }

    fn choice(&self) -> String {
        self.product.choice()
    }
}
