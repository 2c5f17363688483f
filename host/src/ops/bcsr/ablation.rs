//! Plans of the kernels that lack a part. They serve one block shape, type and layout of B, and are there to be measured.

use core::fmt;

use kernels_gpu::ablation::{CONFIGURATIONS, Configuration};
#[cfg(any(feature = "gpu", feature = "sim"))]
use kernels_gpu::{ablation::Arguments, bcsr};

use super::{BcsrPlan, BcsrSpmm};
use crate::element::{Dtype, Element};
use crate::formats::{BcsrView, Layout};
#[cfg(any(feature = "gpu", feature = "sim"))]
use crate::ops::Placed;
use crate::ops::{PlanError, Refusal};
#[cfg(any(feature = "gpu", feature = "sim"))]
use crate::tensor_map::DevicePtr;

/// The family's name in refusals.
const KERNEL: &str = "ablation";

/// A problem, and one of [`kernels_gpu::ablation::CONFIGURATIONS`]. Feature `ablation`.
#[derive(Clone, Debug)]
pub struct AblationPlan {
    plan: BcsrPlan,
    #[cfg_attr(not(feature = "sim"), allow(dead_code, reason = "what else it says is the plan's"))]
    configuration: &'static Configuration,
}

impl BcsrSpmm {
    /// Whether the kernels that lack a part serve the problem: bf16, blocks of 128 x 64, B column-major.
    ///
    /// # Errors
    /// The reason, where they do not.
    pub fn check_ablation(&self) -> Result<(), Refusal> {
        self.check()?;
        if self.dtype != Dtype::Bf16 {
            return Err(Refusal::Dtype { kernel: KERNEL, dtype: self.dtype, offered: "bf16" });
        }
        let serves = |kernel: &Configuration| {
            (kernel.bcsr.block_rows, kernel.bcsr.block_cols) == (self.block.rows, self.block.cols)
        };
        if !CONFIGURATIONS.iter().any(serves) {
            return Err(Refusal::Block { block: self.block });
        }
        if self.b_layout != Layout::ColumnMajor {
            return Err(Refusal::LayoutOfB { kernel: KERNEL, offered: Layout::ColumnMajor });
        }
        Ok(())
    }

    /// The plan of a kernel that lacks a part, for a device with `multiprocessors` multiprocessors.
    ///
    /// # Errors
    /// [`PlanError::Refused`] as [`check_ablation`](Self::check_ablation); [`PlanError::NotPlanned`] where `a` is not the
    /// problem's A.
    pub fn plan_ablation<T: Element>(
        &self,
        a: &BcsrView<'_, T>,
        multiprocessors: u32,
        configuration: &'static Configuration,
    ) -> Result<AblationPlan, PlanError> {
        self.check_ablation().map_err(PlanError::Refused)?;
        self.check_sparse(a)?;
        Ok(AblationPlan { plan: self.plan_for(a, multiprocessors, &configuration.bcsr), configuration })
    }
}

/// The kernel's arguments: a BCSR kernel's, and where A and B lie.
#[cfg(any(feature = "gpu", feature = "sim"))]
fn arguments(bcsr: bcsr::Arguments, values: DevicePtr, b: Placed) -> Arguments {
    Arguments {
        bcsr,
        values: values.as_mut_ptr(),
        b: b.address.as_mut_ptr(),
        b_leading_dimension: b.shape.leading_dimension as u64,
        num_inner: b.shape.num_rows as u32,
    }
}

#[cfg(feature = "sim")]
impl AblationPlan {
    /// As [`BcsrPlan::simulate`].
    ///
    /// # Errors
    /// As [`BcsrPlan::simulate`].
    pub fn simulate<T: Element, U: Element>(
        &self,
        device: &crate::sim::Simulated,
        a: &BcsrView<'_, T>,
        alpha: f32,
        b: crate::formats::DenseView<'_, T>,
        beta: f32,
        c: &mut crate::formats::DenseViewMut<'_, U>,
    ) -> Result<crate::sim::Report, crate::Error> {
        self.plan.simulate_by(device, a, (alpha, beta), b, c, |placed| {
            let arguments = arguments(placed.arguments, placed.values, placed.b);
            // SAFETY: the arguments are the contract's; what they name lives as long as the launch.
            unsafe { (self.configuration.simulate)(placed.map_a.as_mut_ptr(), placed.map_b.as_mut_ptr(), arguments) }
        })
    }
}

/// The plan of the kernel, as a BCSR kernel's.
impl fmt::Display for AblationPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan.fmt(f)
    }
}

#[cfg(feature = "gpu")]
pub use on_device::AblationPrepared;

#[cfg(feature = "gpu")]
mod on_device {
    use core::fmt;

    use super::super::BcsrPrepared;
    use super::{AblationPlan, arguments};
    use crate::element::Element;
    use crate::error::Error;
    use crate::formats::BcsrView;
    use crate::gpu::{Device, DeviceDenseView, DeviceDenseViewMut, DevicePtr, Stream};

    /// As [`BcsrPrepared`], launched many times.
    #[derive(Debug)]
    pub struct AblationPrepared<T: Element>(BcsrPrepared<T>);

    impl AblationPlan {
        /// As [`BcsrPlan::prepare`](super::BcsrPlan::prepare).
        ///
        /// # Errors
        /// As [`BcsrPlan::prepare`](super::BcsrPlan::prepare).
        pub fn prepare<T: Element>(&self, device: &Device, a: &BcsrView<'_, T>) -> Result<AblationPrepared<T>, Error> {
            Ok(AblationPrepared(self.plan.prepare(device, a)?))
        }
    }

    impl<T: Element> AblationPrepared<T> {
        /// Device memory held, in bytes.
        pub fn num_bytes(&self) -> usize {
            self.0.num_bytes()
        }

        /// As [`BcsrPrepared::launch`].
        ///
        /// # Errors
        /// As [`BcsrPrepared::launch`].
        ///
        /// # Safety
        /// As [`BcsrPrepared::launch`].
        pub unsafe fn launch<U: Element>(
            &self,
            stream: &Stream,
            alpha: f32,
            b: DeviceDenseView<'_, T>,
            beta: f32,
            c: &mut DeviceDenseViewMut<'_, U>,
        ) -> Result<(), Error> {
            self.0.launch_by(stream, (alpha, beta), b, c, |grid, map_a, map_b, bcsr, b| {
                let all = arguments(*bcsr, self.0.values.ptr(), b);
                let output = bcsr.output;
                let params = (
                    map_a,
                    map_b,
                    DevicePtr::of(bcsr.blocks.as_ptr()),
                    DevicePtr::of(bcsr.tiles.as_ptr()),
                    DevicePtr::of(bcsr.tile_offsets.as_ptr()),
                    DevicePtr::of(output.c),
                    output.leading_dimension,
                    output.num_rows,
                    output.num_cols,
                    output.alpha,
                    output.beta,
                    output.kind,
                    bcsr.policy_a.0,
                    bcsr.policy_b.0,
                    DevicePtr::of(all.values),
                    DevicePtr::of(all.b),
                    all.b_leading_dimension,
                    all.num_inner,
                );
                // SAFETY: the parameters are those that `Arguments` lists, in its order; the lists and the maps live as long
                // as `self`, which the caller keeps until the launch is done; the rest is the caller's promise.
                unsafe { self.0.kernel.launch(grid, stream, params) }
            })
        }
    }

    /// The plan.
    impl<T: Element> fmt::Display for AblationPrepared<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.plan.fmt(f)
        }
    }
}
