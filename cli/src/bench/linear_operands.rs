//! X and W of a linear layer, and where X and Y are on the device.

use std::rc::Rc;

#[cfg(feature = "gpu")]
use hopper_sparse::Error;
use hopper_sparse::formats::{DenseView, DenseViewMut, Layout};
#[cfg(feature = "gpu")]
use hopper_sparse::gpu::{DeviceDenseView, DeviceDenseViewMut, DevicePtr};
use hopper_sparse::reference;
use hopper_sparse::reference::naive::Unit;
use hopper_sparse::{Dtype, Element};

#[cfg(feature = "gpu")]
use super::device::DeviceSet;
use super::elements::{Elements, with_dtype};
use super::error::BenchError;
use super::linear::LinearWorkload;
use super::linear_weights::{LastWeights, LinearWeights};
use super::operands::{Operands, Verdict};
use super::product_check::Reference;
use super::record::Row;
use super::workspace::Cache;
use crate::random::normal_at;

/// Draws X.
const ACTIVATIONS: u64 = 0x6163_7469_7661;
/// Rows of W whose products with all tokens are compared.
const NUM_ROWS: usize = 64;
/// All copies of the weights that are not zero are together so many times as large as the L2 cache.
///
/// NOTE: a kernel that asks the cache to give up its weights first finds some of those that came before: of copies that are
/// three times as large as the cache, up to a third.
const ROTATED_CACHES: u64 = 8;

/// X (N x K) and W (M x K); Y is N x M. All are row-major.
pub struct LinearOperands {
    /// What is computed.
    pub workload: LinearWorkload,
    /// W.
    pub weights: Rc<LinearWeights>,
    /// X: normal numbers.
    pub x: Elements,
}

impl LinearOperands {
    /// Draws X, and W where it is not the last one.
    ///
    /// # Errors
    /// As [`LastWeights::get_or_draw`].
    pub fn of(workload: &LinearWorkload, last: &mut LastWeights) -> Result<Self, BenchError> {
        let law = workload.weights;
        let draw = |index| normal_at(law.seed ^ ACTIVATIONS, index as u64);
        let x = Elements::from_fn(law.dtype, workload.tokens * law.k, draw);
        Ok(Self { workload: *workload, weights: last.get_or_draw(law)?, x })
    }

    /// X transposed, K x N, as the right factor of Y^T = W X^T.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the sizes do not agree.
    pub fn x_transposed<T: Element>(&self) -> Result<DenseView<'_, T>, BenchError> {
        let k = self.weights.law.k;
        let view = DenseView::try_new(self.x.as_slice(), k, self.workload.tokens, k, Layout::ColumnMajor);
        view.map_err(|error| BenchError::Library(error.into()))
    }

    /// Elements of Y, transposed: M x N.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the sizes do not agree.
    pub fn y_transposed<'y, T: Element>(&self, y: &'y Elements) -> Result<DenseView<'y, T>, BenchError> {
        let m = self.weights.law.m;
        let view = DenseView::try_new(y.as_slice(), m, self.workload.tokens, m, Layout::ColumnMajor);
        view.map_err(|error| BenchError::Library(error.into()))
    }

    /// The same, to write.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the sizes do not agree.
    pub fn y_transposed_mut<'y, T: Element>(&self, y: &'y mut Elements) -> Result<DenseViewMut<'y, T>, BenchError> {
        let m = self.weights.law.m;
        let view = DenseViewMut::try_new(y.as_slice_mut(), m, self.workload.tokens, m, Layout::ColumnMajor);
        view.map_err(|error| BenchError::Library(error.into()))
    }
}

impl Operands for LinearOperands {
    type Problem = LinearWorkload;
    type Reference = Reference;

    fn problem(&self) -> &LinearWorkload {
        &self.workload
    }

    fn inputs(&self) -> Vec<&Elements> {
        vec![&self.x]
    }

    fn output(&self) -> (Dtype, usize) {
        (self.weights.law.dtype, self.workload.tokens * self.weights.law.m)
    }

    fn reference(&self) -> Result<Reference, BenchError> {
        let (dtype, len) = self.output();
        let rows = reference::sample_rows(self.weights.law.m, NUM_ROWS);
        let unit = if dtype.size_bytes() == 2 { Unit::TensorCore } else { Unit::Core };
        let y = Elements::poisoned(dtype, len);
        with_dtype!(dtype, T => {
            let (x, y) = (self.x_transposed::<T>()?, self.y_transposed::<T>(&y)?);
            Reference::of_rows(unit, &self.weights.rows::<T>(), x, y, &rows)
        })
    }

    fn judge(&self, reference: &Reference, output: &Elements) -> Result<Verdict, BenchError> {
        with_dtype!(output.dtype(), T => reference.judge_view(self.y_transposed::<T>(output)?, output.count_nan()))
    }

    fn describe(&self, row: &mut Row) {
        self.workload.describe(row);
        row.stored = Some(self.weights.num_nonzeros);
    }

    /// As many as there must be copies of the weights: each set has its own, whoever computes.
    fn num_sets(&self, cache: Cache, l2_bytes: u64) -> usize {
        let least_bytes = self.weights.num_nonzeros * self.weights.law.dtype.size_bytes() as u64;
        match cache {
            Cache::Warm => 1,
            Cache::Cold => (ROTATED_CACHES * l2_bytes).div_ceil(least_bytes.max(1)).clamp(2, 64) as usize,
        }
    }
}

/// X and Y of a set as the library's views.
///
/// # Errors
/// [`BenchError::Library`] where the sizes do not agree.
///
/// # Safety
/// The set is one of `workload`, whose type is `T`; while the views live, all work on the set is on one stream.
#[cfg(feature = "gpu")]
pub unsafe fn device_views<'s, T: Element>(
    workload: &LinearWorkload,
    set: &'s DeviceSet,
) -> Result<(DeviceDenseView<'s, T>, DeviceDenseViewMut<'s, T>), BenchError> {
    let (m, k, n) = (workload.weights.m, workload.weights.k, workload.tokens);
    let (x, y) = (DevicePtr(set.inputs[0].address()), DevicePtr(set.output.address()));
    // SAFETY: the memory lives as long as the set; the rest is the caller's promise.
    unsafe {
        let x = DeviceDenseView::from_raw_parts(x, n, k, k, Layout::RowMajor).map_err(Error::from)?;
        let y = DeviceDenseViewMut::from_raw_parts(y, n, m, m, Layout::RowMajor).map_err(Error::from)?;
        Ok((x, y))
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;
    use crate::bench::linear::{WeightMask, WeightsLaw};

    fn operands() -> LinearOperands {
        let weights = WeightsLaw { m: 90, k: 50, sparsity: 0.5, mask: WeightMask::Wanda, dtype: Dtype::Bf16, seed: 2 };
        LinearOperands::of(&LinearWorkload { weights, tokens: 3 }, &mut LastWeights::default())
            .expect("the law is sound")
    }

    /// Y by float64, its tokens and outputs in the order of the definition.
    fn right_result(operands: &LinearOperands) -> Elements {
        let WeightsLaw { m, k, dtype, .. } = operands.weights.law;
        let (x, w) = (&operands.x, &operands.weights.w);
        Elements::from_fn(dtype, 3 * m, |index| {
            let (token, output) = (index / m, index % m);
            let products = (0..k).map(|at| x.get(token * k + at) * w.get(output * k + at));
            products.sum::<f64>() as f32
        })
    }

    #[test]
    fn the_right_result_is_right_and_an_element_off_or_not_written_is_wrong() {
        let operands = operands();
        let reference = operands.reference().expect("the sizes agree");
        let right = right_result(&operands);
        let judge = |y: &Elements| operands.judge(&reference, y).expect("the sizes agree");
        assert!(judge(&right).is_right(), "{}", judge(&right));
        // The last output of the last token: its row of W is a sampled one.
        for wrong in [bf16::from_f32(100.0), bf16::NAN] {
            let mut y = right.clone();
            y.as_slice_mut::<bf16>()[3 * 90 - 1] = wrong;
            assert!(!judge(&y).is_right());
        }
    }

    #[test]
    fn copies_of_the_weights_are_together_many_times_the_cache() {
        let operands = operands();
        let bytes = 2 * operands.weights.num_nonzeros;
        assert_eq!(operands.num_sets(Cache::Cold, bytes), 8);
        assert_eq!(operands.num_sets(Cache::Cold, bytes / 100), 2);
        assert_eq!(operands.num_sets(Cache::Cold, 1 << 30), 64);
        assert_eq!(operands.num_sets(Cache::Warm, 1 << 30), 1);
    }
}
