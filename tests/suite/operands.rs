//! Random operands.

use std::env;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::panic::Location;

use hopper_sparse::Element;
use hopper_sparse::formats::{
    BcsrView, BlockShape, Csr, CsrView, DenseView, DenseViewMut, Layout, RowOrder, Wcsr, WcsrView, WindowShape,
};
use hopper_sparse::reference::SparseRows;

use super::{Format, Placement};

/// Random numbers: the SplitMix64 generator of Steele, Lea and Flood (OOPSLA 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another sequence each time, unless `HOPPER_TEST_SEED` is set: then that number's for this line of the tests.
    #[track_caller]
    pub fn fresh() -> Self {
        let Ok(number) = env::var("HOPPER_TEST_SEED") else {
            return Self(RandomState::new().hash_one(0));
        };
        let seed: u64 = number.parse().unwrap_or_else(|_| panic!("HOPPER_TEST_SEED is a number, not {number}"));
        let caller = Location::caller();
        let mut hasher = DefaultHasher::new();
        (seed, caller.file(), caller.line()).hash(&mut hasher);
        Self(hasher.finish())
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Any order of so many rows.
    pub fn row_order(&mut self, num_rows: usize) -> RowOrder {
        let mut rows: Vec<u32> = (0..num_rows as u32).collect();
        for last in (1..num_rows).rev() {
            rows.swap(last, self.below(last + 1));
        }
        RowOrder::try_new(rows).expect("swaps make a permutation")
    }

    /// -1 to 1.
    pub fn element<T: Element>(&mut self) -> T {
        T::from_f64(2.0 * self.unit() - 1.0)
    }

    /// NaN or an infinity.
    pub fn special<T: Element>(&mut self) -> T {
        T::from_f64([f64::NAN, f64::INFINITY, f64::NEG_INFINITY][self.below(3)])
    }
}

/// A borrowed sparse matrix of any format.
#[derive(Clone, Copy, Debug)]
pub enum Sparse<'a, T> {
    Csr(CsrView<'a, T>),
    Bcsr(BcsrView<'a, T>),
    Wcsr(WcsrView<'a, T>),
}

impl<T: Element> SparseRows<T> for Sparse<'_, T> {
    fn num_rows(&self) -> usize {
        match self {
            Self::Csr(view) => view.num_rows,
            Self::Bcsr(view) => view.num_rows,
            Self::Wcsr(view) => view.num_rows,
        }
    }

    fn num_cols(&self) -> usize {
        match self {
            Self::Csr(view) => view.num_cols,
            Self::Bcsr(view) => view.num_cols,
            Self::Wcsr(view) => view.num_cols,
        }
    }

    fn for_each_entry(&self, row: usize, visit: impl FnMut(usize, T)) {
        match self {
            Self::Csr(view) => view.for_each_entry(row, visit),
            Self::Bcsr(view) => view.for_each_entry(row, visit),
            Self::Wcsr(view) => view.for_each_entry(row, visit),
        }
    }
}

/// The arrays of a sparse matrix of any format. CSR is BCSR with blocks of one element; WCSR is made of CSR.
pub struct SparseArrays<T> {
    format: Format,
    block: BlockShape,
    num_rows: usize,
    num_cols: usize,
    row_offsets: Vec<u64>,
    col_indices: Vec<u32>,
    values: Vec<T>,
    windows: Option<Wcsr<T>>,
}

impl<T: Element> SparseArrays<T> {
    /// Each fifth (block) row is empty and the third is full. What blocks hold outside of the matrix is zero.
    pub fn random(format: Format, num_rows: usize, num_cols: usize, density: f64, random: &mut Random) -> Self {
        let block = match format {
            Format::Csr | Format::Wcsr(_) => BlockShape { rows: 1, cols: 1 },
            Format::Bcsr(block) => block,
        };
        let mut arrays = Self {
            format,
            block,
            num_rows,
            num_cols,
            row_offsets: vec![0],
            col_indices: vec![],
            values: vec![],
            windows: None,
        };
        for block_row in 0..num_rows.div_ceil(block.rows) {
            for block_col in 0..num_cols.div_ceil(block.cols) {
                let stored = match block_row % 5 {
                    2 if block_row == 2 => true,
                    4 => false,
                    _ => random.unit() < density,
                };
                if stored {
                    arrays.col_indices.push(block_col as u32);
                    arrays.push_block(block_row, block_col, random);
                }
            }
            arrays.row_offsets.push(arrays.col_indices.len() as u64);
        }
        if let Format::Wcsr(window) = format {
            arrays.windows = Some(arrays.entries().to_wcsr(window).expect("a shape on offer"));
        }
        arrays
    }

    /// The entries, of CSR and of WCSR.
    fn entries(&self) -> Csr<T> {
        let (row_offsets, col_indices) = (self.row_offsets.clone(), self.col_indices.clone());
        Csr::try_new(self.num_rows, self.num_cols, row_offsets, col_indices, self.values.clone())
            .expect("the arrays are a matrix")
    }

    /// The same matrix in windows of its rows in an order.
    pub fn in_order(&self, window: WindowShape, order: RowOrder) -> Wcsr<T> {
        Wcsr::from_csr_ordered(self.entries().view(), window, order).expect("an order of the rows")
    }

    /// The matrix whose rows stand as an order has them, in windows.
    pub fn permuted(&self, window: WindowShape, order: &RowOrder) -> Wcsr<T> {
        let (mut row_offsets, mut col_indices, mut values) = (vec![0], vec![], vec![]);
        for &row in order.rows() {
            let entries = self.row_offsets[row as usize] as usize..self.row_offsets[row as usize + 1] as usize;
            col_indices.extend_from_slice(&self.col_indices[entries.clone()]);
            values.extend_from_slice(&self.values[entries]);
            row_offsets.push(values.len() as u64);
        }
        let csr = Csr::try_new(self.num_rows, self.num_cols, row_offsets, col_indices, values);
        csr.and_then(|csr| csr.to_wcsr(window)).expect("the arrays are a matrix")
    }

    fn push_block(&mut self, block_row: usize, block_col: usize, random: &mut Random) {
        for i in 0..self.block.rows {
            for j in 0..self.block.cols {
                let inside =
                    block_row * self.block.rows + i < self.num_rows && block_col * self.block.cols + j < self.num_cols;
                // One element in eight is an explicit zero.
                let value = if inside && random.below(8) > 0 { random.element() } else { T::ZERO };
                self.values.push(value);
            }
        }
    }

    /// Makes one element in a thousand, and at least one, NaN or infinite: of CSR only, where all lie inside.
    pub fn add_specials(&mut self, random: &mut Random) {
        if matches!(self.format, Format::Csr) && !self.values.is_empty() {
            for _ in 0..self.values.len().div_ceil(1000) {
                let at = random.below(self.values.len());
                self.values[at] = random.special();
            }
        }
    }

    pub fn view(&self) -> Sparse<'_, T> {
        let (num_rows, num_cols) = (self.num_rows, self.num_cols);
        let (row_offsets, col_indices, values) = (&*self.row_offsets, &*self.col_indices, &*self.values);
        match self.format {
            Format::Csr => Sparse::Csr(CsrView { num_rows, num_cols, row_offsets, col_indices, values }),
            Format::Bcsr(block) => {
                Sparse::Bcsr(BcsrView { num_rows, num_cols, block, row_offsets, col_indices, values })
            }
            Format::Wcsr(_) => Sparse::Wcsr(self.windows.as_ref().expect("made with the arrays").view()),
        }
    }
}

/// Whether there is space between the lines of a dense matrix.
#[derive(Clone, Copy, Debug)]
pub enum Padding {
    Tight,
    /// Three elements, which are NaN.
    Wide,
}

/// A dense matrix in memory that may have space between its lines. That space and all poison are NaN: where it is read,
/// the result shows it.
#[derive(Clone)]
pub struct Buffer<T> {
    data: Vec<T>,
    num_rows: usize,
    num_cols: usize,
    line_len: usize,
    leading_dimension: usize,
    layout: Layout,
}

impl<T: Element> Buffer<T> {
    pub fn poisoned(num_rows: usize, num_cols: usize, placement: Placement) -> Self {
        let layout = placement.layout;
        let (num_lines, line_len) = match layout {
            Layout::RowMajor => (num_rows, num_cols),
            Layout::ColumnMajor => (num_cols, num_rows),
        };
        let leading_dimension = match placement.padding {
            Padding::Tight => line_len,
            Padding::Wide => line_len + 3,
        };
        let data = vec![T::from_f64(f64::NAN); num_lines * leading_dimension];
        Self { data, num_rows, num_cols, line_len, leading_dimension, layout }
    }

    pub fn random(num_rows: usize, num_cols: usize, placement: Placement, random: &mut Random) -> Self {
        let mut buffer = Self::poisoned(num_rows, num_cols, placement);
        for line in buffer.view_mut().lines_mut() {
            line.fill_with(|| random.element());
        }
        buffer
    }

    /// Makes one element NaN or infinite.
    pub fn add_specials(&mut self, random: &mut Random) {
        if self.num_rows > 0 && self.num_cols > 0 {
            let (i, j) = (random.below(self.num_rows), random.below(self.num_cols));
            self.view_mut().set(i, j, random.special());
        }
    }

    pub fn view(&self) -> DenseView<'_, T> {
        DenseView::try_new(&self.data, self.num_rows, self.num_cols, self.leading_dimension, self.layout)
            .expect("the buffer was made for this view")
    }

    pub fn view_mut(&mut self) -> DenseViewMut<'_, T> {
        DenseViewMut::try_new(&mut self.data, self.num_rows, self.num_cols, self.leading_dimension, self.layout)
            .expect("the buffer was made for this view")
    }

    pub fn padding_is_untouched(&self) -> bool {
        let mut lines = self.data.chunks(self.leading_dimension.max(1));
        lines.all(|line| line[self.line_len.min(line.len())..].iter().all(|element| element.to_f64().is_nan()))
    }
}
