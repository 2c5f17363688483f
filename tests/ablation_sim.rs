//! The kernels that lack a part against the reference, in the simulator, in many orders of events. Feature `ablation`.
//!
//! `HOPPER_SIM_SEEDS=n` runs each kernel with `n` seeds of every mode.

#![cfg(all(feature = "sim", feature = "ablation"))]

mod suite;

use hopper_sparse::formats::{BlockShape, Layout};
use hopper_sparse::ops::bcsr::BcsrSpmm;
use hopper_sparse::reference::naive::Unit;
use hopper_sparse::sim::{Schedule, Simulated};
use hopper_sparse::{Element, bf16};
use kernels_gpu::ablation::{CONFIGURATIONS, Configuration};
use suite::operands::{Padding, Random, Sparse};
use suite::{Case, Format, Placement, Specials};

const BLOCK: BlockShape = BlockShape { rows: 128, cols: 64 };

/// So few that each works on several tiles.
const MULTIPROCESSORS: u32 = 2;

fn check<U: Element>(kernel: &'static Configuration, case: &Case, schedule: Schedule) {
    let device = Simulated::new(schedule);
    suite::check_case::<bf16, U>(case, Specials::None, &|alpha, a, b, beta, c: &mut _| {
        let Sparse::Bcsr(a) = a else { unreachable!("blocks were asked for") };
        let problem = BcsrSpmm::new(&a, b.num_cols(), U::DTYPE, b.layout(), c.layout());
        let plan = problem.plan_ablation(&a, MULTIPROCESSORS, kernel)?;
        plan.simulate(&device, &a, alpha as f32, b, beta as f32, c)?;
        Ok(())
    });
    let report = device.report();
    assert!(report.findings.is_empty(), "{}, {schedule:?}: {report}", kernel.bcsr.spec.name);
}

/// Row blocks of which one is full, one empty and the last ragged, and two panels; more stages than any ring has. The variants have
/// every store, B where it must be copied first, and lines of B that end within a unit.
fn case_for(kernel: &Configuration, variant: usize, seed: u64) -> Case {
    let padding = |wide: bool| if wide { Padding::Wide } else { Padding::Tight };
    let c_layout = if variant.is_multiple_of(2) { Layout::RowMajor } else { Layout::ColumnMajor };
    let ragged = [0, 0, 3, 5][variant % 4];
    Case {
        format: Format::Bcsr(BLOCK),
        shape: (4 * BLOCK.rows + 40 - ragged, kernel.bcsr.tile_n + 8 + ragged, 7 * 64 + 8 + ragged),
        density: 0.4,
        b: Placement { layout: Layout::ColumnMajor, padding: padding(variant % 3 == 2) },
        c: Placement { layout: c_layout, padding: padding(variant % 5 == 4) },
        alpha: [1.0, -1.25][variant / 2 % 2],
        // There are five modes: each kernel meets it in one of them.
        beta: if variant % 5 == 3 { 0.5 } else { 0.0 },
        seed,
        unit: if kernel.bcsr.spec.name == "ablation_cores" { Unit::Core } else { Unit::TensorCore },
    }
}

fn check_kernels(which: impl Fn(&str) -> bool) {
    let seeds = std::env::var("HOPPER_SIM_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(1);
    let mut random = Random::fresh();
    let kernels = CONFIGURATIONS.iter().filter(|kernel| which(kernel.bcsr.spec.name));
    let mut num_kernels = 0;
    for (index, kernel) in kernels.enumerate() {
        num_kernels += 1;
        for (variant, schedule) in Schedule::all(seeds).enumerate() {
            let case = case_for(kernel, index + variant, random.next());
            match variant % 3 {
                2 => check::<f32>(kernel, &case, schedule),
                _ => check::<bf16>(kernel, &case, schedule),
            }
        }
    }
    assert!(num_kernels > 0, "no kernel of that name");
}

#[test]
fn cuda_cores() {
    check_kernels(|name| name == "ablation_cores");
}

#[test]
fn tensor_cores() {
    check_kernels(|name| name == "ablation_wgmma");
}

#[test]
fn copy_engine() {
    check_kernels(|name| name == "ablation_tma");
}

#[test]
fn warp_specialisation_and_every_depth() {
    check_kernels(|name| name.starts_with("ablation_depth"));
}

#[test]
fn every_width() {
    check_kernels(|name| name.starts_with("ablation_n"));
}

/// Nothing, one, less and more than a tile, every layout of C: by kernels of each kind.
#[test]
fn shapes_of_note() {
    let mut random = Random::fresh();
    for (index, shape) in
        [(0, 5, 3), (5, 0, 3), (5, 3, 0), (1, 1, 1), (1, 7, 200), (65, 17, 33), (130, 129, 257)].into_iter().enumerate()
    {
        for name in ["ablation_cores", "ablation_wgmma", "ablation_tma", "ablation_depth1", "ablation_n8"] {
            let kernel = CONFIGURATIONS.iter().find(|kernel| kernel.bcsr.spec.name == name).expect("a kernel");
            for (schedule, variant) in Schedule::all(1).zip(index..).take(3) {
                let case = Case { shape, ..case_for(kernel, variant, random.next()) };
                check::<bf16>(kernel, &case, schedule);
                check::<f32>(kernel, &Case { alpha: 0.0, beta: 0.75, ..case }, schedule);
            }
        }
    }
}

#[test]
fn what_is_not_served_is_refused() {
    let problem = BcsrSpmm {
        num_rows: 128,
        num_inner: 64,
        num_cols: 8,
        block: BLOCK,
        dtype: bf16::DTYPE,
        output: bf16::DTYPE,
        b_layout: Layout::ColumnMajor,
        c_layout: Layout::RowMajor,
    };
    problem.check_ablation().expect("it is served");
    let refused = |problem: BcsrSpmm| problem.check_ablation().expect_err("it is not served").to_string();
    assert!(refused(BcsrSpmm { b_layout: Layout::RowMajor, ..problem }).contains("column-major"));
    assert!(refused(BcsrSpmm { block: BlockShape { rows: 64, cols: 64 }, ..problem }).contains("64x64"));
    let half = hopper_sparse::Dtype::F16;
    assert!(refused(BcsrSpmm { dtype: half, output: half, ..problem }).contains("f16"));
}
