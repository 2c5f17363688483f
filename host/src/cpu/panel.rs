//! B in the accumulator's type: borrowed where it already is, else a widened copy.

use std::borrow::Cow;

use half::f16;
use half::slice::HalfFloatSliceExt;
use rayon::prelude::*;

use crate::element::{Accumulator, Dtype, Element};
use crate::formats::{DenseView, Layout};

/// A K x N matrix in the accumulator's type: element (k, j) is at `k * row_stride + j * col_stride`.
pub(super) struct Panel<'a, A: Clone> {
    pub data: Cow<'a, [A]>,
    pub row_stride: usize,
    pub col_stride: usize,
}

impl<'a, A: Accumulator> Panel<'a, A> {
    /// B in either layout.
    pub(super) fn new<T: Element>(b: DenseView<'a, T>) -> Self {
        match Self::borrowed(b) {
            Some(panel) => panel,
            None => Self::row_major_copy(b),
        }
    }

    /// B in row-major order.
    pub(super) fn row_major<T: Element>(b: DenseView<'a, T>) -> Self {
        match Self::borrowed(b) {
            Some(panel) if panel.col_stride == 1 => panel,
            _ => Self::row_major_copy(b),
        }
    }

    /// B as it is, where its type is the accumulator's.
    fn borrowed<T: Element>(b: DenseView<'a, T>) -> Option<Self> {
        if T::DTYPE != A::DTYPE {
            return None;
        }
        let (row_stride, col_stride) = match b.layout() {
            Layout::RowMajor => (b.leading_dimension(), 1),
            Layout::ColumnMajor => (1, b.leading_dimension()),
        };
        Some(Self { data: Cow::Borrowed(bytemuck::cast_slice(b.data())), row_stride, col_stride })
    }

    fn row_major_copy<T: Element>(b: DenseView<'a, T>) -> Self {
        // Rows that one task copies: of a column-major B it reads this many elements of each column.
        const TASK_ROWS: usize = 64;
        let num_cols = b.num_cols();
        let mut data = vec![A::ZERO; b.num_rows() * num_cols];
        data.par_chunks_mut((TASK_ROWS * num_cols).max(1)).enumerate().for_each(|(task, rows)| {
            let first_row = task * TASK_ROWS;
            match b.layout() {
                Layout::RowMajor => {
                    for (at, row) in rows.chunks_exact_mut(num_cols).enumerate() {
                        widen(b.line(first_row + at), row);
                    }
                }
                Layout::ColumnMajor => {
                    let mut column = [A::ZERO; TASK_ROWS];
                    let column = &mut column[..rows.len() / num_cols];
                    for col in 0..num_cols {
                        widen(&b.line(col)[first_row..][..column.len()], column);
                        for (row, &value) in rows.chunks_exact_mut(num_cols).zip(column.iter()) {
                            row[col] = value;
                        }
                    }
                }
            }
        });
        Self { data: Cow::Owned(data), row_stride: num_cols, col_stride: 1 }
    }
}

/// Widens slices of the same length.
pub(super) fn widen<T: Element, A: Accumulator>(source: &[T], target: &mut [A]) {
    if T::DTYPE == Dtype::F16 {
        // PERF: half converts a slice of f16 eight at a time where the machine can; one at a time it asks the machine
        // each time whether it can.
        let source: &[f16] = bytemuck::cast_slice(source);
        source.convert_to_f32_slice(bytemuck::cast_slice_mut(target));
        return;
    }
    for (value, wide) in source.iter().zip(target) {
        *wide = A::widen(*value);
    }
}
