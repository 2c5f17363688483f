//! cuSPARSE on compressed rows, by each of its algorithms.

use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::product_operands::{ProductOperands, compressed_bytes, product_flops};
use crate::bench::vendor::cusparse::{Algorithm, SparseMatrix, SparseProduct, present};
use crate::bench::workload::Product;
use crate::bench::workspace::Workspace;

/// cuSPARSE's product of compressed rows, by one algorithm.
pub struct CusparseCsr {
    name: &'static str,
    algorithm: Algorithm,
}

impl CusparseCsr {
    /// Looks at A beforehand.
    pub const ALG1: Self = Self { name: "vendor/spmm/cusparse-csr-alg1", algorithm: Algorithm::CUSPARSE_SPMM_CSR_ALG1 };
    /// For row-major B and C.
    pub const ALG2: Self = Self { name: "vendor/spmm/cusparse-csr-alg2", algorithm: Algorithm::CUSPARSE_SPMM_CSR_ALG2 };
    /// Looks at A beforehand.
    pub const ALG3: Self = Self { name: "vendor/spmm/cusparse-csr-alg3", algorithm: Algorithm::CUSPARSE_SPMM_CSR_ALG3 };
}

impl Implementation<ProductOperands> for CusparseCsr {
    fn name(&self) -> &'static str {
        self.name
    }

    fn place(&self) -> Place {
        Place::Gpu
    }

    fn supports(&self, _: &Product) -> Result<(), Refusal> {
        present()
    }

    fn prepare<'a>(&self, workspace: &'a Workspace<'a, ProductOperands>) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        let (gpu, sets) = workspace.on_device();
        let operands = workspace.operands();
        let a = SparseMatrix::csr(gpu, &operands.product, operands.entries())?;
        let product =
            SparseProduct::new(gpu, &operands.product, a, &sets[0].inputs[0], &sets[0].output, self.algorithm)?;
        Ok(Box::new(Ready { workspace, product }))
    }
}

struct Ready<'a> {
    workspace: &'a Workspace<'a, ProductOperands>,
    product: SparseProduct<'a>,
}

impl Prepared for Ready<'_> {
    fn launch(&mut self, set: usize) -> Result<(), BenchError> {
        let (_, sets) = self.workspace.on_device();
        self.product.launch(&sets[set].inputs[0], &sets[set].output)
    }

    fn flops(&self) -> u64 {
        let operands = self.workspace.operands();
        product_flops(operands.num_entries(), operands.product.n)
    }

    fn bytes(&self) -> u64 {
        let operands = self.workspace.operands();
        compressed_bytes(operands.entries()) + operands.product.dense_bytes()
    }

    fn choice(&self) -> String {
        self.product.choice()
    }
}
