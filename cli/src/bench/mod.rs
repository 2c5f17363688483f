//! `hopper-sparse bench`: is it right, and how fast is it beside its peers?
//!
//! A *workload* is a problem and the names of the implementations to compare on it; a *suite* is a file of workloads.
//! For each workload every [`Implementation`](implementation::Implementation) prepares itself, gives a result that is
//! checked against the float64 reference, and, if that is right, is timed: one sample of each in turn, so that a change
//! of clock or temperature meets all of them alike. A wrong result has no time.
#![cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "half of the harness serves implementations on a device"))]

mod arena;
mod args;
mod attention;
mod attention_check;
#[cfg(feature = "gpu")]
mod attention_on_device;
mod attention_operands;
mod contest;
#[cfg(feature = "gpu")]
mod device;
mod elements;
mod error;
#[cfg(feature = "gpu")]
mod graph;
mod implementation;
mod implementations;
mod launch;
#[cfg(feature = "gpu")]
mod limits;
mod linear;
mod linear_operands;
mod linear_report;
mod linear_suite;
mod linear_weights;
mod load;
mod machine;
mod matrix_file;
mod matrix_sets;
mod means;
mod on_cpu;
mod operands;
#[cfg(feature = "gpu")]
mod our_linear;
#[cfg(feature = "gpu")]
mod our_product;
mod peer;
mod peer_process;
mod plot;
mod product_check;
mod product_operands;
mod record;
mod registry;
mod report;
mod run;
mod session;
mod suite;
#[cfg(feature = "gpu")]
mod vendor;
mod workload;
mod workspace;

pub use args::BenchArgs;
pub use run::run;
