//! The WCSR kernels against the reference, in the simulator: every kernel, on small shapes, in many orders of events.
//!
//! `HOPPER_SIM_SEEDS=n` runs each kernel with `n` seeds of every mode.

#![cfg(feature = "sim")]

mod suite;

use std::cell::Cell;

use hopper_sparse::formats::{DenseView, DenseViewMut, WcsrView, WindowShape};
use hopper_sparse::ops::wcsr::{TileWidth, WcsrSpmm};
use hopper_sparse::sim::{Mode, Schedule};
use hopper_sparse::{Element, Result};
use kernels_gpu::wcsr::{CONFIGURATIONS, Configuration, Dtype};
use suite::operands::Random;
use suite::schedules::Schedules;
use suite::windows::{self, Runner, SHAPES};

/// Runs a product in the simulator, and fails on any finding.
struct InSimulator {
    schedules: Schedules,
    /// The kernel that must be chosen, where it matters.
    kernel: Option<&'static str>,
    width: TileWidth,
    /// So few that each works on several tiles.
    multiprocessors: u32,
    /// Tiles of C that were summed up from parts.
    splits: Cell<usize>,
}

impl InSimulator {
    fn new(schedules: Schedules) -> Self {
        Self { schedules, kernel: None, width: TileWidth::Auto, multiprocessors: 1, splits: Cell::new(0) }
    }
}

impl Runner for InSimulator {
    fn multiply<T: Element, U: Element>(
        &self,
        (alpha, beta): (f64, f64),
        a: WcsrView<'_, T>,
        b: DenseView<'_, T>,
        c: &mut DenseViewMut<'_, U>,
    ) -> Result<()> {
        let problem = WcsrSpmm::new(&a, b.num_cols(), U::DTYPE, b.layout(), c.layout());
        let plan = problem.plan_with(&a, self.multiprocessors, self.width)?;
        if let Some(kernel) = self.kernel {
            assert_eq!(plan.configuration().spec.name, kernel, "the plan is for another kernel");
        }
        self.splits.set(self.splits.get() + plan.num_splits());
        let device = self.schedules.device();
        plan.simulate(&device, &a, alpha as f32, b, beta as f32, c)?;
        let report = device.report();
        assert!(report.findings.is_empty(), "{:?}: {report}", device.schedule());
        Ok(())
    }
}

/// A problem of several tiles, the last of them cut off, and of several stages, the last of a window with fewer panels.
fn check_kernel(kernel: &Configuration, schedule: Schedule, variant: usize, seed: u64) {
    let runner = InSimulator {
        kernel: Some(kernel.spec.name),
        width: TileWidth::Columns(kernel.tile_n),
        ..InSimulator::new(Schedules::from(schedule))
    };
    let window = WindowShape { rows: kernel.window_rows, group: kernel.group };
    let shape = (kernel.window_rows * 2 + 9, kernel.tile_n + kernel.tile_n / 2 + 8, 230);
    // The types are the kernel's: 0 and 1 are of bf16, 2 and 3 of f16.
    let types = if kernel.dtype == Dtype::Bf16 { 0 } else { 2 };
    windows::check_variant(&runner, window, shape, variant * 4 + types + variant % 2, seed);
}

#[test]
fn every_kernel_in_every_mode() {
    let mut random = Random::fresh();
    for (index, kernel) in CONFIGURATIONS.iter().enumerate() {
        for (variant, schedule) in Schedule::all(1).enumerate() {
            check_kernel(kernel, schedule, index + variant, random.next());
        }
    }
}

#[test]
fn every_shape_of_a_problem() {
    for window in SHAPES {
        windows::check_problems(&InSimulator::new(Schedules::any()), window);
    }
}

/// A window that is much wider than the others, and one that is all of the matrix.
#[test]
fn wide_windows_are_split_and_summed_up() {
    let mut random = Random::fresh();
    for window in SHAPES {
        // The narrower the windows, the more there are to share the work before one must be split.
        let multiprocessors = 6 * 64_u32.div_ceil(window.rows as u32);
        let runner = InSimulator { multiprocessors, ..InSimulator::new(Schedules::any()) };
        for (variant, shape) in
            [(64, 40, 2500), (400, 70, 1700), (1, 8, 3000), (150, 130, 1100)].into_iter().enumerate()
        {
            windows::check_variant(&runner, window, shape, variant * 7 + 1, random.next());
        }
        assert!(runner.splits.get() >= 7, "{window}: {} tiles were split", runner.splits.get());
    }
}

/// Many windows for each worker: narrow ones share entries and stages. Some are empty, and some share their last stage with none.
#[test]
fn narrow_windows_share_stages() {
    let mut random = Random::fresh();
    for window in SHAPES.into_iter().filter(|window| window.rows < 64) {
        // Every pair of types and layout of C; beta with and without C; alpha = 0.
        for (variant, shape) in [(0, (700, 70, 40)), (6, (700, 40, 6)), (3, (333, 130, 40)), (4, (600, 20, 6))] {
            windows::check_variant(&InSimulator::new(Schedules::any()), window, shape, variant, random.next());
        }
    }
}

/// C comes out in the rows' own order, whatever theirs in the windows: by every kernel, the last window cut off after eights and
/// elsewhere.
#[test]
fn rows_in_an_order_come_back() {
    for kernel in CONFIGURATIONS.iter().filter(|kernel| kernel.dtype == Dtype::Bf16) {
        // Those for f16 are the same, and `check_orders` has both.
        let width = TileWidth::Columns(kernel.tile_n);
        let window = WindowShape { rows: kernel.window_rows, group: kernel.group };
        for shape in [(window.rows * 2 + 8, kernel.tile_n + 8, 70), (window.rows + 5, 40, 40), (1, 3, 20)] {
            windows::check_orders(&InSimulator { width, ..InSimulator::new(Schedules::any()) }, window, shape);
        }
    }
}

/// The kernels that add up parts put them in the rows' own places, too.
#[test]
fn rows_of_split_windows_come_back() {
    for window in SHAPES {
        let multiprocessors = 6 * 64_u32.div_ceil(window.rows as u32);
        let runner = InSimulator { multiprocessors, ..InSimulator::new(Schedules::any()) };
        windows::check_orders(&runner, window, (window.rows + 8, 40, 2500));
        // Each product is there twice, with an order and permuted.
        assert!(runner.splits.get() >= 20, "{window}: {} tiles were split", runner.splits.get());
    }
}

/// Narrow windows of one entry, of which each has rows of its own.
#[test]
fn rows_of_windows_that_share_stages_come_back() {
    for window in SHAPES.into_iter().filter(|window| window.rows < 64) {
        windows::check_orders(&InSimulator::new(Schedules::any()), window, (600, 24, 20));
    }
}

#[test]
fn columns_do_not_depend_on_one_another() {
    for window in SHAPES {
        let runner = InSimulator { multiprocessors: 4, ..InSimulator::new(Schedules::any()) };
        windows::check_columns_apart(&runner, window, (70, 900));
        assert!(runner.splits.get() > 0, "nothing was split");
    }
}

/// The same bits in every order of events.
#[test]
fn no_order_of_events_shows() {
    for window in &SHAPES[..2] {
        for mode in Mode::ALL {
            let schedules = Schedules::from(Schedule::new(mode, 1));
            let runner = InSimulator { multiprocessors: 2, ..InSimulator::new(schedules) };
            windows::check_columns_apart(&runner, *window, (20, 700));
        }
    }
}
