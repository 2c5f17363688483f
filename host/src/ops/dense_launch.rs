//! How kernels read B and write C, the same for every format of A that tensor cores multiply.

use hopper_std::global::GlobalArray;
use kernels_gpu::store::{Output, OutputKind};

use super::Placed;
use crate::element::Dtype;
#[cfg(feature = "sim")]
use crate::element::Element;
use crate::formats::Layout;
#[cfg(feature = "sim")]
use crate::formats::{DenseView, Shape};
use crate::tensor_map::TensorMapSwizzle;

/// A tensor copy's alignment of base and lines, in bytes.
pub(super) const LINE_BYTES: usize = 16;

/// The configuration's number as the host's type; the kernels' swizzles are 1 to 3.
pub(super) fn swizzle(number: u32) -> TensorMapSwizzle {
    TensorMapSwizzle::from_number(number).unwrap_or(TensorMapSwizzle::None)
}

/// Whether tensor copies can read the matrix where it is.
pub(super) fn is_aligned(b: Placed) -> bool {
    b.line_alignment() >= LINE_BYTES as u64
}

/// C = alpha A B + beta C, as kernels are told of it.
pub(super) fn output(c: Placed, alpha: f32, beta: f32) -> Output {
    Output {
        c: c.address.as_mut_ptr(),
        leading_dimension: c.shape.leading_dimension as u64,
        num_rows: c.shape.num_rows as u32,
        num_cols: c.shape.num_cols as u32,
        alpha,
        beta,
        kind: output_kind(c, beta) as u32,
        row_order: GlobalArray::null(),
        col_order: GlobalArray::null(),
    }
}

/// The same with the rows of the sums in an order, a row of C for each.
pub(super) fn output_in_order(c: Placed, alpha: f32, beta: f32, rows: GlobalArray<u32>) -> Output {
    let output = output(c, alpha, beta);
    // Neighbours of a column are none in C: nothing can be packed.
    let kind = if output.kind == OutputKind::HalfCols as u32 { OutputKind::HalfColsAny as u32 } else { output.kind };
    Output { row_order: rows, kind, ..output }
}

/// The fastest epilogue that can store to C.
fn output_kind(c: Placed, beta: f32) -> OutputKind {
    let rows = c.shape.layout == Layout::RowMajor;
    if c.dtype == Dtype::F32 {
        return if rows { OutputKind::FloatRows } else { OutputKind::FloatCols };
    }
    let packed = beta == 0.0
        && c.address.0.is_multiple_of(16)
        && c.shape.leading_dimension.is_multiple_of(8)
        && c.shape.line_len().is_multiple_of(8);
    match (rows, packed) {
        (true, true) => OutputKind::HalfRows,
        (false, true) => OutputKind::HalfCols,
        (true, false) => OutputKind::HalfRowsAny,
        (false, false) => OutputKind::HalfColsAny,
    }
}

/// The matrix with lines of a multiple of `bytes` bytes, the last one too, zeros at their ends.
#[cfg(feature = "sim")]
pub(super) fn with_lines_of<T: Element>(b: DenseView<'_, T>, bytes: usize) -> (Shape, Vec<T>) {
    let leading_dimension = b.shape.line_len().next_multiple_of(bytes / size_of::<T>());
    let shape = Shape { leading_dimension, ..b.shape };
    let mut data = vec![T::ZERO; leading_dimension * shape.num_lines()];
    for (index, to) in data.chunks_mut(leading_dimension.max(1)).enumerate() {
        to[..shape.line_len()].copy_from_slice(b.line(index));
    }
    (shape, data)
}
