//! A product's matrices on the host: drawn from its seed, or read from its file.

use std::sync::{Arc, OnceLock};

#[cfg(feature = "gpu")]
use hopper_sparse::Error;
use hopper_sparse::formats::{BcsrView, BlockShape, CsrView, DenseView, DenseViewMut, Layout};
#[cfg(feature = "gpu")]
use hopper_sparse::gpu::{DeviceDenseView, DeviceDenseViewMut, DevicePtr};
use hopper_sparse::{Dtype, Element};

#[cfg(feature = "gpu")]
use super::device::DeviceSet;
use super::elements::{Elements, with_dtype};
use super::error::BenchError;
use super::operands::{Operands, Verdict};
use super::product_check::Reference;
use super::record::Row;
use super::workload::{Product, Source, layout_name};
use crate::random::Random;

/// What tells the stream of [`ProductOperands::full_a`] from the others of a workload.
const FULL_A: u64 = 0xf011_a000;

/// The three arrays of compressed rows, of entries or of blocks.
#[derive(Clone, Debug)]
pub struct Compressed {
    /// Where each row, or block row, begins; its last element is the number of entries or blocks.
    pub row_offsets: Vec<u64>,
    /// The column, or block column, of each.
    pub col_indices: Vec<u32>,
    /// The values; those of a block are row-major and lie together.
    pub values: Elements,
}

impl Compressed {
    /// Cuts every block of shape `from` into blocks of shape `to`, which must divide it; nothing is added or left out.
    pub fn split_blocks(&self, from: BlockShape, to: BlockShape) -> Self {
        let (num_down, num_across) = (from.rows / to.rows, from.cols / to.cols);
        let mut row_offsets = vec![0];
        let mut col_indices = Vec::with_capacity(self.col_indices.len() * num_down * num_across);
        let mut positions = Vec::with_capacity(self.values.len());
        for range in self.row_offsets.windows(2) {
            for down in 0..num_down {
                for block in range[0] as usize..range[1] as usize {
                    for across in 0..num_across {
                        col_indices.push(self.col_indices[block] * num_across as u32 + across as u32);
                        for row in down * to.rows..(down + 1) * to.rows {
                            let first = (block * from.rows + row) * from.cols + across * to.cols;
                            positions.extend(first..first + to.cols);
                        }
                    }
                }
                row_offsets.push(col_indices.len() as u64);
            }
        }
        Self { row_offsets, col_indices, values: self.values.gather(&positions) }
    }
}

/// How A was made.
#[derive(Clone, Debug)]
pub enum Stored {
    /// As blocks.
    Blocks(BlockShape, Compressed),
    /// As entries.
    Entries(Arc<Compressed>),
}

/// The last matrix that was read or imitated: the next workload is often a product with the same one.
#[derive(Debug, Default)]
pub struct LastMatrix(Option<(MatrixKey, MatrixRead)>);

/// Source, seed and type of a matrix: what it is made from.
type MatrixKey = (Source, u64, Dtype);

/// Rows, columns and entries.
type MatrixRead = (usize, usize, Arc<Compressed>);

impl LastMatrix {
    /// The matrix of `key`: the last one, where that was it, or a new one.
    fn get_or(
        &mut self,
        key: MatrixKey,
        read: impl FnOnce() -> Result<(usize, usize, Compressed), BenchError>,
    ) -> Result<MatrixRead, BenchError> {
        if let Some((last, matrix)) = &self.0
            && *last == key
        {
            return Ok(matrix.clone());
        }
        // Two large ones are not held at once.
        self.0 = None;
        let (num_rows, num_cols, entries) = read()?;
        let matrix = (num_rows, num_cols, Arc::new(entries));
        self.0 = Some((key, matrix.clone()));
        Ok(matrix)
    }
}

/// The matrices of a product.
#[derive(Debug)]
pub struct ProductOperands {
    /// The product, its sizes known.
    pub product: Product,
    /// A.
    pub a: Stored,
    /// B, in the workload's layout, without gaps.
    pub b: Elements,
    entries: OnceLock<Compressed>,
}

impl ProductOperands {
    /// Draws or reads the matrices of `product`; A is `last`, where that is the same.
    ///
    /// # Errors
    /// [`BenchError::Library`] where its file cannot be read.
    pub fn of(product: &Product, last: &mut LastMatrix) -> Result<Self, BenchError> {
        let key = (product.source.clone(), product.seed, product.dtype);
        let mut product = product.clone();
        let mut random = Random::new(product.seed);
        let a = match &product.source {
            Source::Blocks { block, density } => {
                let block = *block;
                let (rows, cols) = (product.m.div_ceil(block.rows), product.k.div_ceil(block.cols));
                let (row_offsets, col_indices) = random_pattern(rows, cols, *density, &mut random);
                let values = block_values(&product, block, &row_offsets, &col_indices, random.next_u64());
                Stored::Blocks(block, Compressed { row_offsets, col_indices, values })
            }
            Source::Uniform { density } => {
                let (row_offsets, col_indices) = random_pattern(product.m, product.k, *density, &mut random);
                let stream = random.next_u64();
                let draw = |index| Random::at(stream, index as u64);
                let values = Elements::from_fn(product.dtype, col_indices.len(), draw);
                Stored::Entries(Arc::new(Compressed { row_offsets, col_indices, values }))
            }
            Source::File(path) => {
                let (num_rows, num_cols, entries) =
                    last.get_or(key, || super::matrix_file::read(path, product.dtype))?;
                (product.m, product.k) = (num_rows, num_cols);
                Stored::Entries(entries)
            }
            Source::Lookalike(matrix) => {
                let imitate = || super::matrix_file::imitate(matrix, product.seed, product.dtype);
                Stored::Entries(last.get_or(key, || Ok((product.m, product.k, imitate())))?.2)
            }
        };
        let stream = random.next_u64();
        let b = Elements::from_fn(product.dtype, product.k * product.n, |index| Random::at(stream, index as u64));
        Ok(Self { product, a, b, entries: OnceLock::new() })
    }

    /// The number of elements that A stores, zeros inside blocks among them.
    pub fn num_stored(&self) -> u64 {
        match &self.a {
            Stored::Blocks(_, blocks) => blocks.values.len() as u64,
            Stored::Entries(entries) => entries.values.len() as u64,
        }
    }

    /// The number of elements of A that lie inside the matrix and are stored.
    pub fn num_entries(&self) -> u64 {
        (0..self.product.m).map(|row| self.row_len(row) as u64).sum()
    }

    fn row_len(&self, row: usize) -> usize {
        let mut len = 0;
        self.for_each_entry(row, |_, _| len += 1);
        len
    }

    fn stored(&self) -> &Compressed {
        match &self.a {
            Stored::Blocks(_, stored) => stored,
            Stored::Entries(stored) => stored,
        }
    }

    /// A in compressed rows of entries; every element of a block is one, also a zero.
    pub fn entries(&self) -> &Compressed {
        match &self.a {
            Stored::Entries(entries) => entries,
            Stored::Blocks(..) => self.entries.get_or_init(|| self.expand()),
        }
    }

    fn expand(&self) -> Compressed {
        let mut row_offsets = Vec::with_capacity(self.product.m + 1);
        row_offsets.push(0);
        let mut col_indices = Vec::new();
        let mut positions = Vec::new();
        for row in 0..self.product.m {
            self.for_each_entry(row, |col, position| {
                col_indices.push(col as u32);
                positions.push(position);
            });
            row_offsets.push(col_indices.len() as u64);
        }
        let stored = self.stored();
        Compressed { row_offsets, col_indices, values: stored.values.gather(&positions) }
    }

    /// A dense matrix of A's size without a zero, row-major, m x k.
    pub fn full_a(&self) -> Elements {
        let (m, k) = (self.product.m, self.product.k);
        Elements::from_fn(self.product.dtype, m * k, |index| Random::at(self.product.seed ^ FULL_A, index as u64))
    }

    /// A with its zeros, row-major, m x k.
    pub fn dense_a(&self) -> Elements {
        let (m, k) = (self.product.m, self.product.k);
        let stored = self.stored();
        let mut dense = Elements::from_fn(self.product.dtype, m * k, |_| 0.0);
        with_dtype!(self.product.dtype, T => {
            let (dense, values) = (dense.as_slice_mut::<T>(), stored.values.as_slice::<T>());
            for row in 0..m {
                self.for_each_entry(row, |col, position| dense[row * k + col] = values[position]);
            }
        });
        dense
    }

    /// Calls `visit` with the column and the position in the values of each stored element of a row, left to right.
    pub fn for_each_entry(&self, row: usize, mut visit: impl FnMut(usize, usize)) {
        match &self.a {
            Stored::Entries(entries) => {
                for index in entries.row_offsets[row] as usize..entries.row_offsets[row + 1] as usize {
                    visit(entries.col_indices[index] as usize, index);
                }
            }
            Stored::Blocks(block, blocks) => {
                let (block_row, row_in_block) = (row / block.rows, row % block.rows);
                for index in blocks.row_offsets[block_row] as usize..blocks.row_offsets[block_row + 1] as usize {
                    let first_col = blocks.col_indices[index] as usize * block.cols;
                    let first = (index * block.rows + row_in_block) * block.cols;
                    for offset in 0..block.cols.min(self.product.k - first_col) {
                        visit(first_col + offset, first + offset);
                    }
                }
            }
        }
    }

    /// A as the library's view of compressed rows.
    pub fn csr_view<T: Element>(&self) -> CsrView<'_, T> {
        let entries = self.entries();
        CsrView {
            num_rows: self.product.m,
            num_cols: self.product.k,
            row_offsets: &entries.row_offsets,
            col_indices: &entries.col_indices,
            values: entries.values.as_slice(),
        }
    }

    /// A as the library's view of blocks; `None` where it is not made of blocks.
    pub fn bcsr_view<T: Element>(&self) -> Option<BcsrView<'_, T>> {
        let Stored::Blocks(block, blocks) = &self.a else { return None };
        Some(BcsrView {
            num_rows: self.product.m,
            num_cols: self.product.k,
            block: *block,
            row_offsets: &blocks.row_offsets,
            col_indices: &blocks.col_indices,
            values: blocks.values.as_slice(),
        })
    }

    /// B as the library's view.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the sizes do not agree.
    pub fn b_view<T: Element>(&self) -> Result<DenseView<'_, T>, BenchError> {
        let Product { n, k, b_layout, .. } = self.product;
        let view = DenseView::try_new(self.b.as_slice(), k, n, leading_dimension(b_layout, k, n), b_layout);
        view.map_err(|error| BenchError::Library(error.into()))
    }

    /// Elements of C as the library's view.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the sizes do not agree.
    pub fn c_view<'c, T: Element>(&self, c: &'c Elements) -> Result<DenseView<'c, T>, BenchError> {
        let Product { m, n, c_layout, .. } = self.product;
        let view = DenseView::try_new(c.as_slice(), m, n, leading_dimension(c_layout, m, n), c_layout);
        view.map_err(|error| BenchError::Library(error.into()))
    }

    /// The same, to write.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the sizes do not agree.
    pub fn c_view_mut<'c, T: Element>(&self, c: &'c mut Elements) -> Result<DenseViewMut<'c, T>, BenchError> {
        let Product { m, n, c_layout, .. } = self.product;
        let view = DenseViewMut::try_new(c.as_slice_mut(), m, n, leading_dimension(c_layout, m, n), c_layout);
        view.map_err(|error| BenchError::Library(error.into()))
    }
}

/// The leading dimension of a dense matrix without gaps.
pub fn leading_dimension(layout: Layout, num_rows: usize, num_cols: usize) -> usize {
    match layout {
        Layout::RowMajor => num_cols,
        Layout::ColumnMajor => num_rows,
    }
}

/// Chooses exactly `round(density * rows * cols)` places, each set of places as likely as any other (selection
/// sampling), in compressed rows.
fn random_pattern(rows: usize, cols: usize, density: f64, random: &mut Random) -> (Vec<u64>, Vec<u32>) {
    let mut left = rows as u64 * cols as u64;
    let mut wanted = (left as f64 * density.clamp(0.0, 1.0)).round() as u64;
    let mut row_offsets = Vec::with_capacity(rows + 1);
    row_offsets.push(0);
    let mut col_indices = Vec::with_capacity(wanted as usize);
    for _ in 0..rows {
        for col in 0..cols {
            if random.below(left) < wanted {
                col_indices.push(col as u32);
                wanted -= 1;
            }
            left -= 1;
        }
        row_offsets.push(col_indices.len() as u64);
    }
    (row_offsets, col_indices)
}

/// Random values in every block, and zeros where a block reaches past the matrix.
fn block_values(
    product: &Product,
    block: BlockShape,
    row_offsets: &[u64],
    col_indices: &[u32],
    stream: u64,
) -> Elements {
    let mut block_rows = vec![0_usize; col_indices.len()];
    for (block_row, range) in row_offsets.windows(2).enumerate() {
        block_rows[range[0] as usize..range[1] as usize].fill(block_row);
    }
    let size = block.rows * block.cols;
    Elements::from_fn(product.dtype, col_indices.len() * size, |index| {
        let (block_index, offset) = (index / size, index % size);
        let row = block_rows[block_index] * block.rows + offset / block.cols;
        let col = col_indices[block_index] as usize * block.cols + offset % block.cols;
        if row < product.m && col < product.k { Random::at(stream, index as u64) } else { 0.0 }
    })
}

/// Bytes of A in compressed rows with 32-bit indices.
pub fn compressed_bytes(compressed: &Compressed) -> u64 {
    (compressed.values.as_bytes().len() + 4 * (compressed.col_indices.len() + compressed.row_offsets.len())) as u64
}

/// The number of multiply-adds of a product with `num_stored` elements, counted as two operations each.
pub fn product_flops(num_stored: u64, n: usize) -> u64 {
    2 * num_stored * n as u64
}

impl Operands for ProductOperands {
    type Problem = Product;
    type Reference = Reference;

    fn problem(&self) -> &Product {
        &self.product
    }

    fn inputs(&self) -> Vec<&Elements> {
        vec![&self.b]
    }

    fn output(&self) -> (Dtype, usize) {
        (self.product.c_dtype, self.product.m * self.product.n)
    }

    fn reference(&self) -> Result<Reference, BenchError> {
        Reference::of(self)
    }

    fn judge(&self, reference: &Reference, output: &Elements) -> Result<Verdict, BenchError> {
        reference.judge(self, output)
    }

    fn describe(&self, row: &mut Row) {
        let product = &self.product;
        (row.m, row.n, row.k) = (Some(product.m as u64), Some(product.n as u64), Some(product.k as u64));
        if let Stored::Blocks(block, _) = &self.a {
            row.block = block.to_string();
        }
        row.stored = Some(self.num_stored());
        row.dtype = product.dtype.to_string();
        row.c_dtype = product.c_dtype.to_string();
        layout_name(product.b_layout).clone_into(&mut row.b_layout);
        layout_name(product.c_layout).clone_into(&mut row.c_layout);
        row.seed = product.seed;
    }
}

/// B and C of a set as the library's views.
///
/// # Errors
/// [`BenchError::Library`] where the sizes do not agree.
///
/// # Safety
/// The set is one of `product`, whose types are `T` and `U`; while the views live, all work on the set is on one stream.
#[cfg(feature = "gpu")]
pub unsafe fn device_views<'s, T: Element, U: Element>(
    product: &Product,
    set: &'s DeviceSet,
) -> Result<(DeviceDenseView<'s, T>, DeviceDenseViewMut<'s, U>), BenchError> {
    let Product { m, n, k, b_layout, c_layout, .. } = *product;
    let (b_leading, c_leading) = (leading_dimension(b_layout, k, n), leading_dimension(c_layout, m, n));
    let (b_address, c_address) = (DevicePtr(set.inputs[0].address()), DevicePtr(set.output.address()));
    // SAFETY: the memory lives as long as the set; the rest is the caller's promise.
    unsafe {
        let b = DeviceDenseView::from_raw_parts(b_address, k, n, b_leading, b_layout).map_err(Error::from)?;
        let c = DeviceDenseViewMut::from_raw_parts(c_address, m, n, c_leading, c_layout).map_err(Error::from)?;
        Ok((b, c))
    }
}

#[cfg(test)]
pub fn smoke_product(name: &str) -> Product {
    use super::suite::Suite;
    use super::workload::Problem;

    let workloads = Suite::load("smoke").and_then(|suite| suite.workloads(None)).expect("the smoke suite");
    match workloads.into_iter().find(|workload| workload.name == name).expect(name).problem {
        Problem::Product(product) => product,
        _ => panic!("{name} is no product"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smoke(name: &str) -> ProductOperands {
        ProductOperands::of(&smoke_product(name), &mut LastMatrix::default()).expect("generated")
    }

    #[test]
    fn density_is_exact_and_rows_are_sorted() {
        let operands = smoke("uniform");
        assert_eq!(operands.num_stored(), 3000);
        let entries = operands.entries();
        assert_eq!(entries.row_offsets.len(), 301);
        for range in entries.row_offsets.windows(2) {
            let columns = &entries.col_indices[range[0] as usize..range[1] as usize];
            assert!(columns.is_sorted_by(|left, right| left < right));
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_matrices() {
        let (first, second) = (smoke("uniform"), smoke("uniform"));
        assert_eq!(first.b, second.b);
        assert_eq!(first.entries().values, second.entries().values);
    }

    #[test]
    fn blocks_cut_into_squares_are_the_same_matrix() {
        let product = Product { m: 192, k: 128, ..smoke_product("blocks-ragged") };
        let mut operands = ProductOperands::of(&product, &mut LastMatrix::default()).expect("generated");
        let dense = operands.dense_a();
        let Stored::Blocks(block, blocks) = &operands.a else { panic!("the workload has blocks") };
        let smaller = BlockShape { rows: block.rows / 2, cols: block.cols / 4 };
        let split = blocks.split_blocks(*block, smaller);
        assert_eq!(split.row_offsets.len(), 192 / smaller.rows + 1);
        assert_eq!(split.values.len(), blocks.values.len());
        operands.a = Stored::Blocks(smaller, split);
        assert_eq!(operands.dense_a(), dense);
    }

    #[test]
    fn entries_and_dense_form_of_ragged_blocks_agree() {
        let operands = smoke("blocks-ragged");
        let (m, k) = (operands.product.m, operands.product.k);
        let dense = operands.dense_a();
        let entries = operands.entries();
        assert_eq!(entries.values.len() as u64, operands.num_entries());
        let mut seen = 0.0;
        for row in 0..m {
            for index in entries.row_offsets[row] as usize..entries.row_offsets[row + 1] as usize {
                let col = entries.col_indices[index] as usize;
                assert!(col < k);
                assert_eq!(dense.get(row * k + col), entries.values.get(index));
                seen += entries.values.get(index).abs();
            }
        }
        let all: f64 = (0..m * k).map(|index| dense.get(index).abs()).sum();
        assert!(seen > 0.0 && (seen - all).abs() < 1e-9 * all);
    }

    #[test]
    fn the_last_matrix_is_made_once() {
        let matrix = hopper_sparse::generate::Lookalike::all()
            .iter()
            .min_by_key(|matrix| matrix.num_entries())
            .expect("there are some");
        let product = Product { source: Source::Lookalike(matrix), ..smoke_product("uniform") };
        let mut last = LastMatrix::default();
        let mut entries = |product: &Product| match ProductOperands::of(product, &mut last).expect("imitated").a {
            Stored::Entries(entries) => entries,
            Stored::Blocks(..) => unreachable!("a look-alike has no blocks"),
        };
        let first = entries(&product);
        assert!(Arc::ptr_eq(&first, &entries(&Product { n: product.n + 1, ..product.clone() })));
        assert!(!Arc::ptr_eq(&first, &entries(&Product { seed: product.seed + 1, ..product.clone() })));
    }
}
