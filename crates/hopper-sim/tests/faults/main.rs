//! Planted faults: small kernels, each right but for one switch, and what the simulator says of it.
//!
//! Every module has a right kernel, which must come to the right numbers with nothing found, and the ways in which it
//! can be wrong. A fault counts as caught where some schedule finds the kind that names it first of all, at the line of
//! source and with the words that belong to it.
//!
//! `HOPPER_SIM_SEEDS=200 cargo test --release -p hopper-sim --test faults the_right` gives each right kernel 200 seeds of
//! each mode.
#![allow(
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc,
    reason = "every line of these kernels is an instruction, and what is wrong about it is the test"
)]

mod banks;
mod block;
mod check;
mod cluster;
mod copies;
mod epilogue;
mod machine;
mod product;
mod registers;
mod ring;
mod slots;
mod warps;
