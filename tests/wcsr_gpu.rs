//! The WCSR kernels against the reference, on a device: the suite of the simulator, and larger problems.

#![cfg(feature = "gpu")]

#[path = "suite/gpu.rs"]
mod gpu;
mod suite;

use hopper_sparse::formats::{DenseView, DenseViewMut, Layout, WcsrView, WindowShape};
use hopper_sparse::gpu::Device;
use hopper_sparse::ops::wcsr::{TileWidth, WcsrSpmm};
use hopper_sparse::reference::naive::Unit;
use hopper_sparse::{Element, Result, bf16, f16};
use kernels_gpu::wcsr::{CONFIGURATIONS, Dtype};
use suite::operands::{Padding, Random};
use suite::windows::{self, Runner, SHAPES};
use suite::{Case, Format, Placement};

/// A device, and which kernels run there.
struct Tiles {
    device: Device,
    width: TileWidth,
    /// The kernel that must be chosen, where it matters.
    kernel: Option<&'static str>,
}

impl Tiles {
    fn new(device: Device) -> Self {
        Self { device, width: TileWidth::Auto, kernel: None }
    }
}

impl Runner for Tiles {
    fn multiply<T: Element, U: Element>(
        &self,
        (alpha, beta): (f64, f64),
        a: WcsrView<'_, T>,
        b: DenseView<'_, T>,
        c: &mut DenseViewMut<'_, U>,
    ) -> Result<()> {
        let Self { device, width, kernel } = self;
        let problem = WcsrSpmm::new(&a, b.num_cols(), U::DTYPE, b.layout(), c.layout());
        let plan = problem.plan_with(&a, device.num_multiprocessors(), *width)?;
        if let Some(kernel) = kernel {
            assert_eq!(plan.configuration().spec.name, *kernel, "the plan is for another kernel");
        }
        let prepared = plan.prepare(device, &a)?;
        gpu::on_device(device, b, c, |stream, b, c| {
            // SAFETY: `gpu::on_device` keeps B and C until the launch is done.
            unsafe { prepared.launch(stream, alpha as f32, b, beta as f32, c) }
        })
    }
}

#[test]
fn wcsr_small() {
    let Some(device) = gpu::device_or_skip("wcsr_small") else { return };
    let tiles = Tiles::new(device);
    for window in SHAPES {
        windows::check_problems(&tiles, window);
    }
}

/// Windows that are split, alone and beside others.
#[test]
fn wcsr_small_splits() {
    let Some(device) = gpu::device_or_skip("wcsr_small_splits") else { return };
    let tiles = Tiles::new(device);
    let mut random = Random::fresh();
    for window in SHAPES {
        for (variant, shape) in [(64, 40, 9000), (1, 8, 30000), (150, 130, 5000)].into_iter().enumerate() {
            windows::check_variant(&tiles, window, shape, variant * 7 + 1, random.next());
        }
        windows::check_columns_apart(&tiles, window, (70, 9000));
    }
}

/// Rows that an order put elsewhere come back, split windows' too.
#[test]
fn wcsr_small_orders() {
    let Some(device) = gpu::device_or_skip("wcsr_small_orders") else { return };
    let tiles = Tiles::new(device);
    for window in SHAPES {
        for shape in [(window.rows * 5 + 8, 136, 300), (window.rows + 5, 40, 9000), (1, 3, 20)] {
            windows::check_orders(&tiles, window, shape);
        }
    }
}

/// Every kernel for windows of a shape on problems of more tiles than an H200 has workers, ragged in both directions: one that is
/// stored packed, one element by element.
///
/// The time is that of the references, by the columns that windows store and those of B: there are few of both, and many rows.
fn check_large(test: &str, window: WindowShape) {
    let Some(device) = gpu::device_or_skip(test) else { return };
    let mut tiles = Tiles::new(device);
    let mut random = Random::fresh();
    let kernels =
        CONFIGURATIONS.iter().filter(|kernel| (kernel.window_rows, kernel.group) == (window.rows, window.group));
    for kernel in kernels {
        (tiles.width, tiles.kernel) = (TileWidth::Columns(kernel.tile_n), Some(kernel.spec.name));
        // High windows store nearly all columns: fewer of them.
        let (num_rows, depth) = (8976, if window.rows == 128 { 70 } else { 130 });
        let placed = |layout, padding| Placement { layout, padding };
        let packed = Case {
            format: Format::Wcsr(window),
            shape: (num_rows + 24, kernel.tile_n + 40, depth),
            density: 0.02,
            b: placed(Layout::RowMajor, Padding::Tight),
            c: placed(Layout::RowMajor, Padding::Tight),
            alpha: 1.0,
            beta: 0.0,
            seed: random.next(),
            unit: Unit::TensorCore,
        };
        let by_element = Case {
            shape: (num_rows + 29, kernel.tile_n + 37, depth),
            b: placed(Layout::RowMajor, Padding::Wide),
            c: placed(Layout::ColumnMajor, Padding::Wide),
            alpha: 0.5,
            beta: -2.0,
            seed: random.next(),
            ..packed
        };
        match kernel.dtype {
            Dtype::Bf16 => {
                windows::check_case::<bf16, bf16>(&tiles, &packed);
                windows::check_case::<bf16, f32>(&tiles, &by_element);
            }
            Dtype::F16 => {
                let columns = placed(Layout::ColumnMajor, Padding::Tight);
                windows::check_case::<f16, f16>(&tiles, &Case { c: columns, ..packed });
                windows::check_case::<f16, f32>(&tiles, &by_element);
            }
        }
    }
}

/// A test for each shape of windows.
macro_rules! large {
    ($($name:ident: $rows:literal x $group:literal;)*) => {
        $(
            #[test]
            fn $name() {
                check_large(stringify!($name), WindowShape { rows: $rows, group: $group });
            }
        )*

        /// The shapes that have one.
        const LARGE: &[(usize, usize)] = &[$(($rows, $group)),*];
    };
}

large! {
    wcsr_large_64x8: 64 x 8;
    wcsr_large_64x1: 64 x 1;
    wcsr_large_128x8: 128 x 8;
    wcsr_large_128x1: 128 x 1;
    wcsr_large_8x8: 8 x 8;
    wcsr_large_8x1: 8 x 1;
    wcsr_large_16x8: 16 x 8;
    wcsr_large_16x1: 16 x 1;
}

#[test]
fn no_kernel_is_left_out() {
    for kernel in CONFIGURATIONS {
        assert!(LARGE.contains(&(kernel.window_rows, kernel.group)), "{} has no large problem", kernel.spec.name);
    }
}
