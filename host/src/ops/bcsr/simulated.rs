//! A plan in the simulator.

use kernels_gpu::bcsr::Arguments;

use super::BcsrPlan;
use super::launch::Lists;
use crate::element::Element;
use crate::error::Error;
use crate::formats::{BcsrView, DenseView, DenseViewMut};
use crate::ops::Placed;
#[cfg(doc)]
use crate::ops::PlanError;
use crate::ops::dense_launch::{LINE_BYTES, is_aligned, with_lines_of};
use crate::sim::{Report, Simulated, SimulatedMemory};
use crate::tensor_map::DevicePtr;

impl BcsrPlan {
    /// Computes C = alpha A B + beta C by the plan's kernel in the simulator: what `prepare` and `launch` do on a device. With
    /// `beta` 0, C is not read; with `alpha` 0, A and B are not.
    ///
    /// What is wrong with the kernel is in the report, and no error; C is then whatever it stored.
    ///
    /// # Errors
    /// [`PlanError::ShapeMismatch`] and [`PlanError::NotPlanned`] where A, B or C is not what was planned for.
    pub fn simulate<T: Element, U: Element>(
        &self,
        device: &Simulated,
        a: &BcsrView<'_, T>,
        alpha: f32,
        b: DenseView<'_, T>,
        beta: f32,
        c: &mut DenseViewMut<'_, U>,
    ) -> Result<Report, Error> {
        let simulate = self.configuration.simulate;
        self.simulate_by(device, a, (alpha, beta), b, c, |placed| {
            // SAFETY: the arguments are the contract's; the lists and maps live as long as the launch. Accesses outside of what
            // is there, to which a wrong list could lead, are caught by the simulator.
            unsafe { simulate(placed.map_a.as_mut_ptr(), placed.map_b.as_mut_ptr(), placed.arguments) }
        })
    }

    /// As [`simulate`](Self::simulate), by whatever kernel `call` calls, as one thread of the launch.
    pub(super) fn simulate_by<T: Element, U: Element>(
        &self,
        device: &Simulated,
        a: &BcsrView<'_, T>,
        (alpha, beta): (f32, f32),
        b: DenseView<'_, T>,
        c: &mut DenseViewMut<'_, U>,
        call: impl Fn(&InMemory) + Sync,
    ) -> Result<Report, Error> {
        self.check_sparse(a)?;
        let mut memory = SimulatedMemory::default();
        let (mut placed_b, placed_c) = memory.upload_factors(b, c);
        self.problem.factors().check_planned(placed_b, placed_c)?;
        if self.num_tiles() == 0 {
            return Ok(Report::default());
        }
        if !is_aligned(placed_b) {
            let (shape, data) = with_lines_of(b, LINE_BYTES);
            placed_b = memory.upload_matrix("the aligned copy of B", shape, &data);
        }
        let values = memory.upload("values of A", &self.values(a));
        let lists = Lists {
            blocks: memory.upload("list of blocks", &self.blocks),
            tiles: memory.upload("list of tiles", &self.tiles()),
            tile_offsets: memory.upload("tile offsets", &self.schedule.offsets),
        };
        let map_a = memory.tensor_map(&self.a_map::<T>(values))?;
        let map_b = memory.tensor_map(&self.b_map::<T>(values, placed_b))?;
        let grid = [self.grid(), 1, 1];
        let report = hopper_sim::launch(self.configuration.spec, grid, memory.get(), device.schedule(), || {
            let arguments = self.arguments(lists, alpha, beta, placed_c);
            call(&InMemory { map_a, map_b, arguments, values, b: placed_b });
        });
        memory.download(placed_c, c);
        device.add(&report);
        Ok(report)
    }
}

/// What a simulated launch is given.
#[cfg_attr(not(feature = "ablation"), allow(dead_code, reason = "only ablation reads operands without maps"))]
pub(super) struct InMemory {
    pub(super) map_a: DevicePtr,
    pub(super) map_b: DevicePtr,
    pub(super) arguments: Arguments,
    pub(super) values: DevicePtr,
    pub(super) b: Placed,
}
