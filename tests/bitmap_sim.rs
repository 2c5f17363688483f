//! The bitmap kernels against the reference, in the simulator: every kernel, on small shapes, in many orders of events.

#![cfg(feature = "sim")]

mod suite;

use std::cell::Cell;

use hopper_sparse::formats::{Bitmap, Csr, DenseView, DenseViewMut};
use hopper_sparse::ops::bitmap::BitmapPlan;
use hopper_sparse::sim::{Mode, Schedule};
use hopper_sparse::{HalfElement, Result};
use kernels_gpu::bitmap::{CONFIGURATIONS, Dtype};
use suite::Specials;
use suite::linear::{self, Bias, Mask, Problem, Runner};
use suite::operands::{Padding, Random};
use suite::schedules::Schedules;

/// Runs a layer in the simulator, and fails on any finding.
struct InSimulator {
    schedules: Schedules,
    multiprocessors: u32,
    /// The kernel that must be chosen, where it matters.
    kernel: Option<&'static str>,
    /// Parts that were added up, and realignments of lanes.
    parts: Cell<u32>,
    realignments: Cell<u64>,
}

impl InSimulator {
    fn new(schedules: Schedules, multiprocessors: u32) -> Self {
        Self { schedules, multiprocessors, kernel: None, parts: Cell::new(0), realignments: Cell::new(0) }
    }
}

impl Runner for InSimulator {
    fn multiply<T: HalfElement>(
        &self,
        weights: &Csr<T>,
        x: DenseView<'_, T>,
        bias: Option<&[T]>,
        y: &mut DenseViewMut<'_, T>,
    ) -> Result<()> {
        let weights = Bitmap::from_csr(weights.view())?;
        let plan = BitmapPlan::new(&weights, x.num_rows(), self.multiprocessors)?;
        if let Some(kernel) = self.kernel {
            assert_eq!(plan.configuration().spec.name, kernel, "the plan is for another kernel");
        }
        self.parts.set(self.parts.get() + plan.num_parts());
        self.realignments.set(self.realignments.get() + weights.statistics().num_realignments);
        let device = self.schedules.device();
        plan.simulate(&device, &weights, x, bias, y)?;
        let report = device.report();
        assert!(report.findings.is_empty(), "{:?}: {report}", device.schedule());
        Ok(())
    }
}

#[test]
fn every_kernel_in_every_mode() {
    let mut random = Random::fresh();
    for kernel in CONFIGURATIONS {
        for (variant, schedule) in Schedule::all(1).enumerate() {
            let runner =
                InSimulator { kernel: Some(kernel.spec.name), ..InSimulator::new(Schedules::from(schedule), 3) };
            let problem = Problem {
                shape: (130 + variant, kernel.tokens - variant, 520),
                mask: Mask::Random(0.4),
                bias: if variant == 0 { Bias::Some } else { Bias::None },
                specials: Specials::None,
                padding: (Padding::Tight, Padding::Tight),
                seed: random.next(),
            };
            match kernel.dtype {
                Dtype::Bf16 => linear::check_type::<hopper_sparse::bf16>(&runner, &problem),
                Dtype::F16 => linear::check_type::<hopper_sparse::f16>(&runner, &problem),
            }
            assert!(runner.parts.get() > 0, "sums of {} were split", kernel.spec.name);
        }
    }
}

#[test]
fn shapes_of_every_kind() {
    linear::check_shapes(&InSimulator::new(Schedules::any(), 2));
}

#[test]
fn every_sparsity_and_adversarial_masks() {
    let runner = InSimulator::new(Schedules::from(Schedule::new(Mode::Random, 7)), 3);
    linear::check_masks(&runner, (48, 7, 2600));
    assert!(runner.realignments.get() > 0, "some lanes ran ahead");
}
