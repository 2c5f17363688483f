//! The library's window-sparse product on the device.

use hopper_sparse::formats::WindowShape;
use hopper_sparse::ops::wcsr::{WcsrPrepared, WcsrSpmm};
use hopper_sparse::{Element, Error};

use crate::bench::elements::with_dtype;
use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::product_operands::{ProductOperands, device_views, product_flops};
use crate::bench::workload::Product;
use crate::bench::workspace::Workspace;

/// The library's WCSR kernels, with windows of one shape.
pub struct Wcsr {
    name: &'static str,
    window: WindowShape,
}

impl Wcsr {
    /// Windows of 64 rows, columns by eights.
    pub const ROWS_64_BY_8: Self = Self { name: "ours/spmm/wcsr-64x8", window: WindowShape { rows: 64, group: 8 } };
    /// Windows of 64 rows, single columns.
    pub const ROWS_64_BY_1: Self = Self { name: "ours/spmm/wcsr-64x1", window: WindowShape { rows: 64, group: 1 } };
    /// Windows of 128 rows, columns by eights.
    pub const ROWS_128_BY_8: Self = Self { name: "ours/spmm/wcsr-128x8", window: WindowShape { rows: 128, group: 8 } };
    /// Windows of 128 rows, single columns.
    pub const ROWS_128_BY_1: Self = Self { name: "ours/spmm/wcsr-128x1", window: WindowShape { rows: 128, group: 1 } };

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
        let (gpu, sets) = workspace.on_device();
        let operands = workspace.operands();
        let a = operands.csr_view::<T>();
        let windows = hopper_sparse::formats::Wcsr::from_csr(a, self.window).map_err(Error::from)?;
        let a = windows.view();
        let plan = self.problem(&operands.product).plan(&a, gpu.device().num_multiprocessors()).map_err(Error::from)?;
        let mut ready = Ready {
            workspace,
            prepared: plan.prepare(gpu.device(), &a)?,
            num_stored: a.values.len() as u64,
            output: core::marker::PhantomData::<U>,
        };
        // The tensor map of each B is made on first use; that is part of preparation.
        for set in 0..sets.len() {
            ready.launch(set)?;
        }
        gpu.synchronize()?;
        Ok(Box::new(ready))
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

struct Ready<'a, T, U> {
    workspace: &'a Workspace<'a, ProductOperands>,
    prepared: WcsrPrepared<T>,
    num_stored: u64,
    output: core::marker::PhantomData<U>,
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
        product_flops(self.num_stored, self.workspace.operands().product.n)
    }

    fn bytes(&self) -> u64 {
        self.prepared.num_bytes() as u64 + self.workspace.operands().product.dense_bytes()
    }

    fn choice(&self) -> String {
        self.prepared.plan().to_string()
    }
}
