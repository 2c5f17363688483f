//! Products whose B and C reach over more than 2^32 elements, in the simulator: few lines, so far apart that no position fits 32 bits.
//!
//! What lies between the lines is reserved and never touched.

#![cfg(feature = "sim")]

mod suite;

use std::cell::Cell;
use std::marker::PhantomData;

use hopper_sparse::formats::{BlockShape, DenseView, DenseViewMut, Layout, WindowShape};
use hopper_sparse::ops::bcsr::{BcsrSpmm, Cluster};
use hopper_sparse::ops::csr::{CsrSpmm, RowRun, RowSharing, RowSplit, RunLength};
use hopper_sparse::ops::wcsr::WcsrSpmm;
use hopper_sparse::reference::naive::{self, Unit};
use hopper_sparse::sim::Simulated;
use hopper_sparse::{Element, Result, bf16, f16, reference};
use memmap2::{MmapMut, MmapOptions};
use suite::Format;
use suite::operands::{Random, Sparse, SparseArrays};
use suite::schedules::Schedules;
use suite::windows::SHAPES;

/// From line to line with many lines: the last of them lie beyond 2^31 and 2^32 elements.
const MANY: usize = (1 << 26) + 8;

/// From line to line with a few: each is beyond 2^32 elements from the one before.
const FEW: usize = (1 << 32) + 8;

/// How far line after line begins.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lines {
    /// At multiples of 16 bytes.
    Aligned,
    /// Wherever.
    Odd,
}

/// A dense matrix in pages of its own.
struct Far<T> {
    pages: MmapMut,
    num_rows: usize,
    num_cols: usize,
    leading_dimension: usize,
    layout: Layout,
    element: PhantomData<T>,
}

impl<T: Element> Far<T> {
    /// Zeros, which take no memory.
    fn new(num_rows: usize, num_cols: usize, layout: Layout, lines: Lines) -> Self {
        let (num_lines, line_len) = match layout {
            Layout::RowMajor => (num_rows, num_cols),
            Layout::ColumnMajor => (num_cols, num_rows),
        };
        let distance = if num_lines > 64 { MANY } else { FEW };
        let leading_dimension = distance + usize::from(lines == Lines::Odd);
        let reach = leading_dimension * (num_lines - 1) + line_len;
        assert!(reach > 1 << 32, "the last line is near");
        let pages = MmapOptions::new().len(reach * size_of::<T>()).no_reserve_swap().map_anon().expect("address space");
        Self { pages, num_rows, num_cols, leading_dimension, layout, element: PhantomData }
    }

    fn filled(mut self, mut element: impl FnMut() -> T) -> Self {
        for line in self.view_mut().lines_mut() {
            line.fill_with(&mut element);
        }
        self
    }

    fn view(&self) -> DenseView<'_, T> {
        let Self { num_rows, num_cols, leading_dimension, layout, .. } = *self;
        DenseView::try_new(bytemuck::cast_slice(&self.pages), num_rows, num_cols, leading_dimension, layout)
            .expect("the pages were made for this view")
    }

    fn view_mut(&mut self) -> DenseViewMut<'_, T> {
        let Self { num_rows, num_cols, leading_dimension, layout, .. } = *self;
        DenseViewMut::try_new(bytemuck::cast_slice_mut(&mut self.pages), num_rows, num_cols, leading_dimension, layout)
            .expect("the pages were made for this view")
    }
}

/// A problem.
#[derive(Clone, Copy, Debug)]
struct Problem {
    format: Format,
    /// M, N and K.
    shape: (usize, usize, usize),
    b: (Layout, Lines),
    c: (Layout, Lines),
    beta: f64,
    unit: Unit,
}

/// Runs a product in the simulator, and compares it with the reference.
fn check<T: Element, U: Element>(
    problem: Problem,
    simulate: impl Fn(&Simulated, Sparse<'_, T>, DenseView<'_, T>, f32, &mut DenseViewMut<'_, U>) -> Result<()>,
) {
    let (num_rows, _, depth) = problem.shape;
    let mut random = Random::fresh();
    let a = SparseArrays::<T>::random(problem.format, num_rows, depth, 0.3, &mut random);
    check_matrix(problem, a.view(), random, simulate);
}

/// The same with a matrix of the caller's.
fn check_matrix<T: Element, U: Element>(
    problem: Problem,
    a: Sparse<'_, T>,
    mut random: Random,
    simulate: impl Fn(&Simulated, Sparse<'_, T>, DenseView<'_, T>, f32, &mut DenseViewMut<'_, U>) -> Result<()>,
) {
    let Problem { shape: (num_rows, num_cols, depth), b, c, beta, unit, .. } = problem;
    let b = Far::<T>::new(depth, num_cols, b.0, b.1).filled(|| random.element());
    let c = Far::<U>::new(num_rows, num_cols, c.0, c.1);
    let mut c = c.filled(|| if beta == 0.0 { U::from_f64(f64::NAN) } else { random.element() });
    let exact = reference::spmm(1.0, &a, b.view(), beta, c.view()).expect("the shapes agree");
    let tolerance = naive::tolerance(unit, 1.0, &a, b.view(), beta, c.view(), &exact).expect("the shapes agree");

    let device = Schedules::any().device();
    simulate(&device, a, b.view(), beta as f32, &mut c.view_mut())
        .unwrap_or_else(|error| panic!("{} -> {}, {problem:?}: {error}", T::DTYPE, U::DTYPE));
    let report = device.report();
    assert!(report.findings.is_empty(), "{} -> {}, {problem:?}, {:?}: {report}", T::DTYPE, U::DTYPE, device.schedule());
    let verdict = tolerance.judge(&exact.compare(c.view()).expect("the shapes agree"));
    assert!(verdict.is_accepted(), "{} -> {}, {problem:?}: {verdict}", T::DTYPE, U::DTYPE);
}

const LAYOUTS: [Layout; 2] = [Layout::RowMajor, Layout::ColumnMajor];

/// By the WCSR kernels, with so many multiprocessors.
fn check_windows<T: Element, U: Element>(window: WindowShape, multiprocessors: u32, problem: Problem) -> usize {
    let splits = Cell::new(0);
    check::<T, U>(Problem { format: Format::Wcsr(window), ..problem }, |device, a, b, beta, c| {
        simulate_windows(device, multiprocessors, &splits, a, b, beta, c)
    });
    splits.get()
}

/// The same with the rows in any order.
fn check_ordered_windows<T: Element, U: Element>(window: WindowShape, multiprocessors: u32, problem: Problem) -> usize {
    let (splits, mut random) = (Cell::new(0), Random::fresh());
    let (num_rows, _, depth) = problem.shape;
    let a = SparseArrays::<T>::random(Format::Csr, num_rows, depth, 0.3, &mut random);
    let a = a.in_order(window, random.row_order(num_rows));
    let problem = Problem { format: Format::Wcsr(window), ..problem };
    check_matrix::<T, U>(problem, Sparse::Wcsr(a.view()), random, |device, a, b, beta, c| {
        simulate_windows(device, multiprocessors, &splits, a, b, beta, c)
    });
    splits.get()
}

fn simulate_windows<T: Element, U: Element>(
    device: &Simulated,
    multiprocessors: u32,
    splits: &Cell<usize>,
    a: Sparse<'_, T>,
    b: DenseView<'_, T>,
    beta: f32,
    c: &mut DenseViewMut<'_, U>,
) -> Result<()> {
    let Sparse::Wcsr(a) = a else { unreachable!("windows were asked for") };
    let plan = WcsrSpmm::new(&a, b.num_cols(), U::DTYPE, b.layout(), c.layout()).plan(&a, multiprocessors)?;
    splits.set(plan.num_splits());
    plan.simulate(device, &a, 1.0, b, beta, c)?;
    Ok(())
}

/// B is read where it is: tensor copies of groups want lines of whole chunks.
#[test]
fn windows() {
    for window in SHAPES {
        for layout in LAYOUTS {
            let problem = Problem {
                format: Format::Wcsr(window),
                shape: (130, 128, 70),
                b: (Layout::RowMajor, Lines::Aligned),
                c: (layout, Lines::Aligned),
                beta: 0.0,
                unit: Unit::TensorCore,
            };
            check_windows::<bf16, bf16>(window, 1, problem);
            // A handful of lines of each.
            let few = Problem { shape: (5, 64, 6), ..problem };
            check_windows::<f16, f32>(window, 1, if layout == Layout::RowMajor { few } else { problem });
            let odd = Problem { c: (layout, Lines::Odd), beta: -0.5, ..problem };
            check_windows::<f16, f16>(window, 1, odd);
        }
    }
}

/// The kernels that add up parts store, too.
#[test]
fn windows_that_are_split() {
    for window in [WindowShape { rows: 128, group: 8 }, WindowShape { rows: 16, group: 1 }] {
        for layout in LAYOUTS {
            let problem = Problem {
                format: Format::Wcsr(window),
                shape: (70, 72, 1300),
                b: (Layout::RowMajor, Lines::Aligned),
                c: (layout, Lines::Aligned),
                beta: 0.0,
                unit: Unit::TensorCore,
            };
            let problem = Problem { shape: (70, 128, 1300), ..problem };
            assert!(check_windows::<bf16, bf16>(window, 40, problem) > 0, "nothing was split");
            assert!(check_windows::<bf16, f32>(window, 40, Problem { beta: 1.0, ..problem }) > 0, "nothing was split");
        }
    }
}

/// Rows whose places in C an order names.
#[test]
fn windows_of_rows_in_an_order() {
    for window in [WindowShape { rows: 64, group: 8 }, WindowShape { rows: 8, group: 1 }] {
        for layout in LAYOUTS {
            let problem = Problem {
                format: Format::Wcsr(window),
                shape: (72, 128, 70),
                b: (Layout::RowMajor, Lines::Aligned),
                c: (layout, Lines::Aligned),
                beta: 0.0,
                unit: Unit::TensorCore,
            };
            check_ordered_windows::<bf16, bf16>(window, 1, problem);
            check_ordered_windows::<f16, f32>(window, 1, problem);
            check_ordered_windows::<f16, f16>(window, 1, Problem { c: (layout, Lines::Odd), beta: -0.5, ..problem });
            let wide = Problem { shape: (72, 128, 1300), ..problem };
            assert!(check_ordered_windows::<bf16, f32>(window, 40, wide) > 0, "nothing was split");
        }
    }
}

/// By the CSR kernels, long rows in parts, the others one by one and in runs.
fn check_entries<T: Element, U: Element>(problem: Problem) {
    let runs = RowRun::Rows(RunLength::of_log2(2).expect("a length of runs"));
    [RowRun::Single, runs].into_iter().for_each(|run| check_rows::<T, U>(problem, run));
}

fn check_rows<T: Element, U: Element>(problem: Problem, run: RowRun) {
    check::<T, U>(problem, |device, a, b, beta, c| {
        let Sparse::Csr(a) = a else { unreachable!("entries were asked for") };
        let split = RowSplit::after_log2(4).expect("a length of parts");
        let problem = CsrSpmm::new(&a, b.num_cols(), U::DTYPE, b.layout(), c.layout());
        let plan = problem.plan_with(&a, RowSharing { split, run, ..RowSharing::default() })?;
        plan.simulate(device, &a, 1.0, b, beta, c)?;
        Ok(())
    });
}

#[test]
fn entries() {
    for b in LAYOUTS {
        for c in LAYOUTS {
            for (shape, lines, beta) in [
                ((70, 72, 66), Lines::Aligned, 0.0),
                ((70, 67, 66), Lines::Odd, 0.5),
                ((6, 4, 40), Lines::Aligned, 0.0),
            ] {
                let problem =
                    Problem { format: Format::Csr, shape, b: (b, lines), c: (c, lines), beta, unit: Unit::Core };
                check_entries::<bf16, bf16>(problem);
                check_entries::<f16, f32>(problem);
                check_entries::<f32, f32>(problem);
            }
        }
    }
}

/// By the BCSR kernels.
fn check_blocks<T: Element, U: Element>(cluster: Cluster, problem: Problem) {
    check::<T, U>(problem, |device, a, b, beta, c| {
        let Sparse::Bcsr(a) = a else { unreachable!("blocks were asked for") };
        let plan = BcsrSpmm::new(&a, b.num_cols(), U::DTYPE, b.layout(), c.layout()).plan_with(&a, 2, cluster)?;
        plan.simulate(device, &a, 1.0, b, beta, c)?;
        Ok(())
    });
}

#[test]
fn blocks() {
    for (rows, cols, cluster) in [(128, 64, Cluster::One), (128, 64, Cluster::Two), (64, 16, Cluster::One)] {
        for b in LAYOUTS {
            for c in LAYOUTS {
                let problem = Problem {
                    format: Format::Bcsr(BlockShape { rows, cols }),
                    shape: (136, 72, 70),
                    b: (b, Lines::Aligned),
                    c: (c, Lines::Aligned),
                    beta: 0.0,
                    unit: Unit::TensorCore,
                };
                check_blocks::<bf16, bf16>(cluster, problem);
                check_blocks::<f16, f32>(cluster, Problem { shape: (5, 6, 7), ..problem });
                check_blocks::<f16, f16>(cluster, Problem { c: (c, Lines::Odd), beta: 1.0, ..problem });
            }
        }
    }
}
