//! A plan in the simulator.

use super::CsrPlan;
use super::launch::{Arrays, arguments};
use crate::element::Element;
use crate::error::Error;
use crate::formats::{CsrView, DenseView, DenseViewMut};
#[cfg(doc)]
use crate::ops::PlanError;
use crate::sim::{Report, Simulated, SimulatedMemory};

impl CsrPlan {
    /// Computes C = alpha A B + beta C by the plan's kernel in the simulator: what `prepare` and `launch` do on a device. With
    /// `beta` 0, C is not read; with `alpha` 0, A and B are not.
    ///
    /// What is wrong with the kernel is in the report, and no error; C is then whatever it stored.
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
        let Some(geometry) = self.problem.geometry(placed_b.line_alignment()) else { return Ok(Report::default()) };
        let arrays = Arrays {
            row_offsets: memory.upload("row offsets of A", a.row_offsets),
            col_indices: memory.upload("column indices of A", a.col_indices),
            values: memory.upload("values of A", a.values),
        };
        let (simulate, grid) = (self.configuration.simulate, [geometry.grid_x, geometry.grid_y, 1]);
        let report = hopper_sim::launch(self.configuration.spec, grid, memory.get(), device.schedule(), || {
            let arguments = arguments(arrays, geometry, alpha, placed_b, beta, placed_c);
            // SAFETY: the arguments are the contract's; the arrays keep the invariants of the format, and live in `memory`.
            unsafe { simulate(arguments) }
        });
        memory.download(placed_c, c);
        device.add(&report);
        Ok(report)
    }
}
