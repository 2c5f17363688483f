//! The library's product of compressed rows on the device.

use hopper_sparse::ops::auto::AutoPrepared;
use hopper_sparse::ops::csr::CsrSpmm;
use hopper_sparse::{Element, Error};

use crate::bench::elements::with_dtype;
use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::our_product::OurProduct;
use crate::bench::product_operands::ProductOperands;
use crate::bench::workload::Product;
use crate::bench::workspace::Workspace;

/// The library's CSR kernels. Every element of a matrix made of blocks is an entry.
pub struct Csr;

impl Implementation<ProductOperands> for Csr {
    fn name(&self) -> &'static str {
        "ours/spmm/csr"
    }

    fn place(&self) -> Place {
        Place::Gpu
    }

    fn supports(&self, product: &Product) -> Result<(), Refusal> {
        problem(product).check().map_err(Refusal::Ours)
    }

    fn prepare<'a>(&self, workspace: &'a Workspace<'a, ProductOperands>) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        let product = &workspace.operands().product;
        with_dtype!(product.dtype, T => with_dtype!(product.c_dtype, U => prepare::<T, U>(workspace)))
    }
}

fn problem(product: &Product) -> CsrSpmm {
    CsrSpmm {
        num_rows: product.m,
        num_inner: product.k,
        num_cols: product.n,
        dtype: product.dtype,
        output: product.c_dtype,
        b_layout: product.b_layout,
        c_layout: product.c_layout,
    }
}

fn prepare<'a, T: Element, U: Element>(
    workspace: &'a Workspace<'a, ProductOperands>,
) -> Result<Box<dyn Prepared + 'a>, BenchError> {
    let (gpu, _) = workspace.on_device();
    let operands = workspace.operands();
    let a = operands.csr_view::<T>();
    let plan = problem(&operands.product).plan(&a).map_err(Error::from)?;
    let prepared = AutoPrepared::Csr(plan.prepare(gpu.device(), &a)?);
    Ok(Box::new(OurProduct::<_, T, U>::new(workspace, prepared, plan.num_entries() as u64)))
}
