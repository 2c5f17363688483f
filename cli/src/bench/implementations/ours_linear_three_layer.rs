//! The library's linear layer with W in three layers.

use half::{bf16, f16};
use hopper_sparse::formats::{DenseView, Layout, ThreeLayer};
use hopper_sparse::gpu::{DeviceDenseView, DeviceDenseViewMut, Stream};
use hopper_sparse::ops::linear::LinearError;
use hopper_sparse::ops::three_layer::{ThreeLayerPlan, ThreeLayerPrepared};
use hopper_sparse::{Dtype, Error, HalfElement};

use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::linear::{LinearWorkload, WeightsLaw};
use crate::bench::linear_operands::LinearOperands;
use crate::bench::our_linear::{self, PreparedWeights};
use crate::bench::workspace::Workspace;

/// The library's kernels for three layers, for any mask.
pub struct ThreeLayers;

impl Implementation<LinearOperands> for ThreeLayers {
    fn name(&self) -> &'static str {
        "ours/linear/three-layer"
    }

    fn place(&self) -> Place {
        Place::Gpu
    }

    fn supports(&self, workload: &LinearWorkload) -> Result<(), Refusal> {
        our_linear::check_dtype(workload)
    }

    fn prepare<'a>(&self, workspace: &'a Workspace<'a, LinearOperands>) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        match workspace.operands().weights.law.dtype {
            Dtype::Bf16 => prepare::<bf16>(workspace),
            Dtype::F16 => prepare::<f16>(workspace),
            dtype => Err(Refusal::Linear(LinearError::Dtype { dtype }).into()),
        }
    }
}

fn prepare<'a, T: HalfElement>(
    workspace: &'a Workspace<'a, LinearOperands>,
) -> Result<Box<dyn Prepared + 'a>, BenchError> {
    let operands = workspace.operands();
    let weights = &operands.weights;
    let WeightsLaw { m, k, .. } = weights.law;
    let layers = weights.kept.get_or("three-layer", || {
        let w = DenseView::try_new(weights.w.as_slice::<T>(), m, k, k, Layout::RowMajor).map_err(Error::from)?;
        Ok(ThreeLayer::from_dense(w).map_err(Error::from)?)
    })?;
    let multiprocessors = workspace.on_device().0.device().num_multiprocessors();
    let plan = ThreeLayerPlan::new(&*layers, operands.workload.tokens, multiprocessors).map_err(Error::from)?;
    our_linear::prepare(workspace, |device| plan.prepare(device, &layers))
}

impl<T: HalfElement> PreparedWeights<T> for ThreeLayerPrepared<T> {
    fn num_bytes(&self) -> usize {
        self.num_bytes()
    }

    fn choice(&self) -> String {
        self.plan().to_string()
    }

    unsafe fn multiply(
        &self,
        stream: &Stream,
        x: DeviceDenseView<'_, T>,
        y: &mut DeviceDenseViewMut<'_, T>,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.launch(stream, x, None, y) }
    }
}
