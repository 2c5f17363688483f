//! Q, K and V of a workload, drawn from its seed.

use hopper_sparse::formats::{FormatError, HeadsLayout, HeadsShape, HeadsStrides, HeadsView, HeadsViewMut};
#[cfg(feature = "gpu")]
use hopper_sparse::gpu::{DeviceHeadsView, DeviceHeadsViewMut, DevicePtr};
use hopper_sparse::ops::attention::Attention;
use hopper_sparse::ops::attention::blocks::SparseAttention;
use hopper_sparse::{Dtype, Element};

use super::attention::AttentionWorkload;
use super::attention_check::AttentionReference;
#[cfg(feature = "gpu")]
use super::device::DeviceSet;
use super::elements::Elements;
use super::error::BenchError;
use super::operands::{Operands, Verdict};
use super::record::Row;
use crate::random::{Random, normal_at};

/// Q, K and V, each `[batch, tokens, heads, head_dim]`.
#[derive(Debug)]
pub struct AttentionOperands {
    /// The workload.
    pub workload: AttentionWorkload,
    /// Queries.
    pub q: Elements,
    /// Keys.
    pub k: Elements,
    /// Values.
    pub v: Elements,
    /// The problem with its lists, where the workload has lists.
    pub sparse: Option<SparseAttention>,
}

impl AttentionOperands {
    /// Draws Q, K and V: normal numbers.
    pub fn of(workload: &AttentionWorkload) -> Self {
        let mut random = Random::new(workload.seed);
        let mut draw = |len| {
            let stream = random.next_u64();
            Elements::from_fn(workload.problem.dtype, len, |index| normal_at(stream, index as u64))
        };
        Self {
            q: draw(workload.num_query_elements()),
            k: draw(workload.num_key_elements()),
            v: draw(workload.num_key_elements()),
            sparse: workload.sparse(),
            workload: workload.clone(),
        }
    }

    /// What is computed.
    pub fn problem(&self) -> &Attention {
        &self.workload.problem
    }

    /// Q, K and V as the library's views.
    ///
    /// # Errors
    /// [`BenchError::Library`] where sizes do not agree.
    pub fn views<T: Element>(&self) -> Result<[HeadsView<'_, T>; 3], BenchError> {
        let (queries, keys) = (self.problem().query_shape(), self.problem().key_shape());
        Ok([view(&self.q, queries)?, view(&self.k, keys)?, view(&self.v, keys)?])
    }

    /// Elements of O as the library's view.
    ///
    /// # Errors
    /// [`BenchError::Library`] where sizes do not agree.
    pub fn o_view<'o, T: Element>(&self, o: &'o Elements) -> Result<HeadsView<'o, T>, BenchError> {
        view(o, self.problem().query_shape())
    }

    /// The same, to write.
    ///
    /// # Errors
    /// [`BenchError::Library`] where sizes do not agree.
    pub fn o_view_mut<'o, T: Element>(&self, o: &'o mut Elements) -> Result<HeadsViewMut<'o, T>, BenchError> {
        let shape = self.problem().query_shape();
        HeadsViewMut::try_new(o.as_slice_mut(), shape, tight(shape)).map_err(library)
    }
}

fn view<T: Element>(elements: &Elements, shape: HeadsShape) -> Result<HeadsView<'_, T>, BenchError> {
    HeadsView::try_new(elements.as_slice(), shape, tight(shape)).map_err(library)
}

fn tight(shape: HeadsShape) -> HeadsStrides {
    HeadsStrides::tight(shape, HeadsLayout::TokensHeads)
}

fn library(error: FormatError) -> BenchError {
    BenchError::Library(error.into())
}

/// Q, K and V, and O, of a set as the library's views.
///
/// # Errors
/// [`FormatError`] where sizes do not agree.
///
/// # Safety
/// The set is one of `problem`, whose type is `T`; while the views live, all work on the set is on one stream.
#[cfg(feature = "gpu")]
pub unsafe fn device_views<'s, T: Element>(
    problem: &Attention,
    set: &'s DeviceSet,
) -> Result<([DeviceHeadsView<'s, T>; 3], DeviceHeadsViewMut<'s, T>), FormatError> {
    let (queries, keys) = (problem.query_shape(), problem.key_shape());
    let address = |input: usize| DevicePtr(set.inputs[input].address());
    // SAFETY: the memory lives as long as the set; the rest is the caller's promise.
    unsafe {
        let q = DeviceHeadsView::from_raw_parts(address(0), queries, tight(queries))?;
        let k = DeviceHeadsView::from_raw_parts(address(1), keys, tight(keys))?;
        let v = DeviceHeadsView::from_raw_parts(address(2), keys, tight(keys))?;
        let o = DeviceHeadsViewMut::from_raw_parts(DevicePtr(set.output.address()), queries, tight(queries))?;
        Ok(([q, k, v], o))
    }
}

impl Operands for AttentionOperands {
    type Problem = AttentionWorkload;
    type Reference = AttentionReference;

    fn problem(&self) -> &AttentionWorkload {
        &self.workload
    }

    fn inputs(&self) -> Vec<&Elements> {
        vec![&self.q, &self.k, &self.v]
    }

    fn output(&self) -> (Dtype, usize) {
        (self.workload.problem.dtype, self.workload.num_query_elements())
    }

    fn reference(&self) -> Result<AttentionReference, BenchError> {
        AttentionReference::of(self)
    }

    fn judge(&self, reference: &AttentionReference, output: &Elements) -> Result<Verdict, BenchError> {
        reference.judge(self, output)
    }

    fn describe(&self, row: &mut Row) {
        self.workload.describe(row);
    }
}

#[cfg(test)]
mod tests {
    use hopper_sparse::ops::attention::{Sequences, Window};

    use super::*;

    fn operands() -> AttentionOperands {
        let problem = Attention::new(Sequences::of_lengths(&[5, 0, 12]), 4, 16, Dtype::Bf16)
            .with_key_heads(2)
            .with_window(Window::CAUSAL);
        AttentionOperands::of(&AttentionWorkload { problem, listed: None, seed: 3 })
    }

    #[test]
    fn an_element_off_or_not_written_is_wrong() {
        use half::bf16;

        let operands = operands();
        let reference = operands.reference().expect("a problem");
        let (dtype, len) = operands.output();
        let mut o = Elements::from_fn(dtype, len, |_| 0.0);
        assert!(!operands.judge(&reference, &o).expect("the sizes agree").is_right());
        o.as_slice_mut::<bf16>()[7] = bf16::NAN;
        let verdict = operands.judge(&reference, &o).expect("the sizes agree");
        assert!(verdict.to_string().contains("never written"), "{verdict}");
    }

    #[test]
    fn queries_keys_and_values_differ_and_the_seed_repeats_them() {
        let (first, second) = (operands(), operands());
        assert_eq!((&first.q, &first.k, &first.v), (&second.q, &second.k, &second.v));
        assert_ne!(first.k, first.v);
        assert_eq!(first.set_bytes(), first.workload.bytes());
    }
}
