//! Runs Hopper kernels written with hopper-std on the CPU, and finds what only a GPU would show.

mod finding;
mod fragments;
mod product;
mod schedule;
pub mod tensor_map;

pub use finding::{Finding, FindingKind, Report};
pub use schedule::{Mode, Schedule};
pub use tensor_map::{EncodedTensorMap, TensorElement, TensorMap, TensorSwizzle};
