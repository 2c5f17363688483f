//! The library's block-sparse product on the device.

use hopper_sparse::formats::{AnyBcsr, BcsrView, BlockShape, CsrView, FillStatistics};
use hopper_sparse::ops::auto::AutoPrepared;
use hopper_sparse::ops::bcsr::BcsrSpmm;
use hopper_sparse::{Element, Error};

use crate::bench::elements::with_dtype;
use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::our_product::OurProduct;
use crate::bench::product_operands::ProductOperands;
use crate::bench::workload::Product;
use crate::bench::workspace::Workspace;

/// The library's BCSR kernels.
pub struct Bcsr {
    name: &'static str,
    /// The blocks that every matrix is put into.
    block: Option<BlockShape>,
}

impl Bcsr {
    /// The workload's blocks; a matrix without blocks is put into those of the shape that stores the fewest elements.
    pub const TIGHTEST: Self = Self { name: "ours/spmm/bcsr", block: None };
    /// Blocks of 128x64.
    pub const ROWS_128_BY_64: Self =
        Self { name: "ours/spmm/bcsr-128x64", block: Some(BlockShape { rows: 128, cols: 64 }) };
    /// Blocks of 128x16.
    pub const ROWS_128_BY_16: Self =
        Self { name: "ours/spmm/bcsr-128x16", block: Some(BlockShape { rows: 128, cols: 16 }) };
}

impl Implementation<ProductOperands> for Bcsr {
    fn name(&self) -> &'static str {
        self.name
    }

    fn place(&self) -> Place {
        Place::Gpu
    }

    fn supports(&self, product: &Product) -> Result<(), Refusal> {
        // Where A has no blocks any shape offered stands for the one that is chosen later.
        let block = self.block.or(product.block()).unwrap_or(BlockShape::ALL[0]);
        problem(product, block).check().map_err(Refusal::Ours)
    }

    fn prepare<'a>(&self, workspace: &'a Workspace<'a, ProductOperands>) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        let operands = workspace.operands();
        with_dtype!(operands.product.dtype, T => with_dtype!(operands.product.c_dtype, U => {
            if let (None, Some(a)) = (self.block, operands.bcsr_view::<T>()) {
                return prepare::<T, U>(workspace, &a);
            }
            let entries = operands.csr_view::<T>();
            let block = self.block.unwrap_or_else(|| tightest(entries));
            let blocks = AnyBcsr::from_csr(entries, block).map_err(Error::from)?;
            prepare::<T, U>(workspace, &blocks.view())
        }))
    }
}

/// A workload's product, with A in blocks of this shape.
pub(super) fn problem(product: &Product, block: BlockShape) -> BcsrSpmm {
    BcsrSpmm {
        num_rows: product.m,
        num_inner: product.k,
        num_cols: product.n,
        block,
        dtype: product.dtype,
        output: product.c_dtype,
        b_layout: product.b_layout,
        c_layout: product.c_layout,
    }
}

/// The block shape in which the matrix stores the fewest elements.
fn tightest<T: Element>(entries: CsrView<'_, T>) -> BlockShape {
    let stored = |block: &BlockShape| FillStatistics::of(entries, *block).num_blocks * block.num_elements() as u64;
    BlockShape::ALL.into_iter().min_by_key(stored).unwrap_or(BlockShape::ALL[0])
}

fn prepare<'a, T: Element, U: Element>(
    workspace: &'a Workspace<'a, ProductOperands>,
    a: &BcsrView<'_, T>,
) -> Result<Box<dyn Prepared + 'a>, BenchError> {
    let (gpu, _) = workspace.on_device();
    let product = &workspace.operands().product;
    let plan = problem(product, a.block).plan(a, gpu.device().num_multiprocessors()).map_err(Error::from)?;
    let prepared = AutoPrepared::Bcsr(plan.prepare(gpu.device(), a)?);
    Ok(Box::new(OurProduct::<_, T, U>::new(workspace, prepared, a.values.len() as u64).with_maps()?))
}
