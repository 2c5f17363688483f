//! Dense matrices and views of them: row-major or column-major, with a leading dimension.
//!
//! A *line* is what lies contiguously: a row of a row-major matrix, a column of a column-major one. Code that only
//! needs contiguous memory is written over lines and serves both layouts.

mod owned;
mod shape;
mod view;
mod view_mut;

pub use owned::Dense;
pub use shape::Layout;
pub(crate) use shape::Shape;
#[cfg(feature = "gpu")]
pub(crate) use shape::shape_accessors;
pub use view::DenseView;
pub use view_mut::DenseViewMut;
