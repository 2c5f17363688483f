//! cuBLASLt, cuSPARSE and cuSPARSELt, found at run time: thin owners of their handles and descriptors.
//!
//! All work in the device's primary context, the library's own, so they take its pointers and its stream as they are.

pub mod cublaslt;
pub mod cusparse;
pub mod cusparselt;
