//! The library's product of compressed rows on the device.

use core::marker::PhantomData;

use hopper_sparse::ops::csr::{CsrPrepared, CsrSpmm};
use hopper_sparse::{Element, Error};

use crate::bench::elements::with_dtype;
use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::product_operands::{ProductOperands, device_views, product_flops};
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
    Ok(Box::new(Ready { workspace, prepared: plan.prepare(gpu.device(), &a)?, output: PhantomData::<U> }))
}

struct Ready<'a, T, U> {
    workspace: &'a Workspace<'a, ProductOperands>,
    prepared: CsrPrepared<T>,
    output: PhantomData<U>,
}

impl<T: Element, U: Element> Prepared for Ready<'_, T, U> {
    fn launch(&mut self, set: usize) -> Result<(), BenchError> {
        let (gpu, sets) = self.workspace.on_device();
        // SAFETY: the set is the workload's, whose types are T and U, on the device that this was prepared on. It outlives
        // `self`, and all work is on the one stream, which is waited for before a set is read or filled from elsewhere.
        unsafe {
            let (b, mut c) = device_views::<T, U>(&self.workspace.operands().product, &sets[set])?;
            Ok(self.prepared.launch(gpu.stream(), 1.0, b, 0.0, &mut c)?)
        }
    }

    fn flops(&self) -> u64 {
        product_flops(self.prepared.plan().num_entries() as u64, self.workspace.operands().product.n)
    }

    fn bytes(&self) -> u64 {
        self.prepared.num_bytes() as u64 + self.workspace.operands().product.dense_bytes()
    }

    fn choice(&self) -> String {
        self.prepared.plan().to_string()
    }
}
