//! A plan in the simulator.

use super::WcsrPlan;
use super::launch::Lists;
use crate::element::Element;
use crate::error::Error;
use crate::formats::{DenseView, DenseViewMut, WcsrView};
use crate::ops::Placed;
#[cfg(doc)]
use crate::ops::PlanError;
use crate::ops::dense_launch::with_lines_of;
use crate::sim::{Report, Simulated, SimulatedMemory};

impl WcsrPlan {
    /// Computes C = alpha A B + beta C by the plan's kernels in the simulator: what `prepare` and `launch` do on a device. With
    /// `beta` 0, C is not read; with `alpha` 0, A and B are not.
    ///
    /// What is wrong with the kernels is in the report, and no error; C is then whatever they stored.
    ///
    /// # Errors
    /// [`PlanError::ShapeMismatch`] and [`PlanError::NotPlanned`] where A, B or C is not what was planned for.
    pub fn simulate<T: Element, U: Element>(
        &self,
        device: &Simulated,
        a: &WcsrView<'_, T>,
        alpha: f32,
        b: DenseView<'_, T>,
        beta: f32,
        c: &mut DenseViewMut<'_, U>,
    ) -> Result<Report, Error> {
        self.check_sparse(a)?;
        let mut memory = SimulatedMemory::default();
        let (mut placed_b, placed_c) = memory.upload_factors(b, c);
        self.problem.factors().check_planned(placed_b, placed_c)?;
        if self.num_tiles() == 0 {
            return Ok(Report::default());
        }
        if !self.reads_in_place(placed_b) {
            let (shape, data) = with_lines_of(b, self.line_bytes());
            placed_b = Placed { address: memory.upload("the copy of B", &data), shape, dtype: T::DTYPE };
        }
        let values = memory.upload("values of A", &self.values(a));
        let lists = Lists {
            groups: memory.upload("list of groups", a.groups),
            tiles: memory.upload("list of tiles", &self.tiles()),
            tile_offsets: memory.upload("tile offsets", &self.schedule.dealt.offsets),
            splits: memory.upload("list of splits", &self.splits()),
            rows: a.rows().map(|rows| memory.upload("order of the rows", rows)),
        };
        // NaN: a sum that no tile wrote must be seen.
        let workspace = memory.upload("workspace", &vec![f32::NAN; self.workspace_bytes() / size_of::<f32>()]);
        let map_v = memory.tensor_map(&self.v_map::<T>(values))?;
        let map_b = memory.tensor_map(&self.b_map::<T>(values, placed_b))?;
        let arguments = || self.arguments(lists, workspace, (alpha, beta), placed_b, placed_c);
        let (simulate, grid) = (self.configuration.simulate, [self.grid(), 1, 1]);
        let report = hopper_sim::launch(self.configuration.spec, grid, memory.get(), device.schedule(), || {
            // SAFETY: the arguments are the contract's; the lists and maps live in `memory`. Accesses outside of it, to
            // which a wrong list could lead, are caught by the simulator.
            unsafe { simulate(map_v.as_mut_ptr(), map_b.as_mut_ptr(), arguments()) }
        });
        device.add(&report);
        if self.num_splits() > 0 {
            let combined = self.combined()?;
            let (splits, slices) = self.combine_grid();
            let grid = [splits, slices, 1];
            let second = hopper_sim::launch(combined.spec, grid, memory.get(), device.schedule(), || {
                // SAFETY: as above.
                unsafe { (combined.simulate)(self.combine_arguments(lists, workspace, &arguments())) }
            });
            device.add(&second);
        }
        memory.download(placed_c, c);
        Ok(report)
    }
}
