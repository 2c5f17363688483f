//! The kernels of linear layers against the reference, in the simulator: every kernel, on small shapes, in many orders of events.

#![cfg(feature = "sim")]

mod suite;

use std::cell::Cell;

use hopper_sparse::formats::{Bitmap, Csr, DenseView, DenseViewMut, ThreeLayer, ThreeLayerStatistics};
use hopper_sparse::ops::bitmap::BitmapPlan;
use hopper_sparse::ops::linear::LinearPlan;
use hopper_sparse::ops::three_layer::ThreeLayerPlan;
use hopper_sparse::sim::{Mode, Schedule};
use hopper_sparse::{HalfElement, Result, bf16, f16};
use kernels_gpu::linear::{Configuration, Dtype};
use kernels_gpu::{bitmap, three_layer};
use suite::Specials;
use suite::linear::{self, Bias, Family, Mask, Problem, Runner};
use suite::operands::{Padding, Random};
use suite::schedules::Schedules;

/// Runs a layer in the simulator, and fails on any finding.
struct InSimulator {
    family: Family,
    schedules: Schedules,
    multiprocessors: u32,
    /// The kernel that must be chosen, where it matters.
    kernel: Option<&'static str>,
    /// Parts that were added up.
    parts: Cell<u32>,
    /// Realignments of lanes.
    realignments: Cell<u64>,
    /// Surplus, dummies and residual.
    layers: Cell<[u64; 3]>,
}

impl InSimulator {
    fn new(family: Family, schedules: Schedules, multiprocessors: u32) -> Self {
        Self {
            family,
            schedules,
            multiprocessors,
            kernel: None,
            parts: Cell::new(0),
            realignments: Cell::new(0),
            layers: Cell::new([0; 3]),
        }
    }

    fn look_at<Arguments>(&self, plan: &LinearPlan<Arguments>) {
        if let Some(kernel) = self.kernel {
            assert_eq!(plan.configuration().spec.name, kernel, "the plan is for another kernel");
        }
        self.parts.set(self.parts.get() + plan.num_parts());
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
        let device = self.schedules.device();
        match self.family {
            Family::Bitmap => {
                let weights = Bitmap::from_csr(weights.view())?;
                self.realignments.set(self.realignments.get() + weights.statistics().num_realignments);
                let plan = BitmapPlan::new(&weights, x.num_rows(), self.multiprocessors)?;
                self.look_at(&plan);
                plan.simulate(&device, &weights, x, bias, y)?;
            }
            Family::ThreeLayer => {
                let weights = ThreeLayer::from_csr(weights.view())?;
                let ThreeLayerStatistics { num_surplus, num_dummies, num_residual, .. } = weights.statistics();
                let [surplus, dummies, residual] = self.layers.get();
                self.layers.set([surplus + num_surplus, dummies + num_dummies, residual + num_residual]);
                let plan = ThreeLayerPlan::new(&weights, x.num_rows(), self.multiprocessors)?;
                self.look_at(&plan);
                plan.simulate(&device, &weights, x, bias, y)?;
            }
        }
        let report = device.report();
        assert!(report.findings.is_empty(), "{:?}: {report}", device.schedule());
        Ok(())
    }
}

/// Every kernel in every mode, with a K of more than two units, cut off.
fn check_kernels<Arguments>(family: Family, kernels: &[Configuration<Arguments>], (num_inputs, mask): (usize, Mask)) {
    let mut random = Random::fresh();
    for kernel in kernels {
        for (variant, schedule) in Schedule::all(1).enumerate() {
            let runner = InSimulator {
                kernel: Some(kernel.spec.name),
                ..InSimulator::new(family, Schedules::from(schedule), 3)
            };
            let problem = Problem {
                shape: (130 + variant, kernel.tokens - variant, num_inputs),
                mask,
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
fn every_bitmap_kernel_in_every_mode() {
    check_kernels(Family::Bitmap, bitmap::CONFIGURATIONS, (520, Mask::Random(0.4)));
}

#[test]
fn every_three_layer_kernel_in_every_mode() {
    check_kernels(Family::ThreeLayer, three_layer::CONFIGURATIONS, (1160, Mask::Random(0.5)));
}

#[test]
fn shapes_of_every_kind() {
    for family in [Family::Bitmap, Family::ThreeLayer] {
        linear::check_shapes(&InSimulator::new(family, Schedules::any(), 2), family.specials());
    }
}

#[test]
fn every_sparsity_and_adversarial_masks_as_bitmaps() {
    let schedule = Schedule::new(Mode::Random, 7);
    let runner = InSimulator::new(Family::Bitmap, Schedules::from(schedule), 3);
    linear::check_masks(&runner, (48, 7, 2600));
    assert!(runner.realignments.get() > 0, "some lanes ran ahead");
}

#[test]
fn every_sparsity_and_adversarial_masks_in_three_layers() {
    let schedule = Schedule::new(Mode::Random, 7);
    let runner = InSimulator::new(Family::ThreeLayer, Schedules::from(schedule), 3);
    linear::check_masks(&runner, (150, 7, 700));
    let [surplus, dummies, residual] = runner.layers.get();
    assert!(surplus > 0 && dummies > 0 && residual > 0, "{surplus} surplus, {dummies} dummies, {residual} residual");
}
