//! A plan in the simulator.

use super::ThreeLayerPlan;
use super::launch::{Lists, words};
use crate::element::HalfElement;
use crate::error::Error;
use crate::formats::{DenseView, DenseViewMut, ThreeLayer};
#[cfg(doc)]
use crate::ops::linear::LinearError;
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
        self.check_weights::<T>(weights.num_rows(), weights.num_cols())?;
        let upload = |memory: &mut SimulatedMemory| {
            let lists = Lists {
                tiles: memory.upload("tiles", &words(weights)),
                tile_offsets: memory.upload("tile offsets", weights.tile_offsets()),
                residual_offsets: memory.upload("residual offsets", weights.residual_offsets()),
                residual: memory.upload("residual", weights.residual()),
                pieces: memory.upload("pieces", &self.pieces.to_words()),
            };
            (lists, lists.tiles)
        };
        self.simulate_with(device, x, bias, y, upload, |lists, operands, workspace, counters| {
            self.arguments(lists, operands, workspace, counters)
        })
    }
}
