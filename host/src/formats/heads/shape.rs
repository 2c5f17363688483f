//! Where rows lie, on the host or on a device.

use core::fmt;

use crate::formats::FormatError;

/// The extents of a tensor of tokens and heads. Any may be zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeadsShape {
    /// Sequences of equal length; 1 where they are packed.
    pub batch: usize,
    /// Tokens of a sequence; of all together where they are packed.
    pub tokens: usize,
    /// Heads.
    pub heads: usize,
    /// D: the elements that a token has in a head.
    pub head_dim: usize,
}

/// The order in which tokens and heads lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeadsLayout {
    /// `[batch, tokens, heads, head_dim]`: a token's heads lie side by side.
    TokensHeads,
    /// `[batch, heads, tokens, head_dim]`: a head's tokens lie side by side.
    HeadsTokens,
}

/// From one to the next, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeadsStrides {
    /// From sequence to sequence.
    pub batch: usize,
    /// From token to token.
    pub token: usize,
    /// From head to head.
    pub head: usize,
}

/// An axis of such a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeadsAxis {
    /// Sequences.
    Batch,
    /// Tokens.
    Token,
    /// Heads.
    Head,
}

impl fmt::Display for HeadsAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Batch => "sequence",
            Self::Token => "token",
            Self::Head => "head",
        })
    }
}

impl HeadsStrides {
    /// Those without space in between. Extents past the address space saturate, and no slice is as long.
    pub fn tight(shape: HeadsShape, layout: HeadsLayout) -> Self {
        let HeadsShape { tokens, heads, head_dim, .. } = shape;
        let (token, head) = match layout {
            HeadsLayout::TokensHeads => (heads.saturating_mul(head_dim), head_dim),
            HeadsLayout::HeadsTokens => (head_dim, tokens.saturating_mul(head_dim)),
        };
        Self { batch: tokens.saturating_mul(heads).saturating_mul(head_dim), token, head }
    }
}

impl HeadsShape {
    /// The elements; `None` where no address space has so many.
    pub(crate) fn num_elements(self) -> Option<usize> {
        [self.tokens, self.heads, self.head_dim].into_iter().try_fold(self.batch, usize::checked_mul)
    }

    pub(super) fn is_empty(self) -> bool {
        [self.batch, self.tokens, self.heads, self.head_dim].contains(&0)
    }

    /// The elements from the first to the last, with what lies between; `None` where no address space has so many.
    pub(crate) fn reach(self, strides: HeadsStrides) -> Option<usize> {
        if self.is_empty() {
            return Some(0);
        }
        self.steps(strides)
            .into_iter()
            .try_fold(self.head_dim, |reach, (_, extent, stride)| reach.checked_add(stride.checked_mul(extent - 1)?))
    }

    /// Checks that rows do not overlap, and that `found` elements reach to the end of the last.
    ///
    /// Of two axes that differ in stride, one step along the wider must pass over everything along the narrower: then
    /// no two rows meet. There are strides that keep rows apart and not this rule; no array has them.
    ///
    /// # Errors
    /// [`FormatError::HeadsOverlap`], [`FormatError::HeadsTooMany`], [`FormatError::TooShort`].
    pub(crate) fn check(self, strides: HeadsStrides, found: usize) -> Result<(), FormatError> {
        let Self { batch, tokens, heads, head_dim } = self;
        let too_many = FormatError::HeadsTooMany { dims: [batch, tokens, heads, head_dim].map(|dim| dim as u64) };
        let needed = self.reach(strides).ok_or_else(|| too_many.clone())?;
        if needed == 0 {
            return Ok(());
        }
        let mut steps = self.steps(strides);
        steps.sort_by_key(|&(_, _, stride)| stride);
        let mut least = head_dim;
        for (axis, extent, stride) in steps.into_iter().filter(|&(_, extent, _)| extent > 1) {
            if stride < least {
                return Err(FormatError::HeadsOverlap { axis, least: least as u64, found: stride as u64 });
            }
            // At most the reach, which fits.
            least += stride * (extent - 1);
        }
        if found < needed {
            return Err(FormatError::TooShort { array: "data", needed: needed as u64, found: found as u64 });
        }
        Ok(())
    }

    /// Where a row begins.
    ///
    /// # Panics
    /// Where there is no such row.
    #[inline(always)]
    pub(super) fn position(self, strides: HeadsStrides, batch: usize, token: usize, head: usize) -> usize {
        assert!(
            batch < self.batch && token < self.tokens && head < self.heads,
            "sequence {batch}, token {token}, head {head} of {} x {} x {}",
            self.batch,
            self.tokens,
            self.heads
        );
        batch * strides.batch + token * strides.token + head * strides.head
    }

    /// Each axis with its extent and its stride.
    pub(crate) fn steps(self, strides: HeadsStrides) -> [(HeadsAxis, usize, usize); 3] {
        [
            (HeadsAxis::Batch, self.batch, strides.batch),
            (HeadsAxis::Token, self.tokens, strides.token),
            (HeadsAxis::Head, self.heads, strides.head),
        ]
    }
}

impl fmt::Display for HeadsShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { batch, tokens, heads, head_dim } = self;
        write!(f, "{batch} x {tokens} tokens x {heads} heads x {head_dim}")
    }
}

/// The accessors of a type with the fields `shape` and `strides`.
macro_rules! heads_accessors {
    () => {
        /// The extents.
        #[inline(always)]
        pub fn shape(&self) -> HeadsShape {
            self.shape
        }

        /// From one to the next, in elements.
        #[inline(always)]
        pub fn strides(&self) -> HeadsStrides {
            self.strides
        }
    };
}

pub(crate) use heads_accessors;

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: HeadsShape = HeadsShape { batch: 2, tokens: 5, heads: 3, head_dim: 8 };

    #[track_caller]
    fn says(shape: HeadsShape, strides: HeadsStrides, found: usize, sentence: &str) {
        assert_eq!(shape.check(strides, found).expect_err("a refusal").to_string(), sentence);
    }

    #[test]
    fn both_orders_and_joint_arrays_are_accepted() {
        for layout in [HeadsLayout::TokensHeads, HeadsLayout::HeadsTokens] {
            let strides = HeadsStrides::tight(SHAPE, layout);
            assert_eq!(SHAPE.reach(strides), Some(240));
            assert_eq!(SHAPE.check(strides, 240), Ok(()));
        }
        // One of three side by side: [batch, tokens, 3, heads, head_dim].
        let joint = HeadsStrides { batch: 5 * 72, token: 72, head: 8 };
        assert_eq!(SHAPE.reach(joint), Some(360 + 4 * 72 + 24));
        assert_eq!(SHAPE.check(joint, 720 - 48), Ok(()));
    }

    #[test]
    fn refusals_are_sentences() {
        let tight = HeadsStrides::tight(SHAPE, HeadsLayout::TokensHeads);
        says(SHAPE, tight, 239, "`data` has 239 elements, but at least 240 are needed");
        let close = HeadsStrides { token: 20, ..tight };
        says(
            SHAPE,
            close,
            1000,
            "from token to token there are 20 elements, but 24 or more are needed, lest rows overlap",
        );
        // A head for all: such tensors have one head.
        let broadcast = HeadsStrides { head: 0, ..tight };
        says(
            SHAPE,
            broadcast,
            1000,
            "from head to head there are 0 elements, but 8 or more are needed, lest rows overlap",
        );
        let huge = HeadsShape { tokens: usize::MAX, ..SHAPE };
        says(huge, tight, 0, "2 x 18446744073709551615 x 3 x 8 elements are more than memory can be addressed");
    }

    #[test]
    fn strides_of_single_and_empty_axes_do_not_matter() {
        let one = HeadsShape { batch: 1, heads: 1, ..SHAPE };
        assert_eq!(one.check(HeadsStrides { batch: 0, token: 8, head: 0 }, 40), Ok(()));
        let none = HeadsShape { tokens: 0, ..SHAPE };
        assert_eq!(none.check(HeadsStrides { batch: 0, token: 0, head: 0 }, 0), Ok(()));
    }
}
