//! Attention as a textbook has it: what every tolerance is relative to.

use core::marker::PhantomData;

use hopper_sparse::Element;
use hopper_sparse::reference::attention::{AttentionRow, rows, textbook};

use crate::bench::attention::AttentionWorkload;
use crate::bench::attention_operands::AttentionOperands;
use crate::bench::elements::with_dtype;
use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::workspace::Workspace;

/// The library's textbook attention, every row of it.
pub struct NaiveCpu;

impl Implementation<AttentionOperands> for NaiveCpu {
    fn name(&self) -> &'static str {
        "naive/attention/cpu"
    }

    fn place(&self) -> Place {
        Place::Cpu
    }

    fn supports(&self, workload: &AttentionWorkload) -> Result<(), Refusal> {
        workload.check_dense()
    }

    fn prepare<'a>(
        &self,
        workspace: &'a Workspace<'a, AttentionOperands>,
    ) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        let problem = workspace.operands().problem();
        let rows = rows(problem);
        with_dtype!(problem.dtype, T => Ok(Box::new(Ready { workspace, rows, element: PhantomData::<T> })))
    }
}

struct Ready<'a, T> {
    workspace: &'a Workspace<'a, AttentionOperands>,
    rows: Vec<AttentionRow>,
    element: PhantomData<T>,
}

impl<T: Element> Prepared for Ready<'_, T> {
    fn launch(&mut self, _: usize) -> Result<(), BenchError> {
        let operands = self.workspace.operands();
        let problem = operands.problem();
        let [q, k, v] = operands.views::<T>()?;
        let (values, _) = textbook(problem, q, k, v, &self.rows).map_err(hopper_sparse::Error::from)?;
        let mut output = self.workspace.host_output().borrow_mut();
        let mut o = operands.o_view_mut::<T>(&mut output)?;
        for (AttentionRow { sequence, head, row }, from) in
            self.rows.iter().zip(values.data().chunks_exact(problem.head_dim))
        {
            let (batch, token) = problem.queries.place(*sequence, *row);
            o.row_mut(batch, token, *head).copy_from_slice(from);
        }
        Ok(())
    }

    fn flops(&self) -> u64 {
        self.workspace.operands().workload.flops()
    }

    fn bytes(&self) -> u64 {
        self.workspace.operands().workload.bytes()
    }
}
