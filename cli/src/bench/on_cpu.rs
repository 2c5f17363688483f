//! What products of compressed rows on the CPU have in common: all but their name and the product itself.

use core::marker::PhantomData;

use hopper_sparse::Element;
use hopper_sparse::formats::{CsrView, DenseView, DenseViewMut};

use super::elements::with_dtype;
use super::error::BenchError;
use super::implementation::{Implementation, Place, Prepared, Refusal};
use super::product_operands::{ProductOperands, compressed_bytes, product_flops};
use super::workload::Product;
use super::workspace::Workspace;

/// An [`Implementation`] that multiplies A as it lies in the operands: for every product, and with nothing to prepare.
pub trait CpuProduct: Sync {
    /// The implementation's name.
    const NAME: &'static str;

    /// C = A B; C is not read.
    ///
    /// # Errors
    /// What the library refuses.
    fn multiply<T: Element, U: Element>(
        a: CsrView<'_, T>,
        b: DenseView<'_, T>,
        c: &mut DenseViewMut<'_, U>,
    ) -> hopper_sparse::Result<()>;
}

impl<P: CpuProduct + 'static> Implementation<ProductOperands> for P {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn place(&self) -> Place {
        Place::Cpu
    }

    fn supports(&self, _: &Product) -> Result<(), Refusal> {
        Ok(())
    }

    fn prepare<'a>(&self, workspace: &'a Workspace<'a, ProductOperands>) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        workspace.operands().entries();
        Ok(Box::new(Ready { workspace, product: PhantomData::<P> }))
    }
}

struct Ready<'a, P> {
    workspace: &'a Workspace<'a, ProductOperands>,
    product: PhantomData<P>,
}

impl<P: CpuProduct> Prepared for Ready<'_, P> {
    fn launch(&mut self, _: usize) -> Result<(), BenchError> {
        let operands = self.workspace.operands();
        let mut c = self.workspace.host_output().borrow_mut();
        let product = &operands.product;
        with_dtype!(product.dtype, T => with_dtype!(product.c_dtype, U => {
            let (a, b) = (operands.csr_view::<T>(), operands.b_view::<T>()?);
            P::multiply(a, b, &mut operands.c_view_mut::<U>(&mut c)?).map_err(BenchError::Library)
        }))
    }

    fn flops(&self) -> u64 {
        let operands = self.workspace.operands();
        product_flops(operands.num_entries(), operands.product.n)
    }

    fn bytes(&self) -> u64 {
        let operands = self.workspace.operands();
        compressed_bytes(operands.entries()) + operands.product.dense_bytes()
    }
}
