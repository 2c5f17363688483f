//! The first loop that comes to mind: the floor, and what every tolerance is relative to.

use hopper_sparse::formats::{CsrView, DenseView, DenseViewMut};
use hopper_sparse::reference::naive;
use hopper_sparse::{Element, Result};

use crate::bench::on_cpu::CpuProduct;

/// The library's naive product of compressed rows.
pub struct NaiveCpu;

impl CpuProduct for NaiveCpu {
    const NAME: &'static str = "naive/spmm/cpu";

    fn multiply<T: Element, U: Element>(
        a: CsrView<'_, T>,
        b: DenseView<'_, T>,
        c: &mut DenseViewMut<'_, U>,
    ) -> Result<()> {
        let product = naive::spmm(1.0, &a, b, 0.0, c.as_view())?;
        Ok(c.try_copy_from(product.view())?)
    }
}
