//! Compiles a Rust kernel crate to PTX for sm_90a.
