//! The implementations, a file each: kind, operation and variant make its name.

pub mod naive_attention_cpu;
pub mod naive_linear_cpu;
pub mod naive_spmm_cpu;
#[cfg(feature = "gpu")]
pub mod ours_attention_blocks;
#[cfg(feature = "gpu")]
pub mod ours_attention_dense;
#[cfg(feature = "gpu")]
pub mod ours_linear_bitmap;
#[cfg(feature = "gpu")]
pub mod ours_linear_three_layer;
#[cfg(all(feature = "gpu", feature = "ablation"))]
pub mod ours_spmm_ablation;
#[cfg(feature = "gpu")]
pub mod ours_spmm_bcsr;
#[cfg(feature = "gpu")]
pub mod ours_spmm_csr;
pub mod ours_spmm_csr_cpu;
#[cfg(feature = "gpu")]
pub mod ours_spmm_wcsr;
pub mod peer_attention_torch;
#[cfg(feature = "gpu")]
pub mod vendor_gemm_cublaslt;
#[cfg(feature = "gpu")]
pub mod vendor_linear_cublaslt;
#[cfg(feature = "gpu")]
pub mod vendor_linear_cusparselt;
#[cfg(feature = "gpu")]
pub mod vendor_spmm_cusparse_bsr;
#[cfg(feature = "gpu")]
pub mod vendor_spmm_cusparse_csr;
