//! cuSPARSE on blocks: of A's own shape, or, where it refuses that, of the largest square that divides it.

use std::borrow::Cow;

use hopper_sparse::formats::BlockShape;

use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::product_operands::{Compressed, ProductOperands, Stored, compressed_bytes, product_flops};
use crate::bench::vendor::cusparse::{Algorithm, SparseMatrix, SparseProduct, knows_blocks};
use crate::bench::workload::Product;
use crate::bench::workspace::Workspace;

/// cuSPARSE's product of blocks.
pub struct CusparseBsr;

impl Implementation<ProductOperands> for CusparseBsr {
    fn name(&self) -> &'static str {
        "vendor/spmm/cusparse-bsr"
    }

    fn place(&self) -> Place {
        Place::Gpu
    }

    fn supports(&self, product: &Product) -> Result<(), Refusal> {
        let block = product.block().ok_or(Refusal::NotBlocks)?;
        if !product.m.is_multiple_of(block.rows) || !product.k.is_multiple_of(block.cols) {
            return Err(Refusal::Ragged { block });
        }
        knows_blocks()
    }

    fn prepare<'a>(&self, workspace: &'a Workspace<'a, ProductOperands>) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        let Stored::Blocks(block, blocks) = &workspace.operands().a else { return Err(Refusal::NotBlocks.into()) };
        let side = greatest_common_divisor(block.rows, block.cols);
        let square = BlockShape { rows: side, cols: side };
        match Ready::new(workspace, *block, Cow::Borrowed(blocks)) {
            Err(BenchError::Refused(_)) if square != *block => {
                let blocks = blocks.split_blocks(*block, square);
                Ok(Box::new(Ready::new(workspace, square, Cow::Owned(blocks))?))
            }
            ready => Ok(Box::new(ready?)),
        }
    }
}

fn greatest_common_divisor(left: usize, right: usize) -> usize {
    if right == 0 { left } else { greatest_common_divisor(right, left % right) }
}

struct Ready<'a> {
    workspace: &'a Workspace<'a, ProductOperands>,
    block: BlockShape,
    sparse_bytes: u64,
    product: SparseProduct<'a>,
}

impl<'a> Ready<'a> {
    fn new(
        workspace: &'a Workspace<'a, ProductOperands>,
        block: BlockShape,
        blocks: Cow<'_, Compressed>,
    ) -> Result<Self, BenchError> {
        let (gpu, sets) = workspace.on_device();
        let product = &workspace.operands().product;
        let a = SparseMatrix::bsr(gpu, product, block, &blocks)?;
        let algorithm = Algorithm::CUSPARSE_SPMM_BSR_ALG1;
        let product = SparseProduct::new(gpu, product, a, &sets[0].inputs[0], &sets[0].output, algorithm)?;
        // Some refusals come only with the first launch.
        product.launch(&sets[0].inputs[0], &sets[0].output)?;
        Ok(Self { workspace, block, sparse_bytes: compressed_bytes(&blocks), product })
    }
}

impl Prepared for Ready<'_> {
    fn launch(&mut self, set: usize) -> Result<(), BenchError> {
        let (_, sets) = self.workspace.on_device();
        self.product.launch(&sets[set].inputs[0], &sets[set].output)
    }

    fn flops(&self) -> u64 {
        let operands = self.workspace.operands();
        product_flops(operands.num_stored(), operands.product.n)
    }

    fn bytes(&self) -> u64 {
        self.sparse_bytes + self.workspace.operands().product.dense_bytes()
    }

    fn choice(&self) -> String {
        format!("{} blocks, {}", self.block, self.product.choice())
    }
}
