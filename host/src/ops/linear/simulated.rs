//! A plan of linear layers in the simulator, whatever the format of the weights.

use super::{LinearPlan, Operands};
use crate::element::Element;
use crate::error::Error;
use crate::formats::{DenseView, DenseViewMut};
use crate::ops::Placed;
use crate::ops::dense_launch::{LINE_BYTES, with_lines_of};
use crate::sim::{Report, Simulated, SimulatedMemory};
use crate::tensor_map::DevicePtr;

impl<Arguments> LinearPlan<Arguments> {
    /// Runs the kernel: `upload` puts the weights into memory and gives the address of 16 bytes of zeros beside their lists, of which
    /// `arguments` makes the kernel's, with the operands, the workspace and the counters.
    pub(crate) fn simulate_with<T: Element, Lists: Copy + Sync>(
        &self,
        device: &Simulated,
        x: DenseView<'_, T>,
        bias: Option<&[T]>,
        y: &mut DenseViewMut<'_, T>,
        upload: impl FnOnce(&mut SimulatedMemory) -> (Lists, DevicePtr),
        arguments: impl Fn(Lists, &Operands, DevicePtr, DevicePtr) -> Arguments + Sync,
    ) -> Result<Report, Error> {
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
        let (lists, zeros) = upload(&mut memory);
        // NaN: a part that nobody wrote must be seen.
        let workspace = memory.upload("workspace", &vec![f32::NAN; self.workspace_bytes() / size_of::<f32>()]);
        let counters = memory.upload("counters", &vec![0_u32; self.num_counters()]);
        let map_x = memory.tensor_map(&operands.x_map(self.configuration, zeros))?;
        let (workers, panels) = self.grid();
        let (simulate, grid) = (self.configuration.simulate, [workers, panels, 1]);
        let report = hopper_sim::launch(self.configuration.spec, grid, memory.get(), device.schedule(), || {
            // SAFETY: the arguments are the contract's; the lists and the map live in `memory`. Accesses outside of it, to which a
            // wrong list could lead, are caught by the simulator.
            unsafe { simulate(map_x.as_mut_ptr(), arguments(lists, &operands, workspace, counters)) }
        });
        device.add(&report);
        memory.download(y_placed, y);
        let mut counted = vec![0; self.num_counters()];
        memory.download_slice(counters, &mut counted);
        debug_assert!(!report.findings.is_empty() || counted.iter().all(|&count| count == 0), "counters are 0 again");
        Ok(report)
    }
}
