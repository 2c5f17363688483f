//! A plan in the simulator.

use super::BitmapPlan;
use super::launch::Lists;
use crate::element::Element;
use crate::error::Error;
use crate::formats::{Bitmap, DenseView, DenseViewMut};
#[cfg(doc)]
use crate::ops::linear::LinearError;
use crate::sim::{Report, Simulated, SimulatedMemory};

impl BitmapPlan {
    /// Computes Y = X W^T + bias by the plan's kernel in the simulator: what `prepare` and `launch` do on a device.
    ///
    /// What is wrong with the kernel is in the report, and no error; Y is then whatever it stored.
    ///
    /// # Errors
    /// [`LinearError`] where an operand is not what was planned for.
    pub fn simulate<T: Element>(
        &self,
        device: &Simulated,
        weights: &Bitmap<T>,
        x: DenseView<'_, T>,
        bias: Option<&[T]>,
        y: &mut DenseViewMut<'_, T>,
    ) -> Result<Report, Error> {
        self.check_weights::<T>(weights.num_rows(), weights.num_cols())?;
        let upload = |memory: &mut SimulatedMemory| {
            let streams = self.streams(weights);
            let lists = Lists {
                masks: memory.upload("masks", weights.masks()),
                values: memory.upload("values", weights.values()),
                pieces: memory.upload("pieces", &self.pieces.to_words()),
                streams: memory.upload("streams", &streams.streams),
                starts: memory.upload("starts", &streams.starts),
                realignments: memory.upload("realignments", &weights.strips().realignments),
            };
            // With K = 0 all values are padding, which is zeros.
            (lists, lists.values)
        };
        self.simulate_with(device, x, bias, y, upload, |lists, operands, workspace, counters| {
            self.arguments(lists, operands, workspace, counters)
        })
    }
}
