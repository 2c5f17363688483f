//! Matrix formats: pattern apart from values, with checked invariants.

mod bcsr;
mod coo;
mod csr;
mod dense;
mod error;

pub use bcsr::{Bcsr, BcsrPattern, BcsrView, BlockShape, FillStatistics};
pub use coo::Coo;
pub use csr::{Csr, CsrPattern, CsrView};
pub use dense::{Dense, DenseView, DenseViewMut, Layout};
pub use error::{Axis, FormatError};
