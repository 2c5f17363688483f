//! Matrix formats: pattern apart from values, with checked invariants.

mod any_bcsr;
mod bcsr;
mod block_shape;
mod coo;
mod csr;
mod dense;
mod error;
mod rows;

pub use any_bcsr::AnyBcsr;
pub use bcsr::{Bcsr, BcsrPattern, BcsrView};
pub use block_shape::{BlockShape, FillStatistics};
pub use coo::Coo;
pub use csr::{Csr, CsrPattern, CsrView};
pub use dense::{Dense, DenseView, DenseViewMut, Layout};
#[cfg(any(feature = "gpu", feature = "sim"))]
pub(crate) use dense::{Shape, shape_accessors};
pub use error::{Axis, FormatError};
pub(crate) use rows::accumulate;
