//! The three-layer kernels against the reference, in the simulator: every kernel, on small shapes, in many orders of events.

#![cfg(feature = "sim")]

mod suite;

use std::cell::Cell;

use hopper_sparse::formats::{Csr, DenseView, DenseViewMut, ThreeLayer, ThreeLayerStatistics};
use hopper_sparse::ops::three_layer::ThreeLayerPlan;
use hopper_sparse::sim::{Mode, Schedule};
use hopper_sparse::{HalfElement, Result, bf16, f16};
use kernels_gpu::three_layer::{CONFIGURATIONS, Dtype};
use suite::Specials;
use suite::linear::{self, Bias, MASKS, Mask, Problem, Runner, SHAPES};
use suite::operands::{Padding, Random};
use suite::schedules::Schedules;

/// Runs a layer in the simulator, and fails on any finding.
struct InSimulator {
    schedules: Schedules,
    multiprocessors: u32,
    /// The kernel that must be chosen, where it matters.
    kernel: Option<&'static str>,
    /// Parts that were added up.
    parts: Cell<u32>,
    /// Surplus, dummies and residual of all weights.
    seen: Cell<[u64; 3]>,
}

impl InSimulator {
    fn new(schedules: Schedules, multiprocessors: u32) -> Self {
        Self { schedules, multiprocessors, kernel: None, parts: Cell::new(0), seen: Cell::new([0; 3]) }
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
        let weights = ThreeLayer::from_csr(&weights.view())?;
        let ThreeLayerStatistics { num_surplus, num_dummies, num_residual, .. } = weights.statistics();
        let [surplus, dummies, residual] = self.seen.get();
        self.seen.set([surplus + num_surplus, dummies + num_dummies, residual + num_residual]);
        let plan = ThreeLayerPlan::new(&weights, x.num_rows(), self.multiprocessors)?;
        if let Some(kernel) = self.kernel {
            assert_eq!(plan.configuration().spec.name, kernel, "the plan is for another kernel");
        }
        self.parts.set(self.parts.get() + plan.num_parts());
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
                shape: (130 + variant, kernel.tokens - variant, 1160),
                mask: Mask::Random(0.5),
                bias: if variant == 0 { Bias::Some } else { Bias::None },
                specials: Specials::None,
                padding: (Padding::Tight, Padding::Tight),
                seed: random.next(),
            };
            match kernel.dtype {
                Dtype::Bf16 => linear::check_type::<bf16>(&runner, &problem),
                Dtype::F16 => linear::check_type::<f16>(&runner, &problem),
            }
            assert!(runner.parts.get() > 0, "sums of {} were split", kernel.spec.name);
        }
    }
}

#[test]
fn shapes_of_every_kind() {
    let (runner, mut random) = (InSimulator::new(Schedules::any(), 2), Random::fresh());
    for (index, shape) in SHAPES.into_iter().enumerate() {
        for round in 0..2 {
            let wide = |bit: usize| if (index + round) >> bit & 1 == 1 { Padding::Wide } else { Padding::Tight };
            let problem = Problem {
                shape,
                mask: MASKS[(index * 2 + round) % MASKS.len()],
                bias: if round == 1 { Bias::Some } else { Bias::None },
                // A zero of W is not always multiplied: NaN in X comes through in other places than the reference's.
                specials: Specials::None,
                padding: (wide(0), wide(1)),
                seed: random.next(),
            };
            linear::check(&runner, &problem);
        }
    }
}

#[test]
fn every_sparsity_and_adversarial_masks() {
    let runner = InSimulator::new(Schedules::from(Schedule::new(Mode::Random, 7)), 3);
    linear::check_masks(&runner, (150, 7, 700));
    let [surplus, dummies, residual] = runner.seen.get();
    assert!(surplus > 0 && dummies > 0 && residual > 0, "{surplus} surplus, {dummies} dummies, {residual} residual");
}
