//! The CPU backend on compressed rows.

use hopper_sparse::formats::{CsrView, DenseView, DenseViewMut};
use hopper_sparse::{Element, Result, cpu};

use crate::bench::on_cpu::CpuProduct;

/// The library's CPU product of compressed rows.
pub struct CsrCpu;

impl CpuProduct for CsrCpu {
    const NAME: &'static str = "ours/spmm/csr-cpu";

    fn multiply<T: Element, U: Element>(
        a: CsrView<'_, T>,
        b: DenseView<'_, T>,
        c: &mut DenseViewMut<'_, U>,
    ) -> Result<()> {
        cpu::spmm_csr(1.0, a, b, 0.0, c)
    }
}
