//! Views, to read and to write.

use super::shape::{HeadsAxis, HeadsShape, HeadsStrides, heads_accessors};
use crate::element::Element;
use crate::formats::FormatError;

/// A view of rows in a slice.
///
/// Invariants, all checked: rows do not overlap, and `data` reaches to the end of the last one.
#[derive(Clone, Copy, Debug)]
pub struct HeadsView<'a, T> {
    data: &'a [T],
    shape: HeadsShape,
    strides: HeadsStrides,
}

/// A mutable view of rows in a slice, with the invariants of [`HeadsView`]. What lies between rows is never written.
#[derive(Debug)]
pub struct HeadsViewMut<'a, T> {
    data: &'a mut [T],
    shape: HeadsShape,
    strides: HeadsStrides,
}

impl<'a, T: Element> HeadsView<'a, T> {
    /// A view of `data`, whose first element is the first of sequence 0, token 0, head 0.
    ///
    /// # Errors
    /// [`FormatError::HeadsOverlap`] where rows would overlap, [`FormatError::TooShort`] where `data` ends before the last
    /// one does, [`FormatError::HeadsTooMany`] where its place does not fit 64 bits.
    pub fn try_new(data: &'a [T], shape: HeadsShape, strides: HeadsStrides) -> Result<Self, FormatError> {
        shape.check(strides, data.len())?;
        Ok(Self { data, shape, strides })
    }

    /// A view whose invariants hold.
    pub(super) fn within(data: &'a [T], shape: HeadsShape, strides: HeadsStrides) -> Self {
        Self { data, shape, strides }
    }

    heads_accessors!();

    /// The memory under the view: the first row comes first, and there may be more than the rows.
    #[inline(always)]
    pub fn data(&self) -> &'a [T] {
        self.data
    }

    /// What a token has in a head: `head_dim` elements.
    ///
    /// # Panics
    /// Where there is no such row.
    #[inline(always)]
    pub fn row(&self, batch: usize, token: usize, head: usize) -> &'a [T] {
        let position = self.shape.position(self.strides, batch, token, head);
        // Rows without elements may have no memory at all.
        if self.shape.head_dim == 0 { &[] } else { &self.data[position..][..self.shape.head_dim] }
    }
}

impl<'a, T: Element> HeadsViewMut<'a, T> {
    /// A view of `data`, as [`HeadsView::try_new`].
    ///
    /// # Errors
    /// As [`HeadsView::try_new`].
    pub fn try_new(data: &'a mut [T], shape: HeadsShape, strides: HeadsStrides) -> Result<Self, FormatError> {
        shape.check(strides, data.len())?;
        Ok(Self { data, shape, strides })
    }

    /// A view whose invariants hold.
    pub(super) fn within(data: &'a mut [T], shape: HeadsShape, strides: HeadsStrides) -> Self {
        Self { data, shape, strides }
    }

    heads_accessors!();

    /// The memory under the view, to write: the first row comes first, and there may be more than the rows.
    pub fn data_mut(&mut self) -> &mut [T] {
        self.data
    }

    /// The same view, to read.
    #[inline(always)]
    pub fn as_view(&self) -> HeadsView<'_, T> {
        HeadsView { data: self.data, shape: self.shape, strides: self.strides }
    }

    /// The same view for a shorter time.
    pub fn reborrow(&mut self) -> HeadsViewMut<'_, T> {
        HeadsViewMut { data: self.data, shape: self.shape, strides: self.strides }
    }

    /// What a token has in a head, to write.
    ///
    /// # Panics
    /// Where there is no such row.
    #[inline(always)]
    pub fn row_mut(&mut self, batch: usize, token: usize, head: usize) -> &mut [T] {
        let position = self.shape.position(self.strides, batch, token, head);
        if self.shape.head_dim == 0 { &mut [] } else { &mut self.data[position..][..self.shape.head_dim] }
    }

    /// All rows, by sequence, head and token.
    pub(crate) fn rows_mut(&mut self) -> Vec<&mut [T]> {
        let HeadsShape { batch, tokens, heads, head_dim } = self.shape;
        let mut rows: Vec<&mut [T]> = core::iter::repeat_with(Default::default).take(batch * heads * tokens).collect();
        // In the order of memory: a step along a wider axis passes over everything along a narrower.
        let mut axes = self.shape.steps(self.strides);
        axes.sort_by_key(|&(_, _, stride)| core::cmp::Reverse(stride));
        let [(a, end_a, step_a), (b, end_b, step_b), (c, end_c, step_c)] = axes;
        let (mut rest, mut passed) = (&mut self.data[..], 0);
        for (at_a, at_b) in (0..end_a).flat_map(|at_a| (0..end_b).map(move |at_b| (at_a, at_b))) {
            for at_c in 0..end_c {
                let position = at_a * step_a + at_b * step_b + at_c * step_c;
                let (row, behind) = core::mem::take(&mut rest)[position - passed..].split_at_mut(head_dim);
                (rest, passed) = (behind, position + head_dim);
                let places = [(a, at_a), (b, at_b), (c, at_c)];
                let index: usize = places
                    .into_iter()
                    .map(|(axis, at)| match axis {
                        HeadsAxis::Batch => at * heads * tokens,
                        HeadsAxis::Head => at * tokens,
                        HeadsAxis::Token => at,
                    })
                    .sum();
                rows[index] = row;
            }
        }
        rows
    }
}
