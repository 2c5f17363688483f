//! The kernels of linear layers against the reference, on a device: the suite of the simulator, and larger problems.

#![cfg(feature = "gpu")]

#[path = "suite/gpu.rs"]
mod gpu;
mod suite;

use hopper_sparse::formats::{Bitmap, Csr, DenseView, DenseViewMut, ThreeLayer};
use hopper_sparse::gpu::{Device, DeviceBuffer};
use hopper_sparse::ops::bitmap::BitmapPlan;
use hopper_sparse::ops::three_layer::ThreeLayerPlan;
use hopper_sparse::{HalfElement, Result};
use suite::Specials;
use suite::linear::{self, Bias, Family, Mask, Problem, Runner};
use suite::operands::{Padding, Random};

/// A device, on which layers run twice: what the first launch leaves behind, the second begins with.
struct OnDevice {
    family: Family,
    device: Device,
}

impl Runner for OnDevice {
    fn multiply<T: HalfElement>(
        &self,
        weights: &Csr<T>,
        x: DenseView<'_, T>,
        bias: Option<&[T]>,
        y: &mut DenseViewMut<'_, T>,
    ) -> Result<()> {
        let (tokens, multiprocessors) = (x.num_rows(), self.device.num_multiprocessors());
        let bias = bias.map(|bias| DeviceBuffer::from_slice(&self.device, bias)).transpose()?;
        match self.family {
            Family::Bitmap => {
                let weights = Bitmap::from_csr(weights.view())?;
                let plan = BitmapPlan::new(&weights, tokens, multiprocessors)?;
                let prepared = plan.prepare(&self.device, &weights)?;
                gpu::on_device(&self.device, x, y, |stream, x, y| {
                    // SAFETY: `gpu::on_device` keeps X and Y until the launches are done, and the bias lives as long.
                    unsafe {
                        prepared.launch(stream, x, bias.as_ref(), y)?;
                        prepared.launch(stream, x, bias.as_ref(), y)
                    }
                })
            }
            Family::ThreeLayer => {
                let weights = ThreeLayer::from_csr(weights.view())?;
                let plan = ThreeLayerPlan::new(&weights, tokens, multiprocessors)?;
                let prepared = plan.prepare(&self.device, &weights)?;
                gpu::on_device(&self.device, x, y, |stream, x, y| {
                    // SAFETY: as above.
                    unsafe {
                        prepared.launch(stream, x, bias.as_ref(), y)?;
                        prepared.launch(stream, x, bias.as_ref(), y)
                    }
                })
            }
        }
    }
}

fn check_shapes(test: &str, family: Family) {
    let Some(device) = gpu::device_or_skip(test) else { return };
    linear::check_shapes(&OnDevice { family, device }, family.specials());
}

fn check_masks(test: &str, family: Family) {
    let Some(device) = gpu::device_or_skip(test) else { return };
    let runner = OnDevice { family, device };
    linear::check_masks(&runner, (48, 7, 2600));
    linear::check_masks(&runner, (700, 64, 1500));
}

fn check_layers(test: &str, family: Family) {
    let Some(device) = gpu::device_or_skip(test) else { return };
    let runner = OnDevice { family, device };
    let mut random = Random::fresh();
    for (tokens, density) in [(1, 0.5), (8, 0.5), (16, 0.3), (32, 0.4), (64, 0.5), (128, 0.3), (300, 0.5)] {
        let problem = Problem {
            shape: (1536, tokens, 4096),
            mask: Mask::Random(density),
            bias: Bias::Some,
            specials: Specials::None,
            padding: (Padding::Tight, Padding::Tight),
            seed: random.next(),
        };
        linear::check(&runner, &problem);
    }
}

#[test]
fn bitmap_shapes() {
    check_shapes("bitmap_shapes", Family::Bitmap);
}

#[test]
fn bitmap_masks() {
    check_masks("bitmap_masks", Family::Bitmap);
}

#[test]
fn bitmap_layers() {
    check_layers("bitmap_layers", Family::Bitmap);
}

#[test]
fn three_layer_shapes() {
    check_shapes("three_layer_shapes", Family::ThreeLayer);
}

#[test]
fn three_layer_masks() {
    check_masks("three_layer_masks", Family::ThreeLayer);
}

#[test]
fn three_layer_layers() {
    check_layers("three_layer_layers", Family::ThreeLayer);
}
