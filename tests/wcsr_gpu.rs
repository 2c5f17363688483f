//! The WCSR kernels against the reference, on a device: the suite of the simulator, and larger problems.

#![cfg(feature = "gpu")]

#[path = "suite/gpu.rs"]
mod gpu;
mod suite;

use hopper_sparse::formats::{DenseView, DenseViewMut, WcsrView};
use hopper_sparse::gpu::Device;
use hopper_sparse::ops::wcsr::{TileWidth, WcsrSpmm};
use hopper_sparse::{Element, Result};
use kernels_gpu::wcsr::CONFIGURATIONS;
use suite::operands::Random;
use suite::windows::{self, Runner, SHAPES};

/// A device, and how wide tiles are there.
struct Tiles(Device, TileWidth);

impl Runner for Tiles {
    fn multiply<T: Element, U: Element>(
        &self,
        (alpha, beta): (f64, f64),
        a: WcsrView<'_, T>,
        b: DenseView<'_, T>,
        c: &mut DenseViewMut<'_, U>,
    ) -> Result<()> {
        let Self(device, width) = self;
        let problem = WcsrSpmm::new(&a, b.num_cols(), U::DTYPE, b.layout(), c.layout());
        let prepared = problem.plan_with(&a, device.num_multiprocessors(), *width)?.prepare(device, &a)?;
        gpu::on_device(device, b, c, |stream, b, c| {
            // SAFETY: `gpu::on_device` keeps B and C until the launch is done.
            unsafe { prepared.launch(stream, alpha as f32, b, beta as f32, c) }
        })
    }
}

#[test]
fn wcsr_small() {
    let Some(device) = gpu::device_or_skip("wcsr_small") else { return };
    let tiles = Tiles(device, TileWidth::Auto);
    for window in SHAPES {
        windows::check_problems(&tiles, window);
    }
}

/// Windows that are split, alone and beside others.
#[test]
fn wcsr_small_splits() {
    let Some(device) = gpu::device_or_skip("wcsr_small_splits") else { return };
    let tiles = Tiles(device, TileWidth::Auto);
    let mut random = Random::fresh();
    for window in SHAPES {
        for (variant, shape) in [(64, 40, 9000), (1, 8, 30000), (150, 130, 5000)].into_iter().enumerate() {
            windows::check_variant(&tiles, window, shape, variant * 7 + 1, random.next());
        }
        windows::check_columns_apart(&tiles, window, (70, 9000));
    }
}

/// Every kernel on a problem of several tiles a worker.
#[test]
fn wcsr_large() {
    let Some(device) = gpu::device_or_skip("wcsr_large") else { return };
    let mut tiles = Tiles(device, TileWidth::Auto);
    let mut random = Random::fresh();
    for window in SHAPES {
        let mut widths: Vec<usize> = CONFIGURATIONS
            .iter()
            .filter(|kernel| (kernel.window_rows, kernel.group) == (window.rows, window.group))
            .map(|kernel| kernel.tile_n)
            .collect();
        widths.dedup();
        for (index, width) in widths.into_iter().enumerate() {
            tiles.1 = TileWidth::Columns(width);
            for variant in [0, 6] {
                windows::check_variant(&tiles, window, (9000, 333, 1500), variant + 5 * index, random.next());
            }
        }
    }
}
