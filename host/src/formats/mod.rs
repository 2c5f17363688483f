//! Matrix formats: pattern apart from values, with checked invariants.

mod any_bcsr;
mod bcsr;
mod bitmap;
mod block_shape;
mod coo;
mod csr;
mod dense;
mod error;
mod heads;
mod rows;
mod three_layer;
mod wcsr;

pub use any_bcsr::AnyBcsr;
pub use bcsr::{Bcsr, BcsrPattern, BcsrView};
pub use bitmap::{BITMAP_STRIP_ROWS, BITMAP_UNIT_COLS, Bitmap, BitmapStatistics};
#[cfg(any(feature = "gpu", feature = "sim"))]
pub(crate) use bitmap::{GROUP_VALUES, LANES, Walk, first_group, last_group};
pub use block_shape::{BlockShape, FillStatistics};
pub use coo::Coo;
pub(crate) use csr::zeroed_elements;
pub use csr::{Csr, CsrPattern, CsrView};
pub(crate) use dense::Shape;
#[cfg(feature = "gpu")]
pub(crate) use dense::shape_accessors;
pub use dense::{Dense, DenseView, DenseViewMut, Layout};
pub use error::{Axis, FormatError};
#[cfg(feature = "gpu")]
pub(crate) use heads::heads_accessors;
pub use heads::{Heads, HeadsAxis, HeadsLayout, HeadsShape, HeadsStrides, HeadsView, HeadsViewMut};
pub(crate) use rows::accumulate;
pub use three_layer::{ThreeLayer, ThreeLayerParts, ThreeLayerStatistics, TileFault};
pub(crate) use wcsr::GroupSet;
pub use wcsr::{PANEL_COLS, RowOrder, Wcsr, WcsrPattern, WcsrView, WindowShape, WindowStatistics};
