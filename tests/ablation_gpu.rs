//! The kernels that lack a part against the reference, on a device. Feature `ablation`.

#![cfg(all(feature = "gpu", feature = "ablation"))]

#[path = "suite/gpu.rs"]
mod gpu;
mod suite;

use hopper_sparse::formats::{BlockShape, Layout};
use hopper_sparse::gpu::Device;
use hopper_sparse::ops::bcsr::BcsrSpmm;
use hopper_sparse::reference::naive::Unit;
use hopper_sparse::{Element, bf16};
use kernels_gpu::ablation::{CONFIGURATIONS, Configuration};
use suite::operands::{Padding, Random, Sparse};
use suite::{Case, Format, Placement, Specials};

fn check<U: Element>(device: &Device, kernel: &'static Configuration, case: &Case) {
    suite::check_case::<bf16, U>(case, Specials::None, &|alpha, a, b, beta, c: &mut _| {
        let Sparse::Bcsr(a) = a else { unreachable!("blocks were asked for") };
        let problem = BcsrSpmm::new(&a, b.num_cols(), U::DTYPE, b.layout(), c.layout());
        let prepared = problem.plan_ablation(&a, device.num_multiprocessors(), kernel)?.prepare(device, &a)?;
        gpu::on_device(device, b, c, |stream, b, c| {
            // SAFETY: `gpu::on_device` keeps B and C until the launch is done.
            unsafe { prepared.launch(stream, alpha as f32, b, beta as f32, c) }
        })
    });
}

/// Every kernel on problems of that many rows and inner columns, and of some tiles: one that is stored packed, one element by element,
/// with a B that must be copied first and lines that end within a unit.
fn check_kernels(device: &Device, (num_rows, depth, tiles): (usize, usize, usize)) {
    let mut random = Random::fresh();
    for kernel in CONFIGURATIONS {
        let placed = |layout, padding| Placement { layout, padding };
        let packed = Case {
            format: Format::Bcsr(BlockShape { rows: 128, cols: 64 }),
            shape: (num_rows, kernel.bcsr.tile_n * tiles + 8, depth),
            density: 0.3,
            b: placed(Layout::ColumnMajor, Padding::Tight),
            c: placed(Layout::RowMajor, Padding::Tight),
            alpha: 1.0,
            beta: 0.0,
            seed: random.next(),
            unit: if kernel.bcsr.spec.name == "ablation_cores" { Unit::Core } else { Unit::TensorCore },
        };
        check::<bf16>(device, kernel, &packed);
        let by_element = Case {
            shape: (num_rows + 5, kernel.bcsr.tile_n * tiles + 3, depth + 5),
            b: placed(Layout::ColumnMajor, Padding::Wide),
            c: placed(Layout::ColumnMajor, Padding::Wide),
            alpha: -1.25,
            beta: 0.5,
            seed: random.next(),
            ..packed
        };
        check::<f32>(device, kernel, &by_element);
    }
}

#[test]
fn ablation_small() {
    let Some(device) = gpu::device_or_skip("ablation_small") else { return };
    check_kernels(&device, (300, 520, 1));
}

/// More tiles than an H200 has multiprocessors, and rows of more stages than any ring.
#[test]
fn ablation_large() {
    let Some(device) = gpu::device_or_skip("ablation_large") else { return };
    check_kernels(&device, (6000, 1000, 2));
}
