//! The first loop that comes to mind, on W's weights that are not zero: the floor.

use hopper_sparse::Element;
use hopper_sparse::reference::naive;

use crate::bench::elements::with_dtype;
use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::linear::LinearWorkload;
use crate::bench::linear_operands::LinearOperands;
use crate::bench::workspace::Workspace;

/// The library's naive product, on rows of a dense W.
pub struct NaiveCpu;

impl Implementation<LinearOperands> for NaiveCpu {
    fn name(&self) -> &'static str {
        "naive/linear/cpu"
    }

    fn place(&self) -> Place {
        Place::Cpu
    }

    fn supports(&self, _: &LinearWorkload) -> Result<(), Refusal> {
        Ok(())
    }

    fn prepare<'a>(&self, workspace: &'a Workspace<'a, LinearOperands>) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        Ok(Box::new(Ready { workspace }))
    }
}

struct Ready<'a> {
    workspace: &'a Workspace<'a, LinearOperands>,
}

impl Ready<'_> {
    fn multiply<T: Element>(&self) -> Result<(), BenchError> {
        let operands = self.workspace.operands();
        let mut output = self.workspace.host_output().borrow_mut();
        let mut y = operands.y_transposed_mut::<T>(&mut output)?;
        let product = naive::spmm(1.0, &operands.weights.rows::<T>(), operands.x_transposed::<T>()?, 0.0, y.as_view());
        let product = product.map_err(hopper_sparse::Error::from)?;
        y.try_copy_from(product.view()).map_err(hopper_sparse::Error::from)?;
        Ok(())
    }
}

impl Prepared for Ready<'_> {
    fn launch(&mut self, _: usize) -> Result<(), BenchError> {
        with_dtype!(self.workspace.operands().weights.law.dtype, T => self.multiply::<T>())
    }

    fn flops(&self) -> u64 {
        let operands = self.workspace.operands();
        2 * operands.weights.num_nonzeros * operands.workload.tokens as u64
    }

    fn bytes(&self) -> u64 {
        let workload = &self.workspace.operands().workload;
        workload.dense_bytes() + workload.activation_bytes()
    }

    fn weight_bytes(&self) -> Option<u64> {
        Some(self.workspace.operands().workload.dense_bytes())
    }
}
