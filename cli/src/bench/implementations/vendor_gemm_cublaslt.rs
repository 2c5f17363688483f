//! The dense product by cuBLASLt, A with its zeros: what a sparse product has to beat.

use crate::bench::device::DeviceBytes;
use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::vendor::cublaslt::{DenseProduct, Shape, present};
use crate::bench::workload::Workload;
use crate::bench::workspace::Workspace;

/// The fastest of the algorithms that cuBLASLt's heuristics name.
pub struct CublasLt;

impl Implementation for CublasLt {
    fn name(&self) -> &'static str {
        "vendor/gemm/cublaslt"
    }

    fn place(&self) -> Place {
        Place::Gpu
    }

    fn supports(&self, _: &Workload) -> Result<(), Refusal> {
        present()
    }

    fn prepare<'a>(&self, workspace: &'a Workspace<'a>) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        let (gpu, sets) = workspace.on_device();
        let Workload { m, n, k, dtype, c_dtype, b_layout, c_layout, .. } = workspace.operands().workload;
        let shape = Shape { m, n, k, dtype, c_dtype, b_layout, c_layout };
        let a = gpu.upload(workspace.operands().dense_a().as_bytes())?;
        let product = DenseProduct::new(gpu, shape, &a, &sets[0].b, &sets[0].c)?;
        Ok(Box::new(Ready { workspace, a, product }))
    }
}

struct Ready<'a> {
    workspace: &'a Workspace<'a>,
    a: DeviceBytes,
    product: DenseProduct<'a>,
}

impl Prepared for Ready<'_> {
    fn launch(&mut self, set: usize) -> Result<(), BenchError> {
        let (_, sets) = self.workspace.on_device();
        self.product.launch(&self.a, &sets[set].b, &sets[set].c)
    }

    fn flops(&self) -> u64 {
        let Workload { m, n, k, .. } = self.workspace.operands().workload;
        2 * m as u64 * n as u64 * k as u64
    }

    fn bytes(&self) -> u64 {
        self.a.len() as u64 + self.workspace.operands().workload.dense_bytes()
    }

    fn choice(&self) -> String {
        self.product.choice()
    }
}
