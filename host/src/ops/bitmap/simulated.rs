//! A plan in the simulator.

use super::BitmapPlan;
use super::launch::Lists;
use crate::element::Element;
use crate::error::Error;
use crate::formats::{Bitmap, DenseView, DenseViewMut};
use crate::ops::Placed;
use crate::ops::dense_launch::{LINE_BYTES, with_lines_of};
#[cfg(doc)]
use crate::ops::linear::LinearError;
use crate::ops::linear::Operands;
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
        let streams = self.streams(weights);
        let lists = Lists {
            masks: memory.upload("masks", weights.masks()),
            values: memory.upload("values", weights.values()),
            pieces: memory.upload("pieces", &self.pieces.to_words()),
            streams: memory.upload("streams", &streams.streams),
            starts: memory.upload("starts", &streams.starts),
            realignments: memory.upload("realignments", &weights.strips().realignments),
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
        let mut counted = vec![0; self.num_counters()];
        memory.download_slice(counters, &mut counted);
        debug_assert!(!report.findings.is_empty() || counted.iter().all(|&count| count == 0), "counters are 0 again");
        Ok(report)
    }
}
