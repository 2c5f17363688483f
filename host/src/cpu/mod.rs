//! The CPU backend: products with a sparse factor, and attention.
//!
//! **Products.** C = alpha A B + beta C, with A sparse (M x K), B (K x N) and C (M x N) dense.
//! Any M, N and K, zero included; B and C each row-major or column-major with any leading dimension. Input of
//! `bf16`, `f16` and `f32` is multiplied and added up in `f32`, `f64` in `f64`; each element is rounded to the type of C
//! once, at the end.
//!
//! Rows are shared out to the threads of the current [rayon] pool, balanced by their entries. An element is always
//! computed by one thread in the order of the columns of A, so the same input gives the same bits whatever the pool.
//! NaN and infinity take the way that IEEE 754 prescribes, through explicit zeros of A too. As in BLAS, a factor of
//! zero means *not read*: with `beta = 0` no element of C matters, with `alpha = 0` none of A and B does.
//!
//! **Attention.** O = softmax(scale Q K^T) V for the problems that the GPU kernels serve, from 16-bit tensors with any strides: scores,
//! exponentials and sums in f32, O rounded once, at the end. A sequence has the same bits in any batch and by any number of threads.

mod attention;
mod bands;
mod bcsr;
mod csr;
mod panel;
mod scale;
mod simd;

use crate::element::Element;
use crate::error::Result;
use crate::formats::{BcsrView, CsrView, DenseView, DenseViewMut, HeadsView, HeadsViewMut};
use crate::ops::attention::Attention;
#[cfg(doc)]
use crate::ops::attention::AttentionError;
use crate::ops::attention::blocks::SparseAttention;
use crate::ops::check_spmm_shapes;
use scale::{Scale, scale_only};
use simd::Path;

/// C = alpha A B + beta C with A in [CSR](CsrView). `alpha` and `beta` are rounded to the accumulator's type.
///
/// # Errors
/// [`PlanError::ShapeMismatch`](crate::ops::PlanError::ShapeMismatch).
///
/// # Panics
/// Where the view of A breaks an invariant of [`CsrPattern`](crate::formats::CsrPattern).
pub fn spmm_csr<T: Element, U: Element>(
    alpha: f64,
    a: CsrView<'_, T>,
    b: DenseView<'_, T>,
    beta: f64,
    c: &mut DenseViewMut<'_, U>,
) -> Result<()> {
    if let Some(scale) = begin((a.num_rows, a.num_cols), alpha, b, beta, c)? {
        csr::spmm(Path::best(), scale, a, b, c);
    }
    Ok(())
}

/// C = alpha A B + beta C with A in [BCSR](BcsrView). `alpha` and `beta` are rounded to the accumulator's type.
///
/// All elements of a stored block that lie inside of A are multiplied, so a zero in a block meets an infinity in B as
/// an explicit zero does.
///
/// # Errors
/// [`PlanError::ShapeMismatch`](crate::ops::PlanError::ShapeMismatch).
///
/// # Panics
/// Where the view of A breaks an invariant of [`BcsrPattern`](crate::formats::BcsrPattern).
pub fn spmm_bcsr<T: Element, U: Element>(
    alpha: f64,
    a: BcsrView<'_, T>,
    b: DenseView<'_, T>,
    beta: f64,
    c: &mut DenseViewMut<'_, U>,
) -> Result<()> {
    if let Some(scale) = begin((a.num_rows, a.num_cols), alpha, b, beta, c)? {
        bcsr::spmm(scale, a, b, c);
    }
    Ok(())
}

/// O = softmax(scale Q K^T) V by sequence and head, and with an array for them the log-sum-exps, as
/// [`ops::attention`](crate::ops::attention) defines them. Every row of a sequence is written.
///
/// Q and O have the shape [`Attention::query_shape`], K and V [`Attention::key_shape`]; strides are free. A row that sees no key is 0,
/// and its log-sum-exp minus infinity.
///
/// ```
/// use hopper_sparse::formats::{Heads, HeadsLayout};
/// use hopper_sparse::ops::attention::{Attention, Sequences, Window};
/// use hopper_sparse::{Dtype, bf16, cpu};
///
/// let problem = Attention::new(Sequences::of_lengths(&[3, 5]), 2, 8, Dtype::Bf16).with_window(Window::CAUSAL);
/// let ones = Heads::from_vec(vec![bf16::ONE; 8 * 2 * 8], problem.key_shape(), HeadsLayout::TokensHeads)?;
/// let mut o = Heads::zeros(problem.query_shape(), HeadsLayout::TokensHeads);
/// cpu::attention(&problem, ones.view(), ones.view(), ones.view(), &mut o.view_mut(), None)?;
/// assert!(o.data().iter().all(|&element| element == bf16::ONE));
/// # Ok::<(), hopper_sparse::Error>(())
/// ```
///
/// # Errors
/// As [`Attention::check`]; [`AttentionError::OtherDtype`], [`AttentionError::OtherShape`] or [`AttentionError::LseShape`] where a
/// tensor is not the problem's.
pub fn attention<T: Element>(
    problem: &Attention,
    q: HeadsView<'_, T>,
    k: HeadsView<'_, T>,
    v: HeadsView<'_, T>,
    o: &mut HeadsViewMut<'_, T>,
    lse: Option<&mut DenseViewMut<'_, f32>>,
) -> Result<()> {
    attention::attention(Path::best(), problem, [q, k, v], o, lse)
}

/// As [`attention`](fn@attention), where blocks of queries see the keys of lists. K and V at other keys are not read.
///
/// # Errors
/// As [`SparseAttention::check`], and as [`attention`](fn@attention).
pub fn attention_to_lists<T: Element>(
    problem: &SparseAttention,
    q: HeadsView<'_, T>,
    k: HeadsView<'_, T>,
    v: HeadsView<'_, T>,
    o: &mut HeadsViewMut<'_, T>,
    lse: Option<&mut DenseViewMut<'_, f32>>,
) -> Result<()> {
    attention::attention_to_lists(Path::best(), problem, [q, k, v], o, lse)
}

/// Checks the shapes, and does what needs no product. Returns the factors where there is a product to compute.
fn begin<T: Element, U: Element>(
    a_shape: (usize, usize),
    alpha: f64,
    b: DenseView<'_, T>,
    beta: f64,
    c: &mut DenseViewMut<'_, U>,
) -> Result<Option<Scale<T::Accumulator>>> {
    check_spmm_shapes(a_shape, (b.num_rows(), b.num_cols()), (c.num_rows(), c.num_cols()))?;
    let scale = Scale::new(alpha, beta);
    if scale.is_without_product() {
        scale_only(scale, c);
        return Ok(None);
    }
    Ok((c.num_rows() > 0 && c.num_cols() > 0).then_some(scale))
}
