//! The first loop that comes to mind: the floor, and what every tolerance is relative to.

use hopper_sparse::reference::naive;

use crate::bench::elements::with_dtype;
use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::operands::{compressed_bytes, product_flops};
use crate::bench::workload::Workload;
use crate::bench::workspace::Workspace;

/// The library's naive product of compressed rows.
pub struct NaiveCpu;

impl Implementation for NaiveCpu {
    fn name(&self) -> &'static str {
        "naive/spmm/cpu"
    }

    fn place(&self) -> Place {
        Place::Cpu
    }

    fn supports(&self, _: &Workload) -> Result<(), Refusal> {
        Ok(())
    }

    fn prepare<'a>(&self, workspace: &'a Workspace<'a>) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        workspace.operands().entries();
        Ok(Box::new(Ready(workspace)))
    }
}

struct Ready<'a>(&'a Workspace<'a>);

impl Prepared for Ready<'_> {
    fn launch(&mut self, _: usize) -> Result<(), BenchError> {
        let operands = self.0.operands();
        let mut c = self.0.host_c().borrow_mut();
        let workload = &operands.workload;
        with_dtype!(workload.dtype, T => with_dtype!(workload.c_dtype, U => {
            let (a, b) = (operands.csr_view::<T>(), operands.b_view::<T>()?);
            let product = naive::spmm(1.0, &a, b, 0.0, operands.c_view::<U>(&c)?);
            let product = product.map_err(|error| BenchError::Library(error.into()))?;
            let copied = operands.c_view_mut::<U>(&mut c)?.try_copy_from(product.view());
            copied.map_err(|error| BenchError::Library(error.into()))
        }))
    }

    fn flops(&self) -> u64 {
        let operands = self.0.operands();
        product_flops(operands.num_entries(), operands.workload.n)
    }

    fn bytes(&self) -> u64 {
        let operands = self.0.operands();
        compressed_bytes(operands.entries()) + operands.workload.dense_bytes()
    }
}
