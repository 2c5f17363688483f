//! The CPU backend against the reference.

mod suite;

use hopper_sparse::formats::{Axis, BlockShape, Dense, DenseView, DenseViewMut, Layout};
use hopper_sparse::ops::{Operand, PlanError};
use hopper_sparse::reference::naive::Unit;
use hopper_sparse::{Element, Error, Result, bf16, cpu, f16};
use suite::operands::{Buffer, Padding, Random, Sparse, SparseArrays};
use suite::{Case, Format, Placement};

fn multiply<T: Element, U: Element>(
    alpha: f64,
    a: Sparse<'_, T>,
    b: DenseView<'_, T>,
    beta: f64,
    c: &mut DenseViewMut<'_, U>,
) -> Result<()> {
    match a {
        Sparse::Csr(a) => cpu::spmm_csr(alpha, a, b, beta, c),
        Sparse::Wcsr(_) => unreachable!("the CPU multiplies no windows"),
        Sparse::Bcsr(a) => cpu::spmm_bcsr(alpha, a, b, beta, c),
    }
}

const FORMATS: [Format; 4] = [
    Format::Csr,
    Format::Bcsr(BlockShape { rows: 64, cols: 16 }),
    Format::Bcsr(BlockShape { rows: 64, cols: 64 }),
    Format::Bcsr(BlockShape { rows: 128, cols: 32 }),
];

fn check_formats<T: Element, U: Element>() {
    for format in FORMATS {
        suite::check::<T, U>(format, Unit::Core, multiply);
    }
}

#[test]
fn bf16_is_right() {
    check_formats::<bf16, bf16>();
    check_formats::<bf16, f32>();
}

#[test]
fn f16_is_right() {
    check_formats::<f16, f16>();
    check_formats::<f16, f32>();
}

#[test]
fn f32_is_right() {
    check_formats::<f32, f32>();
}

#[test]
fn f64_is_right() {
    check_formats::<f64, f64>();
    check_formats::<f64, f32>();
}

#[test]
fn long_rows_are_right() {
    let placement = Placement { layout: Layout::RowMajor, padding: Padding::Tight };
    for format in FORMATS {
        let case = Case {
            format,
            shape: (7, 600, 3000),
            density: 0.3,
            b: placement,
            c: placement,
            alpha: 1.0,
            beta: 0.0,
            seed: Random::fresh().next(),
            unit: Unit::Core,
        };
        suite::check_case::<bf16, f32>(&case, suite::Specials::None, &multiply);
        suite::check_case::<f32, f32>(&case, suite::Specials::None, &multiply);
    }
}

/// Enough work for several threads, with rows of very different lengths.
fn bits_with_threads<T: Element>(format: Format, layout: Layout, num_threads: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let placement = Placement { layout, padding: Padding::Wide };
    let a = SparseArrays::<T>::random(format, 700, 500, 0.05, &mut random);
    let b = Buffer::<T>::random(500, 133, placement, &mut random);
    let mut c = Dense::<T>::zeros(700, 133, layout);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads).build().expect("a pool of a few threads");
    pool.install(|| multiply(1.5, a.view(), b.view(), 0.0, &mut c.view_mut())).expect("the shapes agree");
    c.data().iter().map(|element| element.to_f64().to_bits()).collect()
}

#[test]
fn the_same_bits_whatever_the_number_of_threads() {
    let seed = Random::fresh().next();
    for format in FORMATS {
        for layout in [Layout::RowMajor, Layout::ColumnMajor] {
            let one = bits_with_threads::<f32>(format, layout, 1, seed);
            let halves = bits_with_threads::<bf16>(format, layout, 1, seed);
            assert!(one.iter().any(|&bits| bits != 0));
            for num_threads in [2, 3] {
                assert_eq!(one, bits_with_threads::<f32>(format, layout, num_threads, seed), "seed {seed}, {format:?}");
                assert_eq!(
                    halves,
                    bits_with_threads::<bf16>(format, layout, num_threads, seed),
                    "seed {seed}, {format:?}"
                );
            }
        }
    }
}

/// What a 2 x 3 matrix says to B and C of the given shapes, in both formats.
fn refusals(b: (usize, usize), c: (usize, usize)) -> Vec<PlanError> {
    let mut found = vec![];
    for format in FORMATS {
        let a = SparseArrays::<f32>::random(format, 2, 3, 1.0, &mut Random::new(1));
        let b = Dense::zeros(b.0, b.1, Layout::RowMajor);
        let mut c = Dense::<f32>::zeros(c.0, c.1, Layout::ColumnMajor);
        match multiply(1.0, a.view(), b.view(), 0.0, &mut c.view_mut()) {
            Err(Error::Plan(error)) => found.push(error),
            other => panic!("{other:?} is not a refusal of the shapes"),
        }
    }
    found
}

#[test]
fn shapes_that_do_not_agree_are_refused() {
    let refused = |operand, axis, expected, found, other, other_axis| {
        vec![PlanError::ShapeMismatch { operand, axis, expected, found, other, other_axis }; FORMATS.len()]
    };
    let (row, column) = (Axis::Row, Axis::Column);
    assert_eq!(refusals((4, 5), (2, 5)), refused(Operand::B, row, 3, 4, Operand::A, column));
    assert_eq!(refusals((3, 5), (3, 5)), refused(Operand::C, row, 2, 3, Operand::A, row));
    assert_eq!(refusals((3, 5), (2, 6)), refused(Operand::C, column, 5, 6, Operand::B, column));
}

/// The suite itself must see the faults it is there for.
mod the_suite_refuses {
    use super::*;

    #[test]
    #[should_panic(expected = "wrong: ")]
    fn a_result_that_is_not_written() {
        suite::check::<f32, f32>(Format::Csr, Unit::Core, |_, _, _, _, _| Ok(()));
    }

    #[test]
    #[should_panic(expected = "wrong: ")]
    fn a_result_that_was_rounded_on_the_way() {
        suite::check::<f32, f32>(Format::Csr, Unit::Core, |alpha, a, b, beta, c| {
            multiply(alpha, a, b, beta, c)?;
            for line in c.lines_mut() {
                line.iter_mut().for_each(|element| *element = bf16::from_f32(*element).to_f32());
            }
            Ok(())
        });
    }

    #[test]
    #[should_panic(expected = "wrong: ")]
    fn beta_zero_that_reads_c() {
        suite::check::<f32, f32>(Format::Csr, Unit::Core, |alpha, a, b, beta, c| {
            let old = c.as_view().to_dense(c.layout());
            multiply(alpha, a, b, beta, c)?;
            for i in 0..c.num_rows() {
                for j in 0..c.num_cols() {
                    c.set(i, j, c.get(i, j) + 0.0 * old.get(i, j));
                }
            }
            Ok(())
        });
    }

    #[test]
    #[should_panic(expected = "memory between lines of C changed")]
    fn writes_between_lines() {
        suite::check::<f32, f32>(Format::Csr, Unit::Core, |alpha, a, b, beta, c| {
            multiply(alpha, a, b, beta, c)?;
            let line_len = match c.layout() {
                Layout::RowMajor => c.num_cols(),
                Layout::ColumnMajor => c.num_rows(),
            };
            if c.leading_dimension() > line_len && !c.data_mut().is_empty() {
                c.data_mut()[line_len] = 0.0;
            }
            Ok(())
        });
    }
}
