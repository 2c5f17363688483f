//! A plan in the simulator.

use super::ThreeLayerPlan;
use super::launch::{Lists, words};
use crate::element::HalfElement;
use crate::error::Error;
use crate::formats::{DenseView, DenseViewMut, ThreeLayer};
use crate::ops::Placed;
use crate::ops::dense_launch::{LINE_BYTES, with_lines_of};
#[cfg(doc)]
use crate::ops::linear::LinearError;
use crate::ops::linear::Operands;
use crate::sim::{Report, Simulated, SimulatedMemory};

impl ThreeLayerPlan {
    /// Computes Y = X W^T + bias by the plan's kernel in the simulator: what `prepare` and `launch` do on a device.
    ///
    /// What is wrong with the kernel is in the report, and no error; Y is then whatever it stored.
    ///
    /// # Errors
    /// [`LinearError`] where an operand is not what was planned for.
    pub fn simulate<T: HalfElement>(
        &self,
        device: &Simulated,
        weights: &ThreeLayer<T>,
        x: DenseView<'_, T>,
        bias: Option<&[T]>,
        y: &mut DenseViewMut<'_, T>,
    ) -> Result<Report, Error> {
        self.check_weights(weights)?;
        let mut memory = SimulatedMemory::default();
        let (x_placed, y_placed) = memory.upload_factors(x, y);
        let bias = bias.map(|bias| (memory.upload("bias", bias), bias.len()));
        let mut operands = Operands { x: x_placed, bias, y: y_placed };
        operands.check(&self.problem)?;
        if self.is_empty() {
            return Ok(Report::default());
        }
        if !operands.reads_in_place() {
            let (shape, data) = with_lines_of(x, LINE_BYTES);
            operands.x = Placed { address: memory.upload("the copy of X", &data), shape, dtype: T::DTYPE };
        }
        let lists = Lists {
            tiles: memory.upload("tiles", &words(weights)),
            tile_offsets: memory.upload("tile offsets", weights.tile_offsets()),
            residual_offsets: memory.upload("residual offsets", weights.residual_offsets()),
            residual: memory.upload("residual", weights.residual()),
            pieces: memory.upload("pieces", &self.pieces.to_words()),
        };
        // NaN: a part that nobody wrote must be seen.
        let workspace = memory.upload("workspace", &vec![f32::NAN; self.workspace_bytes() / size_of::<f32>()]);
        let counters = memory.upload("counters", &vec![0_u32; self.num_counters()]);
        let map_x = memory.tensor_map(&self.x_map(&operands, lists))?;
        let arguments = || self.arguments(lists, &operands, workspace, counters);
        let (workers, panels) = self.grid();
        let (simulate, grid) = (self.configuration.simulate, [workers, panels, 1]);
        let report = hopper_sim::launch(self.configuration.spec, grid, memory.get(), device.schedule(), || {
            // SAFETY: the arguments are the contract's; the lists and the map live in `memory`. Accesses outside of it, to which a
            // wrong list could lead, are caught by the simulator.
            unsafe { simulate(map_x.as_mut_ptr(), arguments()) }
        });
        device.add(&report);
        memory.download(y_placed, y);
        Ok(report)
    }
}
