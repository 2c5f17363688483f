//! The CPU backend on compressed rows.

use hopper_sparse::cpu;

use crate::bench::elements::with_dtype;
use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::operands::{compressed_bytes, product_flops};
use crate::bench::workload::Workload;
use crate::bench::workspace::Workspace;

/// The library's CPU product of compressed rows.
pub struct CsrCpu;

impl Implementation for CsrCpu {
    fn name(&self) -> &'static str {
        "ours/spmm/csr-cpu"
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
            let product = cpu::spmm_csr(1.0, a, b, 0.0, &mut operands.c_view_mut::<U>(&mut c)?);
            product.map_err(BenchError::Library)
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
