//! One suite for every implementation of C = alpha A B + beta C.
//!
//! An implementation is a closure over views; [`check`] puts it through every shape, layout and factor for one pair of
//! element types. Results are poisoned before each run, the seed is fresh and stands in each failure's message.

#![allow(dead_code, reason = "each test program uses a part of the suite")]

pub mod attention;
pub mod attention_blocks;
pub mod cache;
pub mod csr_rows;
pub mod heads;
pub mod isolation;
pub mod linear;
pub mod one_query;
pub mod operands;
pub mod products;
#[cfg(feature = "sim")]
pub mod schedules;
pub mod windows;

use hopper_sparse::formats::{BlockShape, DenseView, DenseViewMut, Layout, WindowShape};
use hopper_sparse::reference::naive::Unit;
use hopper_sparse::{Element, Result, reference};
use operands::{Buffer, Padding, Random, Sparse, SparseArrays};

/// The format of A.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    Csr,
    Bcsr(BlockShape),
    Wcsr(WindowShape),
}

/// How one of the dense matrices lies in memory.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    pub layout: Layout,
    pub padding: Padding,
}

/// One problem. Its `Debug` form and the seed say all that is needed to see a failure again.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub format: Format,
    /// M, N and K.
    pub shape: (usize, usize, usize),
    /// Stored blocks or entries over all, except in rows that are empty or full on purpose.
    pub density: f64,
    pub b: Placement,
    pub c: Placement,
    pub alpha: f64,
    pub beta: f64,
    pub seed: u64,
    /// Whose error is the yardstick.
    pub unit: Unit,
}

/// Whether A and B hold NaN and infinity here and there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Specials {
    None,
    Some,
}

/// (M, N, K): nothing, one, less and more than a block or a tile, ragged.
const SHAPES: [(usize, usize, usize); 14] = [
    (0, 0, 0),
    (0, 5, 3),
    (5, 0, 3),
    (5, 3, 0),
    (1, 1, 1),
    (1, 7, 200),
    (200, 1, 64),
    (3, 300, 5),
    (64, 64, 64),
    (65, 17, 33),
    (128, 128, 128),
    (130, 129, 257),
    (97, 200, 70),
    (256, 8, 100),
];

/// (alpha, beta), exact in every type.
const FACTORS: [(f64, f64); 6] = [(1.0, 0.0), (0.5, -2.0), (1.0, 1.0), (-1.25, 0.0), (0.0, 0.75), (0.0, 0.0)];

/// Puts an implementation through the suite.
pub fn check<T: Element, U: Element>(
    format: Format,
    unit: Unit,
    multiply: impl Fn(f64, Sparse<'_, T>, DenseView<'_, T>, f64, &mut DenseViewMut<'_, U>) -> Result<()>,
) {
    let mut random = Random::fresh();
    let mut factors = FACTORS.iter().cycle();
    for shape in SHAPES {
        for (b, c) in placements() {
            let &(alpha, beta) = factors.next().expect("a cycle has no end");
            let density = [0.02, 0.1, 0.5][random.below(3)];
            let case = Case { format, shape, density, b, c, alpha, beta, seed: random.next(), unit };
            check_case(&case, Specials::None, &multiply);
        }
        for specials in [Specials::None, Specials::Some] {
            let tight = Placement { layout: Layout::RowMajor, padding: Padding::Tight };
            let case = Case {
                format,
                shape,
                density: 0.2,
                b: tight,
                c: tight,
                alpha: 1.0,
                beta: f64::from(u8::from(random.below(2) == 1)),
                seed: random.next(),
                unit,
            };
            check_case(&case, specials, &multiply);
        }
    }
}

/// Every layout of B and C, with and without space between lines. There are 16, no multiple of the number of factors,
/// so over the shapes each meets each.
fn placements() -> impl Iterator<Item = (Placement, Placement)> {
    let one = || {
        [Layout::RowMajor, Layout::ColumnMajor].into_iter().flat_map(|layout| {
            [Padding::Tight, Padding::Wide].into_iter().map(move |padding| Placement { layout, padding })
        })
    };
    one().flat_map(move |b| one().map(move |c| (b, c)))
}

/// Runs one problem and compares it with the reference.
pub fn check_case<T: Element, U: Element>(
    case: &Case,
    specials: Specials,
    multiply: &impl Fn(f64, Sparse<'_, T>, DenseView<'_, T>, f64, &mut DenseViewMut<'_, U>) -> Result<()>,
) {
    let (num_rows, num_cols, depth) = case.shape;
    let mut random = Random::new(case.seed);
    let mut a = SparseArrays::<T>::random(case.format, num_rows, depth, case.density, &mut random);
    let mut b = Buffer::<T>::random(depth, num_cols, case.b, &mut random);
    let mut c = match case.beta {
        0.0 => Buffer::<U>::poisoned(num_rows, num_cols, case.c),
        _ => Buffer::<U>::random(num_rows, num_cols, case.c, &mut random),
    };
    if specials == Specials::Some {
        a.add_specials(&mut random);
        b.add_specials(&mut random);
    }
    let (alpha, beta) = (case.alpha, case.beta);
    let exact = reference::spmm(alpha, &a.view(), b.view(), beta, c.view()).expect("the shapes agree");
    let tolerance = reference::naive::tolerance(case.unit, alpha, &a.view(), b.view(), beta, c.view(), &exact)
        .expect("the shapes agree");

    multiply(alpha, a.view(), b.view(), beta, &mut c.view_mut())
        .unwrap_or_else(|error| panic!("{} -> {}, {case:?}: {error}", T::DTYPE, U::DTYPE));

    let report = exact.compare(c.view()).expect("the shapes agree");
    let verdict = tolerance.judge(&report);
    assert!(verdict.is_accepted(), "{} -> {}, {case:?}, specials {specials:?}: {verdict}", T::DTYPE, U::DTYPE);
    assert!(c.padding_is_untouched(), "{} -> {}, {case:?}: memory between lines of C changed", T::DTYPE, U::DTYPE);
}
