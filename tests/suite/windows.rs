//! Products by the WCSR kernels, on whatever runs them: a device, or the simulator.

use hopper_sparse::formats::{DenseView, DenseViewMut, Layout, Wcsr, WcsrView, WindowShape};
use hopper_sparse::reference::naive::Unit;
use hopper_sparse::{Element, Result, bf16, f16};

use super::operands::{Buffer, Padding, Random, Sparse, SparseArrays};
use super::{Case, Format, Placement, Specials};

/// The shapes that kernels serve.
pub const SHAPES: [WindowShape; 8] = [
    WindowShape { rows: 64, group: 8 },
    WindowShape { rows: 64, group: 1 },
    WindowShape { rows: 128, group: 8 },
    WindowShape { rows: 128, group: 1 },
    WindowShape { rows: 8, group: 8 },
    WindowShape { rows: 8, group: 1 },
    WindowShape { rows: 16, group: 8 },
    WindowShape { rows: 16, group: 1 },
];

/// Plans a product and runs its kernels.
pub trait Runner {
    /// C = alpha A B + beta C.
    fn multiply<T: Element, U: Element>(
        &self,
        factors: (f64, f64),
        a: WcsrView<'_, T>,
        b: DenseView<'_, T>,
        c: &mut DenseViewMut<'_, U>,
    ) -> Result<()>;
}

/// Runs one problem.
pub fn check_case<T: Element, U: Element>(runner: &impl Runner, case: &Case) {
    super::check_case::<T, U>(case, Specials::None, &|alpha, a, b, beta, c: &mut _| match a {
        Sparse::Wcsr(a) => runner.multiply((alpha, beta), a, b, c),
        _ => unreachable!("windows were asked for"),
    });
}

/// M, N and K: nothing, one, less and more than a window, a panel, a chunk and a tile; rows of several stages.
const PROBLEMS: [(usize, usize, usize); 12] = [
    (0, 5, 3),
    (5, 0, 3),
    (5, 3, 0),
    (1, 1, 1),
    (1, 7, 200),
    (64, 64, 64),
    (65, 17, 33),
    (130, 129, 257),
    (200, 64, 100),
    (97, 72, 1000),
    (3, 300, 5),
    (256, 8, 130),
];

/// Every shape, with every layout of C, with and without space between lines, every pair of types and both factors.
pub fn check_problems(runner: &impl Runner, window: WindowShape) {
    let mut random = Random::fresh();
    for (index, shape) in PROBLEMS.into_iter().enumerate() {
        for variant in 0..4 {
            check_variant(runner, window, shape, index + 5 * variant, random.next());
        }
    }
}

/// A problem: `variant` chooses layout, space, types and factors.
pub fn check_variant(
    runner: &impl Runner,
    window: WindowShape,
    shape: (usize, usize, usize),
    variant: usize,
    seed: u64,
) {
    let padding = |bit: usize| if variant >> bit & 1 == 0 { Padding::Tight } else { Padding::Wide };
    let (alpha, beta) = [(1.0, 0.0), (0.5, -2.0), (1.0, 1.0), (-1.25, 0.0), (0.0, 0.75)][variant % 5];
    let case = Case {
        format: Format::Wcsr(window),
        shape,
        density: [0.02, 0.2, 0.5][variant % 3],
        b: Placement { layout: Layout::RowMajor, padding: padding(0) },
        c: Placement {
            layout: if variant >> 2 & 1 == 0 { Layout::RowMajor } else { Layout::ColumnMajor },
            padding: padding(1),
        },
        alpha,
        beta,
        seed,
        unit: Unit::TensorCore,
    };
    match variant % 4 {
        0 => check_case::<bf16, bf16>(runner, &case),
        1 => check_case::<bf16, f32>(runner, &case),
        2 => check_case::<f16, f16>(runner, &case),
        _ => check_case::<f16, f32>(runner, &case),
    }
}

/// Sums of column 0 have the same bits with one column and with many, whatever the others hold: NaN among them.
pub fn check_columns_apart(runner: &impl Runner, window: WindowShape, (num_rows, depth): (usize, usize)) {
    let mut random = Random::fresh();
    let a = SparseArrays::<bf16>::random(Format::Wcsr(window), num_rows, depth, 0.3, &mut random);
    let Sparse::Wcsr(a) = a.view() else { unreachable!("windows were asked for") };
    let placed = Placement { layout: Layout::RowMajor, padding: Padding::Tight };
    let column: Vec<bf16> = (0..depth).map(|_| random.element()).collect();
    let product = |num_cols: usize| {
        let mut b = Buffer::<bf16>::poisoned(depth, num_cols, placed);
        for (row, value) in column.iter().enumerate() {
            b.view_mut().set(row, 0, *value);
        }
        let mut c = Buffer::<f32>::poisoned(num_rows, num_cols, placed);
        runner.multiply((1.0, 0.0), a, b.view(), &mut c.view_mut()).expect("a product");
        (0..num_rows).map(|row| c.view().get(row, 0).to_bits()).collect::<Vec<_>>()
    };
    let alone = product(1);
    assert!(alone.iter().any(|bits| f32::from_bits(*bits) != 0.0));
    for num_cols in [2, 70, 130, 300] {
        assert_eq!(product(num_cols), alone, "with {num_cols} columns");
    }
}

/// Windows of rows in an order: each row of C has the bits that it has in the product of the matrix whose rows are permuted. Both
/// layouts of C, packed and by elements, every pair of types, C read and not.
pub fn check_orders(runner: &impl Runner, window: WindowShape, shape: (usize, usize, usize)) {
    let mut random = Random::fresh();
    for layout in [Layout::RowMajor, Layout::ColumnMajor] {
        for (padding, factors) in [(Padding::Tight, (1.0, 0.0)), (Padding::Wide, (0.5, -2.0))] {
            let placed = Placement { layout, padding };
            check_order::<bf16, bf16>(runner, window, shape, placed, factors, random.next());
            check_order::<f16, f32>(runner, window, shape, placed, factors, random.next());
        }
    }
    let placed = Placement { layout: Layout::RowMajor, padding: Padding::Tight };
    check_order::<bf16, f32>(runner, window, shape, placed, (1.0, 1.0), random.next());
    check_order::<f16, f16>(runner, window, shape, placed, (-1.25, 0.0), random.next());
}

fn check_order<T: Element, U: Element>(
    runner: &impl Runner,
    window: WindowShape,
    shape: (usize, usize, usize),
    placed: Placement,
    factors: (f64, f64),
    seed: u64,
) {
    let (num_rows, num_cols, depth) = shape;
    let mut random = Random::new(seed);
    let a = SparseArrays::<T>::random(Format::Csr, num_rows, depth, 0.2, &mut random);
    let order = random.row_order(num_rows);
    let in_rows = Placement { layout: Layout::RowMajor, padding: placed.padding };
    let b = Buffer::<T>::random(depth, num_cols, in_rows, &mut random);
    let mut c = match factors.1 {
        0.0 => Buffer::<U>::poisoned(num_rows, num_cols, placed),
        _ => Buffer::random(num_rows, num_cols, placed, &mut random),
    };
    let mut permuted = c.clone();
    for (place, &row) in order.rows().iter().enumerate() {
        for col in 0..num_cols {
            permuted.view_mut().set(place, col, c.view().get(row as usize, col));
        }
    }
    let case = format!("{window}, {shape:?}, {} -> {}, {placed:?}, {factors:?}, seed {seed}", T::DTYPE, U::DTYPE);
    let multiply = |a: &Wcsr<T>, c: &mut Buffer<U>| {
        runner
            .multiply(factors, a.view(), b.view(), &mut c.view_mut())
            .unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(c.padding_is_untouched(), "{case}: space between lines was written");
    };
    multiply(&a.permuted(window, &order), &mut permuted);
    multiply(&a.in_order(window, order.clone()), &mut c);
    for (place, &row) in order.rows().iter().enumerate() {
        for col in 0..num_cols {
            let (found, expected) = (c.view().get(row as usize, col), permuted.view().get(place, col));
            assert_eq!(
                bytemuck::bytes_of(&found),
                bytemuck::bytes_of(&expected),
                "{case}: row {row}, of place {place}, column {col}: {found:?}, not {expected:?}"
            );
        }
    }
}
