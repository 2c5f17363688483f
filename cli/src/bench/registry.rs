//! Every implementation, once. A new one is a file in `implementations/` and a line here.

use super::attention_operands::AttentionOperands;
use super::error::BenchError;
use super::implementation::{Implementation, Place};
use super::implementations as all;
use super::linear_operands::LinearOperands;
use super::peer::Peer;
use super::product_operands::ProductOperands;
use super::workload::Operation;

/// An implementation, by what it computes and how it is reached.
#[derive(Clone, Copy)]
pub enum Registered {
    /// A product.
    Product(&'static dyn Implementation<ProductOperands>),
    /// Attention.
    Attention(&'static dyn Implementation<AttentionOperands>),
    /// Attention, in a process of its own.
    AttentionPeer(&'static Peer),
    /// A linear layer.
    Linear(&'static dyn Implementation<LinearOperands>),
}

impl Registered {
    /// Its name: kind, operation, variant.
    pub fn name(self) -> &'static str {
        match self {
            Self::Product(implementation) => implementation.name(),
            Self::Attention(implementation) => implementation.name(),
            Self::AttentionPeer(peer) => peer.name,
            Self::Linear(implementation) => implementation.name(),
        }
    }

    /// What it computes.
    pub fn operation(self) -> Operation {
        match self {
            Self::Product(_) => Operation::Spmm,
            Self::Attention(_) | Self::AttentionPeer(_) => Operation::Attention,
            Self::Linear(_) => Operation::Linear,
        }
    }

    /// It, where it computes products.
    pub fn product(self) -> Option<&'static dyn Implementation<ProductOperands>> {
        match self {
            Self::Product(implementation) => Some(implementation),
            _ => None,
        }
    }

    /// It, where it computes linear layers.
    pub fn linear(self) -> Option<&'static dyn Implementation<LinearOperands>> {
        match self {
            Self::Linear(implementation) => Some(implementation),
            _ => None,
        }
    }

    /// It, where it computes attention in this process.
    pub fn attention(self) -> Option<&'static dyn Implementation<AttentionOperands>> {
        match self {
            Self::Attention(implementation) => Some(implementation),
            _ => None,
        }
    }

    /// It, where it computes attention in a process of its own.
    pub fn attention_peer(self) -> Option<&'static Peer> {
        match self {
            Self::AttentionPeer(peer) => Some(peer),
            _ => None,
        }
    }

    /// Where it runs.
    pub fn place(self) -> Place {
        match self {
            Self::Product(implementation) => implementation.place(),
            Self::Attention(implementation) => implementation.place(),
            Self::AttentionPeer(_) => Place::Gpu,
            Self::Linear(implementation) => implementation.place(),
        }
    }
}

/// All implementations, ours first.
pub static IMPLEMENTATIONS: &[Registered] = &[
    #[cfg(feature = "gpu")]
    Registered::Product(&all::ours_spmm_bcsr::Bcsr::TIGHTEST),
    #[cfg(feature = "gpu")]
    Registered::Product(&all::ours_spmm_bcsr::Bcsr::ROWS_128_BY_64),
    #[cfg(feature = "gpu")]
    Registered::Product(&all::ours_spmm_bcsr::Bcsr::ROWS_128_BY_16),
    #[cfg(feature = "gpu")]
    Registered::Product(&all::ours_spmm_csr::Csr),
    #[cfg(feature = "gpu")]
    Registered::Product(&all::ours_spmm_wcsr::Wcsr::ROWS_64_BY_8),
    #[cfg(feature = "gpu")]
    Registered::Product(&all::ours_spmm_wcsr::Wcsr::ROWS_64_BY_1),
    #[cfg(feature = "gpu")]
    #[cfg(feature = "gpu")]
    Registered::Product(&all::ours_spmm_wcsr::Wcsr::ROWS_128_BY_8),
    #[cfg(feature = "gpu")]
    Registered::Product(&all::ours_spmm_wcsr::Wcsr::ROWS_128_BY_1),
    #[cfg(feature = "gpu")]
    #[cfg(feature = "gpu")]
    Registered::Product(&all::ours_spmm_wcsr::Wcsr::ROWS_16_BY_8),
    #[cfg(feature = "gpu")]
    Registered::Product(&all::ours_spmm_wcsr::Wcsr::ROWS_16_BY_1),
    #[cfg(feature = "gpu")]
    Registered::Product(&all::ours_spmm_wcsr::Wcsr::ROWS_8_BY_8),
    #[cfg(feature = "gpu")]
    Registered::Product(&all::ours_spmm_wcsr::Wcsr::ROWS_8_BY_1),
    #[cfg(all(feature = "gpu", feature = "ablation"))]
    Registered::Product(&all::ours_spmm_ablation::Ablation::CORES),
    #[cfg(all(feature = "gpu", feature = "ablation"))]
    Registered::Product(&all::ours_spmm_ablation::Ablation::WGMMA),
    #[cfg(all(feature = "gpu", feature = "ablation"))]
    Registered::Product(&all::ours_spmm_ablation::Ablation::TMA),
    #[cfg(all(feature = "gpu", feature = "ablation"))]
    Registered::Product(&all::ours_spmm_ablation::Ablation::DEPTH1),
    #[cfg(all(feature = "gpu", feature = "ablation"))]
    Registered::Product(&all::ours_spmm_ablation::Ablation::DEPTH2),
    #[cfg(all(feature = "gpu", feature = "ablation"))]
    Registered::Product(&all::ours_spmm_ablation::Ablation::DEPTH3),
    #[cfg(all(feature = "gpu", feature = "ablation"))]
    Registered::Product(&all::ours_spmm_ablation::Ablation::DEPTH4),
    #[cfg(all(feature = "gpu", feature = "ablation"))]
    Registered::Product(&all::ours_spmm_ablation::Ablation::DEPTH5),
    #[cfg(all(feature = "gpu", feature = "ablation"))]
    Registered::Product(&all::ours_spmm_ablation::Ablation::DEPTH6),
    #[cfg(all(feature = "gpu", feature = "ablation"))]
    Registered::Product(&all::ours_spmm_ablation::Ablation::N8),
    #[cfg(all(feature = "gpu", feature = "ablation"))]
    Registered::Product(&all::ours_spmm_ablation::Ablation::N16),
    #[cfg(all(feature = "gpu", feature = "ablation"))]
    Registered::Product(&all::ours_spmm_ablation::Ablation::N32),
    #[cfg(all(feature = "gpu", feature = "ablation"))]
    Registered::Product(&all::ours_spmm_ablation::Ablation::N64),
    #[cfg(all(feature = "gpu", feature = "ablation"))]
    Registered::Product(&all::ours_spmm_ablation::Ablation::N256),
    Registered::Product(&all::ours_spmm_csr_cpu::CsrCpu),
    #[cfg(feature = "gpu")]
    Registered::Attention(&all::ours_attention_dense::Dense),
    #[cfg(feature = "gpu")]
    Registered::Attention(&all::ours_attention_blocks::Blocks),
    #[cfg(feature = "gpu")]
    Registered::Linear(&all::ours_linear_bitmap::Bitmaps),
    #[cfg(feature = "gpu")]
    Registered::Linear(&all::ours_linear_three_layer::ThreeLayers),
    Registered::Product(&all::naive_spmm_cpu::NaiveCpu),
    Registered::Linear(&all::naive_linear_cpu::NaiveCpu),
    Registered::Attention(&all::naive_attention_cpu::NaiveCpu),
    #[cfg(feature = "gpu")]
    Registered::Product(&all::vendor_gemm_cublaslt::CublasLt::WITH_ZEROS),
    #[cfg(feature = "gpu")]
    Registered::Product(&all::vendor_gemm_cublaslt::CublasLt::FULL),
    #[cfg(feature = "gpu")]
    Registered::Product(&all::vendor_spmm_cusparse_csr::CusparseCsr::ALG1),
    #[cfg(feature = "gpu")]
    Registered::Product(&all::vendor_spmm_cusparse_csr::CusparseCsr::ALG2),
    #[cfg(feature = "gpu")]
    Registered::Product(&all::vendor_spmm_cusparse_csr::CusparseCsr::ALG3),
    #[cfg(feature = "gpu")]
    Registered::Product(&all::vendor_spmm_cusparse_bsr::CusparseBsr),
    #[cfg(feature = "gpu")]
    Registered::Linear(&all::vendor_linear_cublaslt::CublasLt),
    #[cfg(feature = "gpu")]
    Registered::Linear(&all::vendor_linear_cusparselt::CusparseLt),
    Registered::AttentionPeer(&all::peer_attention_torch::CUDNN),
    Registered::AttentionPeer(&all::peer_attention_torch::FLASH2),
];

/// The implementation called `name`.
pub fn find(name: &str) -> Option<Registered> {
    IMPLEMENTATIONS.iter().find(|implementation| implementation.name() == name).copied()
}

/// The implementations whose names start with one of `prefixes`.
///
/// # Errors
/// [`BenchError::UnknownImplementation`] with a prefix that no name starts with.
pub fn select(prefixes: &[String]) -> Result<Vec<Registered>, BenchError> {
    let starts = |implementation: &Registered, prefix: &String| implementation.name().starts_with(prefix.as_str());
    for prefix in prefixes {
        if !IMPLEMENTATIONS.iter().any(|implementation| starts(implementation, prefix)) {
            return Err(BenchError::UnknownImplementation { name: prefix.clone() });
        }
    }
    let chosen = |implementation: &&Registered| prefixes.iter().any(|prefix| starts(implementation, prefix));
    Ok(IMPLEMENTATIONS.iter().filter(chosen).copied().collect())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn names_are_paths_and_do_not_repeat() {
        let mut seen = HashSet::new();
        for implementation in IMPLEMENTATIONS {
            let name = implementation.name();
            assert!(seen.insert(name), "{name} is there twice");
            assert_eq!(name.split('/').count(), 3, "{name} is not kind/operation/variant");
        }
    }

    #[test]
    fn every_file_is_in_the_registry() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bench/implementations");
        let registry = include_str!("registry.rs");
        let entries = fs::read_dir(folder).expect("the sources are there");
        let mut num_files = 0;
        for entry in entries {
            let name = entry.expect("readable").file_name().into_string().expect("UTF-8");
            let module = name.strip_suffix(".rs").expect("a Rust file");
            if module != "mod" {
                num_files += 1;
                assert!(registry.contains(&format!("(&all::{module}::")), "{module} is not in the registry");
            }
        }
        assert!(num_files > 0);
    }

    #[test]
    fn a_prefix_selects_all_below_it_and_an_unknown_one_is_refused() {
        let ours = select(&["ours/".to_owned()]).expect("there are some");
        assert!(ours.iter().all(|implementation| implementation.name().starts_with("ours/")));
        assert!(select(&["theirs/".to_owned()]).is_err());
        assert!(find("naive/spmm/cpu").is_some());
    }
}
