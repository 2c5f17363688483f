//! A linear layer of the library's on the device, whatever the format of its weights.

use core::marker::PhantomData;

use hopper_sparse::gpu::{Device, DeviceDenseView, DeviceDenseViewMut, Stream};
use hopper_sparse::ops::linear::LinearError;
use hopper_sparse::{Dtype, Element, Error};

use super::error::BenchError;
use super::implementation::{Prepared, Refusal};
use super::linear::LinearWorkload;
use super::linear_operands::{LinearOperands, device_views};
use super::workspace::Workspace;

/// Weights that were prepared, whatever the format and the kernel.
pub trait PreparedWeights<T: Element> {
    /// Device memory held, in bytes: what a launch must read.
    fn num_bytes(&self) -> usize;

    /// What was chosen.
    fn choice(&self) -> String;

    /// Launches Y = X W^T.
    ///
    /// # Errors
    /// What the library refuses or fails at.
    ///
    /// # Safety
    /// X and Y stay allocated, X is not written and Y is not used, until the launch is done; they are in the memory of the device that
    /// this was prepared on, and `stream` is one of its streams.
    unsafe fn multiply(
        &self,
        stream: &Stream,
        x: DeviceDenseView<'_, T>,
        y: &mut DeviceDenseViewMut<'_, T>,
    ) -> Result<(), Error>;
}

/// Whether the kernels of linear layers take the workload's type.
///
/// # Errors
/// [`Refusal::Linear`].
pub fn check_dtype(workload: &LinearWorkload) -> Result<(), Refusal> {
    match workload.weights.dtype {
        Dtype::Bf16 | Dtype::F16 => Ok(()),
        dtype => Err(Refusal::Linear(LinearError::Dtype { dtype })),
    }
}

/// A linear layer that is ready: its weights as many times as there are sets.
struct OurLinear<'a, T, P> {
    workspace: &'a Workspace<'a, LinearOperands>,
    weights: Vec<P>,
    element: PhantomData<T>,
}

/// Prepares weights for every set, and launches each once: tensor maps and workspaces are made on first use, and that is part of
/// preparation.
///
/// # Errors
/// What `prepare` or a launch failed at.
pub fn prepare<'a, T: Element, P: PreparedWeights<T> + 'a>(
    workspace: &'a Workspace<'a, LinearOperands>,
    mut prepare: impl FnMut(&Device) -> Result<P, Error>,
) -> Result<Box<dyn Prepared + 'a>, BenchError> {
    let (gpu, sets) = workspace.on_device();
    let weights = sets.iter().map(|_| prepare(gpu.device())).collect::<Result<Vec<_>, _>>()?;
    let mut ready = OurLinear { workspace, weights, element: PhantomData };
    for set in 0..sets.len() {
        ready.launch(set)?;
    }
    gpu.synchronize()?;
    Ok(Box::new(ready))
}

impl<T: Element, P: PreparedWeights<T>> Prepared for OurLinear<'_, T, P> {
    fn launch(&mut self, set: usize) -> Result<(), BenchError> {
        let (gpu, sets) = self.workspace.on_device();
        // SAFETY: the set is the workload's, whose type is T, on the device that the weights were prepared on. It outlives `self`, and
        // all work is on the one stream, which is waited for before a set is read or filled from elsewhere.
        unsafe {
            let (x, mut y) = device_views::<T>(&self.workspace.operands().workload, &sets[set])?;
            Ok(self.weights[set].multiply(gpu.stream(), x, &mut y)?)
        }
    }

    /// Those of a dense product: tensor cores multiply the zeros, too.
    fn flops(&self) -> u64 {
        self.workspace.operands().workload.dense_flops()
    }

    fn bytes(&self) -> u64 {
        self.weights[0].num_bytes() as u64 + self.workspace.operands().workload.activation_bytes()
    }

    fn weight_bytes(&self) -> Option<u64> {
        Some(self.weights[0].num_bytes() as u64)
    }

    fn choice(&self) -> String {
        self.weights[0].choice()
    }
}
