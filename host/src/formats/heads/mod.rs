//! Q, K, V and O of attention: tensors of four dimensions, and views of them.
//!
//! A *row* is what one token has in one head: `head_dim` elements, contiguous. Rows lie wherever the strides of batch, token
//! and head put them, so that `[batch, tokens, heads, head_dim]`, `[batch, heads, tokens, head_dim]` and a third of a joint
//! array of Q, K and V are all views of one type. Sequences packed end to end are a batch of one; where each begins is
//! [`Sequences`](crate::ops::attention::Sequences)' affair.

mod owned;
mod shape;
mod view;

pub use owned::Heads;
#[cfg(feature = "gpu")]
pub(crate) use shape::heads_accessors;
pub use shape::{HeadsAxis, HeadsLayout, HeadsShape, HeadsStrides};
pub use view::{HeadsView, HeadsViewMut};
