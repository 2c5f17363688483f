//! Checkpoints in, packed out: exact, whole or not at all, and a sentence for each thing that is wrong.

#[path = "checkpoint/model.rs"]
mod model;
#[path = "checkpoint/packing.rs"]
mod packing;
#[path = "checkpoint/pruning.rs"]
mod pruning;
#[path = "checkpoint/reading.rs"]
mod reading;
