//! A plan in the simulator.

use kernels_gpu::csr::{COMBINED, workspace_stride};

use super::CsrPlan;
use super::launch::{Arrays, Factors};
use crate::element::Element;
use crate::error::Error;
use crate::formats::{CsrView, DenseView, DenseViewMut};
#[cfg(doc)]
use crate::ops::PlanError;
use crate::sim::{Report, Simulated, SimulatedMemory};
use crate::tensor_map::DevicePtr;

impl CsrPlan {
    /// Computes C = alpha A B + beta C by the plan's kernels in the simulator: what `prepare` and `launch` do on a device. With
    /// `beta` 0, C is not read; with `alpha` 0, A and B are not.
    ///
    /// What is wrong with a kernel is in the report, and no error; C is then whatever it stored.
    ///
    /// # Errors
    /// [`PlanError::ShapeMismatch`] and [`PlanError::NotPlanned`] where A, B or C is not what was planned for; a
    /// [`FormatError`](crate::formats::FormatError) where A breaks an invariant of its format.
    pub fn simulate<T: Element, U: Element>(
        &self,
        device: &Simulated,
        a: &CsrView<'_, T>,
        alpha: f32,
        b: DenseView<'_, T>,
        beta: f32,
        c: &mut DenseViewMut<'_, U>,
    ) -> Result<Report, Error> {
        self.check_sparse(a)?;
        let mut memory = SimulatedMemory::default();
        let (placed_b, placed_c) = memory.upload_factors(b, c);
        self.problem.factors().check_planned(placed_b, placed_c)?;
        let Some(geometry) = self.geometry_for(placed_b.line_alignment()) else { return Ok(Report::default()) };
        let workspace_len = self.work.num_workspace_rows * workspace_stride(self.problem.num_cols as u32);
        let arrays = Arrays {
            row_offsets: memory.upload("row offsets of A", a.row_offsets),
            col_indices: memory.upload("column indices of A", a.col_indices),
            values: memory.upload("values of A", a.values),
            parts: memory.upload("list of parts", &self.work.parts),
            order: self.work.order.as_ref().map_or(DevicePtr::NULL, |rows| memory.upload("order of rows", rows)),
            workspace: memory.upload("sums of parts", &vec![f32::NAN; workspace_len as usize]),
        };
        let factors = Factors { alpha, b: placed_b, beta, c: placed_c };
        let (simulate, grid) = (self.configuration.simulate, [geometry.grid_x, geometry.grid_y, 1]);
        let mut report = hopper_sim::launch(self.configuration.spec, grid, memory.get(), device.schedule(), || {
            // SAFETY: the arguments are the contract's; the arrays keep the invariants of the format, the lists are of A, and
            // all live in `memory`.
            unsafe { simulate(self.arguments(arrays, geometry, factors)) }
        });
        for items in &self.work.passes {
            let words: Vec<_> = items.iter().map(|item| item.to_words()).collect();
            let list = memory.upload("list of sums", &words);
            let geometry = self.combine_geometry(items.len());
            let grid = [geometry.grid_x, geometry.grid_y, 1];
            let launched = hopper_sim::launch(COMBINED.spec, grid, memory.get(), device.schedule(), || {
                // SAFETY: as above.
                unsafe { (COMBINED.simulate)(self.combine_arguments(list, items.len(), arrays.workspace, factors)) }
            });
            report.findings.extend(launched.findings);
            report.bank_conflicts += launched.bank_conflicts;
            report.num_instructions += launched.num_instructions;
        }
        memory.download(placed_c, c);
        device.add(&report);
        Ok(report)
    }
}
