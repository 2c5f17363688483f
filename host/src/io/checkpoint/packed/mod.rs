//! Packed checkpoints: every layer in the format that suits it, in one safetensors file.
//!
//! The file holds the tensors of the checkpoint that belong to no layer as they were, and of each layer the *parts* of its
//! format, tensors of one dimension named `<weight>.<part>`:
//!
//! | format | parts |
//! | --- | --- |
//! | `dense` | `values`, row-major |
//! | `csr` | `row_offsets` (U64), `col_indices` (U32), `values` |
//! | `bitmap` | `masks` (U32), `values` |
//!
//! Its metadata say what it is:
//!
//! | key | value |
//! | --- | --- |
//! | `format` | `hopper-sparse` |
//! | `kind` | `model` |
//! | `version` | `1` |
//! | `layers` | JSON: of each weight `format`, `shape` (rows and columns), `dtype`, `nonzeros`, `row_min`, `row_max` |
//!
//! Tensors of wide elements come first, so that all are aligned in the mapped file. The same checkpoint gives the same file,
//! byte for byte. -0.0 is zero in every format but `dense`, which keeps all bits; NaN and infinities are kept by all.
//!
//! A [`Conversion`] writes one, layer by layer; a [`PackedModel`] reads it.

mod balance;
mod conversion;
mod entry;
mod layer_file;
mod model;
mod weight;

pub use balance::RowBalance;
pub use conversion::{Conversion, ConversionOptions};
pub use entry::LayerEntry;
pub use model::PackedModel;
pub use weight::{FormatRule, PackedWeight, WeightFormat};

/// The version of the metadata that is written, and the only one that is read.
pub(super) const VERSION: &str = "1";

/// What the metadata say of a file of ours.
const FORMAT: &str = "hopper-sparse";
