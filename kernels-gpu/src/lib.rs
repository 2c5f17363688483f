//! The kernels of hopper-sparse, in Rust; built for nvptx64 and for the CPU.
//!
//! One folder for each family, read in this order: `mod.rs` (mathematics, pseudo-code, pipeline, contract), `config.rs`,
//! `producer.rs`, `consumer.rs`, `epilogue.rs`, `kernel.rs`. On the CPU the crate gives the specifications and the
//! numbers that the host needs: tiles, boxes, argument layouts. [`probe`] is not a family: kernels of one instruction;
//! [`store`] is what families share, [`linear`] what those for linear
//! layers do. Feature `ablation` has the kernels that measure what each part of one is worth.
#![cfg_attr(target_arch = "nvptx64", no_std)]

#[cfg(feature = "ablation")]
pub mod ablation;
pub mod attention;
pub mod bcsr;
pub mod bitmap;
pub mod csr;
pub mod linear;
pub mod probe;
pub mod store;
pub mod three_layer;
pub mod wcsr;

use hopper_std::KernelSpec;

/// The specification of every exported kernel.
pub fn specs() -> impl Iterator<Item = &'static KernelSpec> {
    let attention = attention::CONFIGURATIONS.iter().map(|configuration| configuration.spec);
    let combined = attention::COMBINED.iter().map(|combined| combined.spec);
    let bcsr = bcsr::CONFIGURATIONS.iter().map(|configuration| configuration.spec);
    let csr = csr::CONFIGURATIONS.iter().map(|configuration| configuration.spec);
    let csr_combined = core::iter::once(csr::COMBINED.spec);
    let wcsr = wcsr::CONFIGURATIONS.iter().map(|configuration| configuration.spec);
    let wcsr_combined = wcsr::COMBINED.iter().map(|combined| combined.spec);
    let bitmap = bitmap::CONFIGURATIONS.iter().map(|configuration| configuration.spec);
    let three_layer = three_layer::CONFIGURATIONS.iter().map(|configuration| configuration.spec);
    let products = bcsr.chain(csr).chain(csr_combined).chain(wcsr).chain(wcsr_combined);
    let linear = bitmap.chain(three_layer);
    let all = attention.chain(combined).chain(products).chain(linear).chain(probe::specs());
    #[cfg(feature = "ablation")]
    let all = all.chain(ablation::CONFIGURATIONS.iter().map(|configuration| configuration.bcsr.spec));
    all
}
