//! Tensors of tokens and heads, and log-sum-exps, for tests: random or poisoned, with space between rows.

use hopper_sparse::Element;
use hopper_sparse::formats::{DenseView, DenseViewMut, HeadsShape, HeadsStrides, HeadsView, HeadsViewMut, Layout};
use hopper_sparse::ops::attention::Attention;
use rayon::prelude::*;

use super::operands::Random;

/// How a tensor lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadsPlacement {
    /// `[batch, tokens, heads, head_dim]`.
    Tokens,
    /// `[batch, heads, tokens, head_dim]`.
    Heads,
    /// `[batch, tokens, heads, head_dim]`, eight elements between rows and 24 between tokens.
    TokensApart,
    /// `[batch, heads, tokens, head_dim]`, eight elements between rows and 40 between heads.
    HeadsApart,
}

impl HeadsPlacement {
    pub const ALL: [Self; 4] = [Self::Tokens, Self::Heads, Self::TokensApart, Self::HeadsApart];

    fn strides(self, shape: HeadsShape) -> HeadsStrides {
        let HeadsShape { tokens, heads, head_dim, .. } = shape;
        let (row, line) = match self {
            Self::Tokens | Self::Heads => (head_dim, 0),
            Self::TokensApart => (head_dim + 8, 24),
            Self::HeadsApart => (head_dim + 8, 40),
        };
        match self {
            Self::Tokens | Self::TokensApart => {
                HeadsStrides { batch: tokens * (heads * row + line), token: heads * row + line, head: row }
            }
            Self::Heads | Self::HeadsApart => {
                HeadsStrides { batch: heads * (tokens * row + line), token: row, head: tokens * row + line }
            }
        }
    }
}

/// A tensor whose memory ends with its last row. What lies between rows, and all poison, is NaN.
pub struct HeadsBuffer<T> {
    data: Vec<T>,
    pub shape: HeadsShape,
    strides: HeadsStrides,
}

impl<T: Element> HeadsBuffer<T> {
    pub fn poisoned(shape: HeadsShape, placement: HeadsPlacement) -> Self {
        let strides = placement.strides(shape);
        let HeadsShape { batch, tokens, heads, head_dim } = shape;
        let reach = match batch * tokens * heads {
            0 => 0,
            _ => (batch - 1) * strides.batch + (tokens - 1) * strides.token + (heads - 1) * strides.head + head_dim,
        };
        Self { data: vec![T::from_f64(f64::NAN); reach], shape, strides }
    }

    /// Elements from `-size` to `size`.
    pub fn random(shape: HeadsShape, placement: HeadsPlacement, size: f32, random: &mut Random) -> Self {
        const PIECE: usize = 1 << 14;
        let mut drawn = Self::poisoned(shape, placement);
        let seed = random.next();
        drawn.data.par_chunks_mut(PIECE).enumerate().for_each(|(index, piece)| {
            let mut random = Random::new(seed ^ Random::new(index as u64).next());
            piece.fill_with(|| T::from_f32(size * (2.0 * random.unit() - 1.0) as f32));
        });
        if drawn.is_tight() {
            return drawn;
        }
        let mut buffer = Self::poisoned(shape, placement);
        buffer.for_each_row(|(batch, token, head), row| row.copy_from_slice(drawn.view().row(batch, token, head)));
        buffer
    }

    /// Whether there is nothing between rows.
    fn is_tight(&self) -> bool {
        let HeadsShape { batch, tokens, heads, head_dim } = self.shape;
        self.data.len() == batch * tokens * heads * head_dim
    }

    fn for_each_row(&mut self, mut visit: impl FnMut((usize, usize, usize), &mut [T])) {
        let HeadsShape { batch, tokens, heads, .. } = self.shape;
        let mut view = self.view_mut();
        for batch in 0..batch {
            for token in 0..tokens {
                for head in 0..heads {
                    visit((batch, token, head), view.row_mut(batch, token, head));
                }
            }
        }
    }

    pub fn view(&self) -> HeadsView<'_, T> {
        HeadsView::try_new(&self.data, self.shape, self.strides).expect("the buffer was made for this view")
    }

    pub fn view_mut(&mut self) -> HeadsViewMut<'_, T> {
        HeadsViewMut::try_new(&mut self.data, self.shape, self.strides).expect("the buffer was made for this view")
    }

    /// Whether what lies between rows still is poison.
    pub fn gaps_are_untouched(&self) -> bool {
        if self.is_tight() {
            return true;
        }
        let mut rest = Self { data: self.data.clone(), shape: self.shape, strides: self.strides };
        rest.for_each_row(|_, row| row.fill(T::from_f64(f64::NAN)));
        rest.data.iter().all(|element| element.to_f64().is_nan())
    }
}

/// The array of log-sum-exps, poisoned.
pub struct LseBuffer {
    data: Vec<f32>,
    shape: [usize; 2],
}

impl LseBuffer {
    pub fn poisoned(problem: &Attention) -> Self {
        let shape = problem.lse_shape();
        Self { data: vec![f32::NAN; shape[0] * shape[1]], shape }
    }

    pub fn view(&self) -> DenseView<'_, f32> {
        let [rows, cols] = self.shape;
        DenseView::try_new(&self.data, rows, cols, cols, Layout::RowMajor).expect("the buffer was made for this view")
    }

    pub fn view_mut(&mut self) -> DenseViewMut<'_, f32> {
        let [rows, cols] = self.shape;
        DenseViewMut::try_new(&mut self.data, rows, cols, cols, Layout::RowMajor)
            .expect("the buffer was made for this view")
    }
}
