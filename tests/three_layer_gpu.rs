//! The three-layer kernels against the reference, on a device: the suite of the simulator, and larger problems.

#![cfg(feature = "gpu")]

#[path = "suite/gpu.rs"]
mod gpu;
mod suite;

use hopper_sparse::formats::{Csr, DenseView, DenseViewMut, ThreeLayer};
use hopper_sparse::gpu::{Device, DeviceBuffer};
use hopper_sparse::ops::three_layer::ThreeLayerPlan;
use hopper_sparse::{HalfElement, Result};
use suite::Specials;
use suite::linear::{self, Bias, MASKS, Mask, Problem, Runner, SHAPES};
use suite::operands::{Padding, Random};

/// A device, on which layers run twice: what the first launch leaves behind, the second begins with.
struct OnDevice(Device);

impl Runner for OnDevice {
    fn multiply<T: HalfElement>(
        &self,
        weights: &Csr<T>,
        x: DenseView<'_, T>,
        bias: Option<&[T]>,
        y: &mut DenseViewMut<'_, T>,
    ) -> Result<()> {
        let weights = ThreeLayer::from_csr(&weights.view())?;
        let plan = ThreeLayerPlan::new(&weights, x.num_rows(), self.0.num_multiprocessors())?;
        let prepared = plan.prepare(&self.0, &weights)?;
        let bias = bias.map(|bias| DeviceBuffer::from_slice(&self.0, bias)).transpose()?;
        gpu::on_device(&self.0, x, y, |stream, x, y| {
            // SAFETY: `gpu::on_device` keeps X and Y until the launches are done, and the bias lives as long.
            unsafe {
                prepared.launch(stream, x, bias.as_ref(), y)?;
                prepared.launch(stream, x, bias.as_ref(), y)
            }
        })
    }
}

#[test]
fn three_layer_shapes() {
    let Some(device) = gpu::device_or_skip("three_layer_shapes") else { return };
    let (runner, mut random) = (OnDevice(device), Random::fresh());
    for (index, shape) in SHAPES.into_iter().enumerate() {
        let (mask, bias) = (MASKS[index % MASKS.len()], Bias::Some);
        // A zero of W is not always multiplied: NaN in X comes through in other places than the reference's.
        let (specials, padding) = (Specials::None, (Padding::Wide, Padding::Wide));
        linear::check(&runner, &Problem { shape, mask, bias, specials, padding, seed: random.next() });
    }
}

#[test]
fn three_layer_masks() {
    let Some(device) = gpu::device_or_skip("three_layer_masks") else { return };
    let runner = OnDevice(device);
    linear::check_masks(&runner, (48, 7, 2600));
    linear::check_masks(&runner, (700, 64, 1500));
}

#[test]
fn three_layer_layers() {
    let Some(device) = gpu::device_or_skip("three_layer_layers") else { return };
    let runner = OnDevice(device);
    let mut random = Random::fresh();
    for (tokens, density) in [(1, 0.5), (8, 0.5), (16, 0.3), (32, 0.4), (64, 0.5), (128, 0.3), (300, 0.5)] {
        linear::check(
            &runner,
            &Problem {
                shape: (1536, tokens, 4096),
                mask: Mask::Random(density),
                bias: Bias::Some,
                specials: Specials::None,
                padding: (Padding::Tight, Padding::Tight),
                seed: random.next(),
            },
        );
    }
}
