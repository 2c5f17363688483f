//! The library's block-sparse product, by kernels that lack a part each. Feature `ablation`.

use hopper_sparse::gpu::{DeviceDenseView, DeviceDenseViewMut, Stream};
use hopper_sparse::ops::bcsr::AblationPrepared;
use hopper_sparse::{Element, Error};
use kernels_gpu::ablation::{CONFIGURATIONS, Configuration};

use crate::bench::elements::with_dtype;
use crate::bench::error::BenchError;
use crate::bench::implementation::{Implementation, Place, Prepared, Refusal};
use crate::bench::our_product::{OurProduct, PreparedA};
use crate::bench::product_operands::ProductOperands;
use crate::bench::workload::Product;
use crate::bench::workspace::Workspace;

use super::ours_spmm_bcsr::problem;

/// One of the kernels.
pub struct Ablation {
    name: &'static str,
    kernel: &'static str,
}

macro_rules! kernels {
    ($($constant:ident = $variant:literal, $kernel:literal;)*) => {
        impl Ablation {
            $(
                #[doc = concat!("`", $kernel, "`.")]
                pub const $constant: Self = Self { name: concat!("ours/spmm/ablation-", $variant), kernel: $kernel };
            )*

            /// All of them.
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$constant),*];
        }
    };
}

kernels! {
    CORES = "cores", "ablation_cores";
    WGMMA = "wgmma", "ablation_wgmma";
    TMA = "tma", "ablation_tma";
    DEPTH1 = "depth1", "ablation_depth1";
    DEPTH2 = "depth2", "ablation_depth2";
    DEPTH3 = "depth3", "ablation_depth3";
    DEPTH4 = "depth4", "ablation_depth4";
    DEPTH5 = "depth5", "ablation_depth5";
    DEPTH6 = "depth6", "ablation_depth6";
    N8 = "n8", "ablation_n8";
    N16 = "n16", "ablation_n16";
    N32 = "n32", "ablation_n32";
    N64 = "n64", "ablation_n64";
    N256 = "n256", "ablation_n256";
}

impl Ablation {
    fn configuration(&self) -> Option<&'static Configuration> {
        CONFIGURATIONS.iter().find(|configuration| configuration.bcsr.spec.name == self.kernel)
    }
}

impl Implementation<ProductOperands> for Ablation {
    fn name(&self) -> &'static str {
        self.name
    }

    fn place(&self) -> Place {
        Place::Gpu
    }

    fn supports(&self, product: &Product) -> Result<(), Refusal> {
        let block = product.block().ok_or(Refusal::NotBlocks)?;
        problem(product, block).check_ablation().map_err(Refusal::Ours)
    }

    fn prepare<'a>(&self, workspace: &'a Workspace<'a, ProductOperands>) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        let product = &workspace.operands().product;
        with_dtype!(product.dtype, T => with_dtype!(product.c_dtype, U => self.prepare_as::<T, U>(workspace)))
    }
}

impl Ablation {
    fn prepare_as<'a, T: Element, U: Element>(
        &self,
        workspace: &'a Workspace<'a, ProductOperands>,
    ) -> Result<Box<dyn Prepared + 'a>, BenchError> {
        let (gpu, _) = workspace.on_device();
        let operands = workspace.operands();
        let (Some(a), Some(configuration)) = (operands.bcsr_view::<T>(), self.configuration()) else {
            return Err(BenchError::Refused(Refusal::NotBlocks));
        };
        let problem = problem(&operands.product, a.block);
        let plan = problem.plan_ablation(&a, gpu.device().num_multiprocessors(), configuration).map_err(Error::from)?;
        let prepared = plan.prepare(gpu.device(), &a)?;
        Ok(Box::new(OurProduct::<_, T, U>::new(workspace, prepared, a.values.len() as u64).with_maps()?))
    }
}

impl<T: Element> PreparedA<T> for AblationPrepared<T> {
    fn num_bytes(&self) -> usize {
        self.num_bytes()
    }

    unsafe fn multiply<U: Element>(
        &self,
        stream: &Stream,
        b: DeviceDenseView<'_, T>,
        c: &mut DeviceDenseViewMut<'_, U>,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.launch(stream, 1.0, b, 0.0, c) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_is_measured_and_every_name_is_one() {
        assert_eq!(Ablation::ALL.len(), CONFIGURATIONS.len());
        for one in Ablation::ALL {
            assert!(one.configuration().is_some(), "{} has no kernel", one.name);
            assert!(crate::bench::registry::find(one.name).is_some(), "{} is not in the registry", one.name);
        }
    }
}
