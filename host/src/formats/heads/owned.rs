//! A tensor that owns its elements.

use super::shape::{HeadsLayout, HeadsShape, HeadsStrides, heads_accessors};
use super::{HeadsView, HeadsViewMut};
use crate::element::Element;
use crate::formats::FormatError;

/// An owned tensor of tokens and heads, without space between rows.
///
/// Invariant: `data` holds exactly as many elements as the shape has.
#[derive(Clone, Debug, PartialEq)]
pub struct Heads<T> {
    data: Vec<T>,
    shape: HeadsShape,
    strides: HeadsStrides,
}

impl<T: Element> Heads<T> {
    /// A tensor of zeros.
    ///
    /// # Panics
    /// Like [`Vec::with_capacity`], where so many elements cannot be addressed.
    pub fn zeros(shape: HeadsShape, layout: HeadsLayout) -> Self {
        let data = vec![T::ZERO; shape.num_elements().unwrap_or(usize::MAX)];
        Self { data, shape, strides: HeadsStrides::tight(shape, layout) }
    }

    /// Takes the elements of `data`, in the order of `layout`.
    ///
    /// # Errors
    /// [`FormatError::Length`] where `data` has another number of elements.
    pub fn from_vec(data: Vec<T>, shape: HeadsShape, layout: HeadsLayout) -> Result<Self, FormatError> {
        match shape.num_elements() {
            Some(expected) if expected == data.len() => {
                Ok(Self { data, shape, strides: HeadsStrides::tight(shape, layout) })
            }
            expected => Err(FormatError::Length {
                array: "data",
                expected: expected.map_or(u64::MAX, |expected| expected as u64),
                found: data.len() as u64,
            }),
        }
    }

    heads_accessors!();

    /// The elements, in the order of the layout.
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// The elements, in the order of the layout, to write.
    pub fn data_mut(&mut self) -> &mut [T] {
        &mut self.data
    }

    /// The whole tensor, to read.
    pub fn view(&self) -> HeadsView<'_, T> {
        HeadsView::within(&self.data, self.shape, self.strides)
    }

    /// The whole tensor, to write.
    pub fn view_mut(&mut self) -> HeadsViewMut<'_, T> {
        HeadsViewMut::within(&mut self.data, self.shape, self.strides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lie_where_the_layout_says() {
        let shape = HeadsShape { batch: 2, tokens: 3, heads: 2, head_dim: 4 };
        let data: Vec<f32> = (0..48).map(|index| index as f32).collect();
        let tokens = Heads::from_vec(data.clone(), shape, HeadsLayout::TokensHeads).expect("48 elements");
        assert_eq!(tokens.view().row(1, 2, 1), [44.0, 45.0, 46.0, 47.0]);
        assert_eq!(tokens.view().row(0, 1, 0), [8.0, 9.0, 10.0, 11.0]);
        let mut heads = Heads::from_vec(data, shape, HeadsLayout::HeadsTokens).expect("48 elements");
        assert_eq!(heads.view().row(0, 1, 0), [4.0, 5.0, 6.0, 7.0]);
        heads.view_mut().row_mut(1, 0, 1).fill(-1.0);
        assert_eq!(heads.data()[36..40], [-1.0; 4]);
        let error = Heads::from_vec(vec![0.0_f32; 47], shape, HeadsLayout::HeadsTokens).expect_err("one is missing");
        assert_eq!(error.to_string(), "`data` has 47 elements, but 48 are expected");
    }
}
