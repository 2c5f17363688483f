//! The library's linear layer with W as a bitmap and packed values.

use hopper_sparse::formats::{Bitmap, DenseView, Layout};
use hopper_sparse::gpu::{DeviceDenseView, DeviceDenseViewMut, Stream};
use hopper_sparse::ops::bitmap::{BitmapPlan, BitmapPrepared};
use hopper_sparse::{Element, Error};

use crate::bench::elements::with_dtype;
use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::linear::{LinearWorkload, WeightsLaw};
use crate::bench::linear_operands::LinearOperands;
use crate::bench::our_linear::{self, PreparedWeights};
use crate::bench::workspace::Workspace;

/// The library's bitmap kernels, for any mask.
pub struct Bitmaps;

impl Implementation<LinearOperands> for Bitmaps {
    fn name(&self) -> &'static str {
        "ours/linear/bitmap"
    }

    fn place(&self) -> Place {
        Place::Gpu
    }

    fn supports(&self, workload: &LinearWorkload) -> Result<(), Refusal> {
        our_linear::check_dtype(workload)
    }

    fn prepare<'a>(&self, workspace: &'a Workspace<'a, LinearOperands>) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        with_dtype!(workspace.operands().weights.law.dtype, T => prepare::<T>(workspace))
    }
}

fn prepare<'a, T: Element>(workspace: &'a Workspace<'a, LinearOperands>) -> Result<Box<dyn Prepared + 'a>, BenchError> {
    let operands = workspace.operands();
    let weights = &operands.weights;
    let WeightsLaw { m, k, .. } = weights.law;
    let bitmap = weights.kept.get_or("bitmap", || {
        let w = DenseView::try_new(weights.w.as_slice::<T>(), m, k, k, Layout::RowMajor).map_err(Error::from)?;
        Ok(Bitmap::from_dense(w).map_err(Error::from)?)
    })?;
    let multiprocessors = workspace.on_device().0.device().num_multiprocessors();
    let plan = BitmapPlan::new(&*bitmap, operands.workload.tokens, multiprocessors).map_err(Error::from)?;
    our_linear::prepare(workspace, |device| plan.prepare(device, &*bitmap))
}

impl<T: Element> PreparedWeights<T> for BitmapPrepared<T> {
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
