//! The GPU kernels against the reference, in the simulator: every kernel, on small shapes, in many orders of events.
//!
//! `HOPPER_SIM_SEEDS=n` runs each kernel with `n` seeds of every mode.

#![cfg(feature = "sim")]

mod suite;

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use hopper_sparse::formats::{BcsrView, BlockShape, CsrView, DenseView, DenseViewMut, Layout};
use hopper_sparse::ops::bcsr::{BcsrSpmm, Cluster};
use hopper_sparse::ops::csr::{CsrSpmm, RowSharing};
use hopper_sparse::reference::naive::Unit;
use hopper_sparse::sim::{Mode, Schedule, Simulated};
use hopper_sparse::{Element, Result, bf16, f16};
use kernels_gpu::bcsr::{BLayout, CONFIGURATIONS, Configuration, Dtype};
use suite::operands::{Buffer, Padding, Random, Sparse, SparseArrays};
use suite::products::{self, Runner};
use suite::schedules::Schedules;
use suite::{Case, Format, Placement, Specials, csr_rows};

/// So few that each works on several tiles.
const MULTIPROCESSORS: u32 = 2;

/// Runs a product in the simulator, and fails on any finding.
struct InSimulator {
    schedules: Schedules,
    /// Schedules under which a product of blocks must give the same bits once more.
    others: Vec<Schedule>,
    /// The kernel that must be chosen, where it matters.
    kernel: Option<&'static str>,
    multiprocessors: u32,
}

impl InSimulator {
    /// All modes in turn, from a fresh seed on.
    fn of_any_schedule() -> Self {
        Self { schedules: Schedules::any(), others: Vec::new(), kernel: None, multiprocessors: MULTIPROCESSORS }
    }

    #[track_caller]
    fn check(device: &Simulated) {
        let report = device.report();
        assert!(report.findings.is_empty(), "{:?}: {report}", device.schedule());
    }
}

impl Runner for InSimulator {
    fn multiply_bcsr<T: Element, U: Element>(
        &self,
        cluster: Cluster,
        (alpha, beta): (f64, f64),
        a: BcsrView<'_, T>,
        b: DenseView<'_, T>,
        c: &mut DenseViewMut<'_, U>,
    ) -> Result<()> {
        let problem = BcsrSpmm::new(&a, b.num_cols(), U::DTYPE, b.layout(), c.layout());
        // A worker is a cluster: as many of these.
        let multiprocessors = if cluster == Cluster::Two { 2 * self.multiprocessors } else { self.multiprocessors };
        let plan = problem.plan_with(&a, multiprocessors, cluster)?;
        if let Some(kernel) = self.kernel {
            assert_eq!(plan.configuration().spec.name, kernel, "the plan is for another kernel");
        }
        let (before, shape) = (c.data_mut().to_vec(), c.as_view());
        let (rows, cols, leading, layout) =
            (shape.num_rows(), shape.num_cols(), shape.leading_dimension(), shape.layout());
        let device = self.schedules.device();
        plan.simulate(&device, &a, alpha as f32, b, beta as f32, c)?;
        Self::check(&device);
        for schedule in &self.others {
            let mut again = before.clone();
            let mut view = DenseViewMut::try_new(&mut again, rows, cols, leading, layout)?;
            let device = Simulated::new(*schedule);
            plan.simulate(&device, &a, alpha as f32, b, beta as f32, &mut view)?;
            Self::check(&device);
            let bytes = |elements: &[U]| bytemuck::cast_slice::<U, u8>(elements).to_vec();
            assert_eq!(bytes(&again), bytes(c.data_mut()), "{schedule:?}: other bits");
        }
        Ok(())
    }

    fn multiply_csr<T: Element, U: Element>(
        &self,
        sharing: RowSharing,
        (alpha, beta): (f64, f64),
        a: CsrView<'_, T>,
        b: DenseView<'_, T>,
        c: &mut DenseViewMut<'_, U>,
    ) -> Result<()> {
        let plan = CsrSpmm::new(&a, b.num_cols(), U::DTYPE, b.layout(), c.layout()).plan_with(&a, sharing)?;
        let device = self.schedules.device();
        plan.simulate(&device, &a, alpha as f32, b, beta as f32, c)?;
        Self::check(&device);
        Ok(())
    }
}

/// A problem for one kernel: row blocks of which one is full, one empty and the last ragged, and two panels, so that
/// persistent tiles follow one another. The variants have every epilogue, and B where it must be copied first.
fn case_for(kernel: &Configuration, variant: usize, seed: u64, (row_blocks, stages): (usize, usize)) -> Case {
    let cluster = kernel.spec.cluster as usize;
    let layout = |row: bool| if row { Layout::RowMajor } else { Layout::ColumnMajor };
    let padding = |wide: bool| if wide { Padding::Wide } else { Padding::Tight };
    let block = BlockShape { rows: kernel.block_rows, cols: kernel.block_cols };
    // The fast epilogues want whole eights.
    let ragged = [0, 0, 3, 5][variant % 4];
    Case {
        format: Format::Bcsr(block),
        shape: (
            row_blocks * kernel.block_rows + 40 - ragged,
            (2 * cluster - 1) * kernel.tile_n + 8 + ragged,
            stages * 64 + 8,
        ),
        density: 0.4,
        b: Placement { layout: layout(kernel.b_layout == BLayout::Row), padding: padding(variant % 3 == 2) },
        c: Placement { layout: layout(variant.is_multiple_of(2)), padding: padding(variant % 5 == 4) },
        alpha: [1.0, -1.25][variant / 2 % 2],
        beta: [0.0, 0.0, 0.0, 0.5][variant / 4 % 4],
        seed,
        unit: Unit::TensorCore,
    }
}

/// Schedules that each have a problem of their own.
const FIRST: usize = 32;

/// Problems that all further schedules share. Modes come in turn and there are five: no problem meets one mode only.
const SHARED: usize = 4;

/// Runs a kernel in some schedules; the variants of the problem go on from `variant`.
fn check_kernel(kernel: &'static Configuration, schedules: impl Iterator<Item = Schedule>, variant: usize) {
    let schedules: Vec<_> = schedules.collect();
    let (first, others) = schedules.split_at(schedules.len().min(FIRST));
    // Two workers, and so many stages that the ring wraps in each.
    for (index, schedule) in first.iter().enumerate() {
        check_problem(kernel, vec![*schedule], variant + index, (4, 5), MULTIPROCESSORS);
    }
    // One worker with about as many stages.
    for index in 0..SHARED {
        let schedules: Vec<_> = others.iter().copied().skip(index).step_by(SHARED).collect();
        if !schedules.is_empty() {
            check_problem(kernel, schedules, variant + 3 * index, (2, 3), 1);
        }
    }
}

fn check_problem(
    kernel: &'static Configuration,
    mut schedules: Vec<Schedule>,
    variant: usize,
    size: (usize, usize),
    multiprocessors: u32,
) {
    let cluster = if kernel.spec.cluster == 2 { Cluster::Two } else { Cluster::One };
    let first = Schedules::from(schedules.remove(0));
    let runner = InSimulator { schedules: first, others: schedules, kernel: Some(kernel.spec.name), multiprocessors };
    let case = case_for(kernel, variant, Random::fresh().next(), size);
    let float = variant % 7 >= 5;
    match (kernel.dtype, float) {
        (Dtype::Bf16, false) => products::check_case::<bf16, bf16>(&runner, &case, Specials::None, cluster),
        (Dtype::Bf16, true) => products::check_case::<bf16, f32>(&runner, &case, Specials::None, cluster),
        (Dtype::F16, false) => products::check_case::<f16, f16>(&runner, &case, Specials::None, cluster),
        (Dtype::F16, true) => products::check_case::<f16, f32>(&runner, &case, Specials::None, cluster),
    }
}

fn check_kernels(of: impl Fn(&Configuration) -> bool) {
    let kernels: Vec<_> = CONFIGURATIONS.iter().enumerate().filter(|(_, kernel)| of(kernel)).collect();
    assert!(!kernels.is_empty());
    let schedules = Schedule::all(1);
    // A thread takes the next kernel: with many seeds each takes minutes.
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                while let Some((index, kernel)) = kernels.get(next.fetch_add(1, Ordering::Relaxed)) {
                    check_kernel(kernel, schedules.clone(), 5 * index);
                    println!("{}: {} runs, no finding", kernel.spec.name, schedules.clone().count());
                }
            });
        }
    });
}

#[test]
fn every_bcsr_kernel_with_bf16_and_128_rows() {
    check_kernels(|kernel| kernel.dtype == Dtype::Bf16 && kernel.block_rows == 128);
}

#[test]
fn every_bcsr_kernel_with_bf16_and_64_rows() {
    check_kernels(|kernel| kernel.dtype == Dtype::Bf16 && kernel.block_rows == 64);
}

#[test]
fn every_bcsr_kernel_with_f16_and_128_rows() {
    check_kernels(|kernel| kernel.dtype == Dtype::F16 && kernel.block_rows == 128);
}

#[test]
fn every_bcsr_kernel_with_f16_and_64_rows() {
    check_kernels(|kernel| kernel.dtype == Dtype::F16 && kernel.block_rows == 64);
}

/// Every variant of the problem, by one kernel with a cluster and one without.
#[test]
fn every_epilogue() {
    for name in ["bcsr_bf16_128x64_row_n256_c2", "bcsr_f16_64x32_col_n128"] {
        let kernel = CONFIGURATIONS.iter().find(|kernel| kernel.spec.name == name).expect("a kernel of this name");
        let seed = Random::fresh().next();
        let schedules = (0..32).map(|index| Schedule::new(Mode::ALL[index % Mode::ALL.len()], seed ^ index as u64));
        check_kernel(kernel, schedules, 0);
    }
}

/// The suite of the CPU backend and of the GPU: nothing, one, less and more than a tile, every layout.
#[test]
fn the_suite_of_blocks() {
    let runner = InSimulator::of_any_schedule();
    products::check_bcsr::<bf16, bf16>(&runner, BlockShape { rows: 128, cols: 64 }, Cluster::Auto);
    products::check_bcsr::<f16, f32>(&runner, BlockShape { rows: 64, cols: 128 }, Cluster::Auto);
}

#[test]
fn every_csr_kernel_and_width() {
    products::check_csr_widths(&InSimulator::of_any_schedule(), (19, 40));
}

/// Checks by a runner whose first launch has each mode in turn: so every product of a check meets every mode.
fn in_every_mode(check: impl Fn(&InSimulator)) {
    for mode in Mode::ALL {
        let schedules = Schedules::from(Schedule::new(mode, Random::fresh().next()));
        check(&InSimulator { schedules, ..InSimulator::of_any_schedule() });
    }
}

/// Long rows in parts, in both orders.
#[test]
fn rows_in_runs() {
    in_every_mode(csr_rows::check_runs);
}

#[test]
fn csr_long_rows() {
    in_every_mode(csr_rows::check_long_rows);
}

#[test]
fn csr_rows_of_note() {
    in_every_mode(csr_rows::check_rows_of_note);
}

#[test]
fn csr_bits_depend_on_the_row_and_the_column() {
    in_every_mode(csr_rows::check_bits_of_rows);
}

/// The lists of a plan are of the lengths of rows: another matrix of as many entries is refused where its long rows differ.
#[test]
fn csr_plans_are_of_their_long_rows() {
    let (mut random, placed) = (Random::fresh(), Placement { layout: Layout::RowMajor, padding: Padding::Tight });
    let mut rows = |lengths: [usize; 3]| csr_rows::Rows::<f32>::of_lengths(&lengths, 400, &mut random);
    let (planned, alike, other) = (rows([300, 2, 9]), rows([300, 9, 2]), rows([2, 300, 9]));
    let b = Buffer::<f32>::random(400, 4, placed, &mut Random::fresh());
    let problem = CsrSpmm::new(&planned.view(), 4, f32::DTYPE, Layout::RowMajor, Layout::RowMajor);
    let plan = problem.plan(&planned.view()).expect("a plan");
    let run = |a: CsrView<'_, f32>| {
        let mut c = Buffer::<f32>::poisoned(3, 4, placed);
        plan.simulate(&Simulated::new(Schedule::new(Mode::Fair, 0)), &a, 1.0, b.view(), 0.0, &mut c.view_mut())
    };
    run(planned.view()).expect("a launch").assert_clean();
    run(alike.view()).expect("a launch").assert_clean();
    assert!(run(other.view()).is_err());
}

/// Both layouts of B and C, with and without space between lines.
#[test]
fn every_csr_kernel_and_layout() {
    let runner = InSimulator::of_any_schedule();
    let mut random = Random::fresh();
    for (index, shape) in
        [(1, 1, 1), (5, 3, 0), (0, 5, 3), (7, 33, 50), (40, 17, 33), (130, 3, 9)].into_iter().enumerate()
    {
        for placement in 0..16 {
            let placed = |bits: usize| Placement {
                layout: if bits & 1 == 0 { Layout::RowMajor } else { Layout::ColumnMajor },
                padding: if bits & 2 == 0 { Padding::Tight } else { Padding::Wide },
            };
            let (alpha, beta) = [(1.0, 0.0), (0.5, -2.0), (0.0, 0.75)][(index + placement) % 3];
            let case = Case {
                format: Format::Csr,
                shape,
                density: 0.3,
                b: placed(placement),
                c: placed(placement >> 2),
                alpha,
                beta,
                seed: random.next(),
                unit: Unit::Core,
            };
            match placement % 5 {
                0 => products::check_case::<bf16, bf16>(&runner, &case, Specials::None, Cluster::Auto),
                1 => products::check_case::<bf16, f32>(&runner, &case, Specials::None, Cluster::Auto),
                2 => products::check_case::<f16, f16>(&runner, &case, Specials::None, Cluster::Auto),
                3 => products::check_case::<f16, f32>(&runner, &case, Specials::None, Cluster::Auto),
                _ => products::check_case::<f32, f32>(&runner, &case, Specials::None, Cluster::Auto),
            }
        }
    }
}

/// 512 x 512 x 512 with at least a tenth of the blocks takes less than 5 s on two cores.
#[test]
#[cfg_attr(debug_assertions, ignore = "measures a release build")]
fn a_bcsr_kernel_is_quick() {
    let block = BlockShape { rows: 128, cols: 64 };
    let placed = Placement { layout: Layout::RowMajor, padding: Padding::Tight };
    let mut random = Random::fresh();
    let a = SparseArrays::<bf16>::random(Format::Bcsr(block), 512, 512, 0.1, &mut random);
    let Sparse::Bcsr(a) = a.view() else { unreachable!("blocks were asked for") };
    let b = Buffer::<bf16>::random(512, 512, placed, &mut random);
    let mut c = Buffer::<bf16>::poisoned(512, 512, placed);
    let problem = BcsrSpmm::new(&a, 512, bf16::DTYPE, Layout::RowMajor, Layout::RowMajor);
    let plan = problem.plan(&a, 132).expect("a plan");
    for mode in Mode::ALL {
        let device = Simulated::new(Schedule::new(mode, random.next()));
        let start = Instant::now();
        let report = plan.simulate(&device, &a, 1.0, b.view(), 0.0, &mut c.view_mut()).expect("a launch");
        let seconds = start.elapsed().as_secs_f64();
        report.assert_clean();
        println!(
            "{plan}\n{mode:?}: {} blocks of 32, {} instructions, {seconds:.2} s",
            a.num_blocks(),
            report.num_instructions
        );
        assert!(seconds < 5.0, "{seconds} s");
    }
}
