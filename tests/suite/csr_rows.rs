//! Products with CSR matrices whose rows have lengths of note: cut in parts, ordered, empty, one alone.

use hopper_sparse::formats::{CsrView, Layout};
use hopper_sparse::ops::csr::{RowOrder, RowRun, RowSharing, RowSplit, RunLength};
use hopper_sparse::reference::{self, naive};
use hopper_sparse::{Element, bf16, f16};

use super::Placement;
use super::operands::{Buffer, Padding, Random};
use super::products::Runner;

/// The arrays of a CSR matrix.
#[derive(Clone)]
pub struct Rows<T> {
    num_cols: usize,
    row_offsets: Vec<u64>,
    col_indices: Vec<u32>,
    values: Vec<T>,
}

impl<T: Element> Rows<T> {
    /// Rows of these lengths, in random columns.
    pub fn of_lengths(lengths: &[usize], num_cols: usize, random: &mut Random) -> Self {
        let mut rows = Self { num_cols, row_offsets: vec![0], col_indices: vec![], values: vec![] };
        for &len in lengths {
            assert!(len <= num_cols);
            // Of the columns that are left, as many as are still wanted.
            let mut wanted = len;
            for column in 0..num_cols {
                if random.below(num_cols - column) < wanted {
                    rows.col_indices.push(column as u32);
                    rows.values.push(random.element());
                    wanted -= 1;
                }
            }
            rows.row_offsets.push(rows.col_indices.len() as u64);
        }
        rows
    }

    pub fn view(&self) -> CsrView<'_, T> {
        let Self { num_cols, row_offsets, col_indices, values } = self;
        CsrView { num_rows: row_offsets.len() - 1, num_cols: *num_cols, row_offsets, col_indices, values }
    }

    /// The matrix of one row.
    fn row(&self, row: usize) -> Self {
        let (columns, values) = self.view().row(row);
        Self {
            num_cols: self.num_cols,
            row_offsets: vec![0, columns.len() as u64],
            col_indices: columns.to_vec(),
            values: values.to_vec(),
        }
    }
}

const TIGHT: Placement = Placement { layout: Layout::RowMajor, padding: Padding::Tight };

fn sharing(split_log2: u32, order: RowOrder) -> RowSharing {
    RowSharing { split: RowSplit::after_log2(split_log2).expect("a length of parts"), order, ..RowSharing::default() }
}

/// Runs of 2^`log2` rows.
fn runs(split_log2: u32, log2: u32) -> RowSharing {
    let run = RowRun::Rows(RunLength::of_log2(log2).expect("a length of runs"));
    RowSharing { run, ..sharing(split_log2, RowOrder::Auto) }
}

/// Compares one product with the reference.
fn check_rows<T: Element, U: Element>(
    runner: &impl Runner,
    sharing: RowSharing,
    a: &Rows<T>,
    num_cols: usize,
    (b_placement, c_placement): (Placement, Placement),
    (alpha, beta): (f64, f64),
    random: &mut Random,
) {
    let a = a.view();
    let b = Buffer::<T>::random(a.num_cols, num_cols, b_placement, random);
    let mut c = match beta {
        0.0 => Buffer::<U>::poisoned(a.num_rows, num_cols, c_placement),
        _ => Buffer::<U>::random(a.num_rows, num_cols, c_placement, random),
    };
    let exact = reference::spmm(alpha, &a, b.view(), beta, c.view()).expect("the shapes agree");
    let tolerance = naive::tolerance(naive::Unit::Core, alpha, &a, b.view(), beta, c.view(), &exact);
    runner.multiply_csr(sharing, (alpha, beta), a, b.view(), &mut c.view_mut()).expect("a product");

    let verdict = tolerance.expect("the shapes agree").judge(&exact.compare(c.view()).expect("the shapes agree"));
    let case = format!("{} -> {}, {}x{num_cols}, {sharing:?}", T::DTYPE, U::DTYPE, a.num_rows);
    assert!(verdict.is_accepted(), "{case}: {verdict}");
    assert!(c.padding_is_untouched(), "{case}: memory between lines of C changed");
}

/// Rows of no entry, under, at and over the length of parts, and of several parts: in every type, both orders, and widths of
/// every kind of load.
pub fn check_long_rows(runner: &impl Runner) {
    let mut random = Random::fresh();
    let lengths = [0, 16, 17, 0, 3, 48, 1, 15, 100, 2, 0, 0, 33, 18];
    let factors = [(1.0, 0.0), (-0.5, 1.5), (0.0, 0.75)];
    let wide = Placement { padding: Padding::Wide, ..TIGHT };
    let columns = Placement { layout: Layout::ColumnMajor, ..TIGHT };
    for (index, num_cols) in [1, 3, 4, 6, 8, 33, 136].into_iter().enumerate() {
        for (turn, order) in [RowOrder::Direct, RowOrder::ByLength].into_iter().enumerate() {
            let sharing = sharing(4, order);
            let factors = factors[(index + turn) % 3];
            let placed = [(TIGHT, TIGHT), (wide, wide), (TIGHT, columns), (columns, TIGHT)][(index + 2 * turn) % 4];
            macro_rules! check {
                ($input:ty, $output:ty) => {
                    let a = Rows::<$input>::of_lengths(&lengths, 110, &mut random);
                    check_rows::<$input, $output>(runner, sharing, &a, num_cols, placed, factors, &mut random);
                };
            }
            check!(bf16, bf16);
            check!(f16, f16);
            check!(f32, f32);
            check!(bf16, f32);
            check!(f16, f32);
        }
    }
}

/// Runs of rows: short and empty ones, long ones at their begin, in them and at their end, whole runs of empty and of long rows, and a
/// last run that is not full: in every type, of every length, and with widths of every kind of load.
pub fn check_runs(runner: &impl Runner) {
    let mut random = Random::fresh();
    let patterns: [&[usize]; 5] = [
        &[3, 0, 1, 16, 2, 0, 0, 5, 17, 4, 1, 1, 2, 33, 0, 6, 0, 0, 40, 18, 3],
        &[0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[20, 20, 20, 20, 1, 2, 3],
        &[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2],
        &[7],
    ];
    let factors = [(1.0, 0.0), (-0.5, 1.5), (0.0, 0.75)];
    let wide = Placement { padding: Padding::Wide, ..TIGHT };
    let columns = Placement { layout: Layout::ColumnMajor, ..TIGHT };
    for (index, num_cols) in [1, 3, 4, 6, 8, 33, 136].into_iter().enumerate() {
        for (turn, lengths) in patterns.into_iter().enumerate() {
            let sharing = runs(4, 1 + (index + turn) as u32 % 4);
            let factors = factors[(index + turn) % 3];
            let placed = [(TIGHT, TIGHT), (wide, wide), (TIGHT, columns), (columns, TIGHT)][(index + 2 * turn) % 4];
            macro_rules! check {
                ($input:ty, $output:ty) => {
                    let a = Rows::<$input>::of_lengths(lengths, 41, &mut random);
                    check_rows::<$input, $output>(runner, sharing, &a, num_cols, placed, factors, &mut random);
                };
            }
            check!(bf16, bf16);
            check!(f32, f32);
            check!(f16, f32);
        }
    }
}

/// Parts of the default length and parts in passes, the whole matrix one row, long rows alone, and no column.
pub fn check_rows_of_note(runner: &impl Runner) {
    let mut random = Random::fresh();
    let mut check = |lengths: &[usize], depth: usize, num_cols: usize, sharing: RowSharing| {
        let a = Rows::<f32>::of_lengths(lengths, depth, &mut random);
        check_rows::<f32, f32>(runner, sharing, &a, num_cols, (TIGHT, TIGHT), (1.0, 0.0), &mut random);
        let a = Rows::<bf16>::of_lengths(lengths, depth, &mut random);
        check_rows::<bf16, bf16>(runner, sharing, &a, num_cols, (TIGHT, TIGHT), (0.5, 1.0), &mut random);
    };
    check(&[256, 257, 5, 600], 600, 5, RowSharing::default());
    // 75 parts, which one pass does not add up; and 65, of which the last has one entry.
    check(&[300], 300, 9, sharing(2, RowOrder::Direct));
    check(&[257, 0], 300, 16, sharing(2, RowOrder::ByLength));
    check(&[20, 30, 40], 40, 12, sharing(3, RowOrder::ByLength));
    check(
        &[20, 30, 40],
        40,
        12,
        RowSharing { split: RowSplit::NEVER, order: RowOrder::ByLength, ..RowSharing::default() },
    );
    check(&[0, 0, 0], 7, 12, sharing(2, RowOrder::ByLength));
    check(&[9, 0], 10, 0, sharing(2, RowOrder::ByLength));
    check(&[], 10, 3, sharing(2, RowOrder::ByLength));
}

/// A row has the same bits alone and among others, in whatever order, where all that is not its own is NaN; an element has
/// them with and without the other columns of B.
pub fn check_bits_of_rows(runner: &impl Runner) {
    let mut random = Random::fresh();
    check_bits_of::<f32>(runner, &mut random);
    check_bits_of::<bf16>(runner, &mut random);
}

fn check_bits_of<T: Element>(runner: &impl Runner, random: &mut Random) {
    const NUM_COLS: usize = 12;
    const DEPTH: usize = 60;
    let lengths = [5, 16, 41, 3, 0, 17, 1];
    let (direct, by_length) = (sharing(4, RowOrder::Direct), sharing(4, RowOrder::ByLength));
    let matrix = Rows::<T>::of_lengths(&lengths, DEPTH, random);
    let b = Buffer::<T>::random(DEPTH, NUM_COLS, TIGHT, random);
    let run = |sharing: RowSharing, a: &Rows<T>, b: &Buffer<T>| {
        let mut c = Buffer::<f32>::poisoned(a.view().num_rows, b.view().num_cols(), TIGHT);
        runner.multiply_csr(sharing, (1.0, 0.0), a.view(), b.view(), &mut c.view_mut()).expect("a product");
        c
    };
    for row in 0..lengths.len() {
        let own = matrix.row(row);
        let alone = run(direct, &own, &b);
        let expected: Vec<u32> = (0..NUM_COLS).map(|col| alone.view().get(0, col).to_bits()).collect();

        // Everything else is NaN: the other rows' values, and the rows of B that this row has no entry for.
        let (mut others, mut poisoned) = (matrix.clone(), b.clone());
        let ours = matrix.row_offsets[row] as usize..matrix.row_offsets[row + 1] as usize;
        for (entry, value) in others.values.iter_mut().enumerate() {
            if !ours.contains(&entry) {
                *value = T::from_f64(f64::NAN);
            }
        }
        for k in (0..DEPTH).filter(|&k| !own.col_indices.contains(&(k as u32))) {
            (0..NUM_COLS).for_each(|col| poisoned.view_mut().set(k, col, T::from_f64(f64::NAN)));
        }
        for sharing in [direct, by_length, runs(4, 1), runs(4, 3)] {
            let among = run(sharing, &others, &poisoned);
            let found: Vec<u32> = (0..NUM_COLS).map(|col| among.view().get(row, col).to_bits()).collect();
            assert_eq!(found, expected, "{}, row {row}, {sharing:?}", T::DTYPE);
        }

        // One column of B: with NaN beside it, and alone.
        let (col, mut beside) = (row % NUM_COLS, b.clone());
        let mut single = Buffer::<T>::poisoned(DEPTH, 1, TIGHT);
        for k in 0..DEPTH {
            (0..NUM_COLS).filter(|&other| other != col).for_each(|other| {
                beside.view_mut().set(k, other, T::from_f64(f64::NAN));
            });
            single.view_mut().set(k, 0, b.view().get(k, col));
        }
        assert_eq!(run(direct, &own, &beside).view().get(0, col).to_bits(), expected[col], "{}, row {row}", T::DTYPE);
        assert_eq!(run(direct, &own, &single).view().get(0, 0).to_bits(), expected[col], "{}, row {row}", T::DTYPE);
    }
}
