//! The dense product by cuBLASLt: what a sparse product has to beat.
//!
//! Twice: with A's zeros, and at the cost of a dense A without zeros. The same instructions are carried out, but mostly
//! zeros are multiplied faster (6 to 16 % on an H200; likely they draw less power, and the card clocks higher). The first is the price of
//! this very matrix left dense; the second is the price of the weights before they were pruned.

use crate::bench::device::DeviceBytes;
use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::product_operands::ProductOperands;
use crate::bench::vendor::cublaslt::{DenseProduct, Shape, present};
use crate::bench::workload::Product;
use crate::bench::workspace::Workspace;

/// The values of A while the samples are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    /// A's own.
    WithZeros,
    /// Random ones, none of them zero, once the product with A's own has been found right.
    Full,
}

/// A larger A is left out: filling it in and copying it takes longer than all else that is measured.
const MOST_BYTES_OF_A: u64 = 4 << 30;

/// The fastest of the algorithms that cuBLASLt's heuristics name.
pub struct CublasLt {
    name: &'static str,
    values: Values,
}

impl CublasLt {
    /// A with its zeros.
    pub const WITH_ZEROS: Self = Self { name: "vendor/gemm/cublaslt", values: Values::WithZeros };
    /// A dense A.
    pub const FULL: Self = Self { name: "vendor/gemm/cublaslt-full", values: Values::Full };
}

impl Implementation<ProductOperands> for CublasLt {
    fn name(&self) -> &'static str {
        self.name
    }

    fn place(&self) -> Place {
        Place::Gpu
    }

    fn supports(&self, product: &Product) -> Result<(), Refusal> {
        let found = (product.m as u64 * product.k as u64).saturating_mul(product.dtype.size_bytes() as u64);
        if found > MOST_BYTES_OF_A {
            return Err(Refusal::TooLarge { what: "a dense A, in bytes,", found, limit: MOST_BYTES_OF_A });
        }
        present()
    }

    fn prepare<'a>(&self, workspace: &'a Workspace<'a, ProductOperands>) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        let (gpu, sets) = workspace.on_device();
        let Product { m, n, k, dtype, c_dtype, b_layout, c_layout, .. } = workspace.operands().product;
        let shape = Shape { m, n, k, dtype, c_dtype, b_layout, c_layout };
        let a = gpu.upload(workspace.operands().dense_a().as_bytes())?;
        let product = DenseProduct::new(gpu, shape, &[[&a, &sets[0].inputs[0], &sets[0].output]])?;
        Ok(Box::new(Ready { workspace, a, product, values: self.values }))
    }
}

struct Ready<'a> {
    workspace: &'a Workspace<'a, ProductOperands>,
    a: DeviceBytes,
    product: DenseProduct<'a>,
    values: Values,
}

impl Prepared for Ready<'_> {
    fn launch(&mut self, set: usize) -> Result<(), BenchError> {
        let (_, sets) = self.workspace.on_device();
        self.product.launch(&self.a, &sets[set].inputs[0], &sets[set].output)
    }

    fn begin_timing(&mut self) -> Result<(), BenchError> {
        if self.values == Values::Full {
            let (gpu, _) = self.workspace.on_device();
            self.a = gpu.upload(self.workspace.operands().full_a().as_bytes())?;
        }
        Ok(())
    }

    fn flops(&self) -> u64 {
        let Product { m, n, k, .. } = self.workspace.operands().product;
        2 * m as u64 * n as u64 * k as u64
    }

    fn bytes(&self) -> u64 {
        self.a.len() as u64 + self.workspace.operands().product.dense_bytes()
    }

    fn choice(&self) -> String {
        self.product.choice()
    }
}
