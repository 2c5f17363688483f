//! The library's window-sparse product on the device.

use hopper_sparse::formats::WindowShape;
use hopper_sparse::ops::auto::AutoPrepared;
use hopper_sparse::ops::wcsr::WcsrSpmm;
use hopper_sparse::{Element, Error};

use crate::bench::elements::with_dtype;
use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::our_product::OurProduct;
use crate::bench::product_operands::ProductOperands;
use crate::bench::workload::Product;
use crate::bench::workspace::Workspace;

/// The library's WCSR kernels, with windows of one shape.
pub struct Wcsr {
    name: &'static str,
    window: WindowShape,
}

impl Wcsr {
    /// Windows of 64 rows, columns by eights.
    pub const ROWS_64_BY_8: Self = Self::new("ours/spmm/wcsr-64x8", 64, 8);
    /// Windows of 64 rows, single columns.
    pub const ROWS_64_BY_1: Self = Self::new("ours/spmm/wcsr-64x1", 64, 1);
    /// Windows of 128 rows, columns by eights.
    pub const ROWS_128_BY_8: Self = Self::new("ours/spmm/wcsr-128x8", 128, 8);
    /// Windows of 128 rows, single columns.
    pub const ROWS_128_BY_1: Self = Self::new("ours/spmm/wcsr-128x1", 128, 1);
    /// Windows of 16 rows, columns by eights.
    pub const ROWS_16_BY_8: Self = Self::new("ours/spmm/wcsr-16x8", 16, 8);
    /// Windows of 16 rows, single columns.
    pub const ROWS_16_BY_1: Self = Self::new("ours/spmm/wcsr-16x1", 16, 1);
    /// Windows of 8 rows, columns by eights.
    pub const ROWS_8_BY_8: Self = Self::new("ours/spmm/wcsr-8x8", 8, 8);
    /// Windows of 8 rows, single columns.
    pub const ROWS_8_BY_1: Self = Self::new("ours/spmm/wcsr-8x1", 8, 1);

    const fn new(name: &'static str, rows: usize, group: usize) -> Self {
        Self { name, window: WindowShape { rows, group } }
    }

    fn problem(&self, product: &Product) -> WcsrSpmm {
        WcsrSpmm {
            num_rows: product.m,
            num_inner: product.k,
            num_cols: product.n,
            window: self.window,
            dtype: product.dtype,
            output: product.c_dtype,
            b_layout: product.b_layout,
            c_layout: product.c_layout,
        }
    }

    fn prepare_as<'a, T: Element, U: Element>(
        &self,
        workspace: &'a Workspace<'a, ProductOperands>,
    ) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        let (gpu, _) = workspace.on_device();
        let operands = workspace.operands();
        let a = operands.csr_view::<T>();
        let windows = hopper_sparse::formats::Wcsr::from_csr(a, self.window).map_err(Error::from)?;
        let a = windows.view();
        let problem = self.problem(&operands.product);
        let plan = problem.plan(&a, gpu.device().num_multiprocessors()).map_err(Error::from)?;
        let prepared = AutoPrepared::Wcsr(plan.prepare(gpu.device(), &a)?);
        Ok(Box::new(OurProduct::<_, T, U>::new(workspace, prepared, a.values.len() as u64).with_maps()?))
    }
}

impl Implementation<ProductOperands> for Wcsr {
    fn name(&self) -> &'static str {
        self.name
    }

    fn place(&self) -> Place {
        Place::Gpu
    }

    fn supports(&self, product: &Product) -> Result<(), Refusal> {
        self.problem(product).check().map_err(Refusal::Ours)
    }

    fn prepare<'a>(&self, workspace: &'a Workspace<'a, ProductOperands>) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        let product = &workspace.operands().product;
        with_dtype!(product.dtype, T => with_dtype!(product.c_dtype, U => self.prepare_as::<T, U>(workspace)))
    }
}
