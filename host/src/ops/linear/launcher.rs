//! What the launches of prepared weights share, whatever their format: the loaded kernel, maps of X, and where parts of sums meet.

use std::sync::Arc;

use super::{LinearPlan, Operands};
use crate::element::Element;
use crate::error::Error;
use crate::gpu::{
    AlignedCopy, Device, DeviceBuffer, DeviceDenseView, DevicePtr, GpuError, Kept, Kernel, Stream, TensorMap,
    TensorMaps,
};
use crate::ops::dense_launch::LINE_BYTES;

/// A kernel of linear layers on a device, and what is made for it on first use.
pub(crate) struct Launcher {
    pub(crate) kernel: Kernel,
    /// The map of X, by address and leading dimension.
    maps: Kept<(DevicePtr, usize), TensorMaps<1>>,
    /// Parts and counters, by stream: launches on one stream follow one another.
    parts: Kept<usize, Parts>,
}

/// Where the parts of sums meet.
pub(crate) struct Parts {
    pub(crate) workspace: DeviceBuffer<f32>,
    /// Zeros, again after each launch.
    pub(crate) counters: DeviceBuffer<u32>,
}

impl Launcher {
    /// Loads the plan's kernel.
    pub(crate) fn new<Arguments>(device: &Device, plan: &LinearPlan<Arguments>) -> Result<Self, GpuError> {
        let kernel = device.kernel(plan.configuration.spec)?;
        Ok(Self { kernel, maps: Kept::default(), parts: Kept::default() })
    }

    /// Checks the operands, of which `x` is X, and calls `issue` with them, the address of X's map, and parts; where X is not aligned as tensor copies demand,
    /// with an aligned copy of it, which is freed on the same stream. `zeros` are 16 bytes of them on the device.
    pub(crate) fn launch<T: Element, Arguments>(
        &self,
        plan: &LinearPlan<Arguments>,
        stream: &Stream,
        zeros: DevicePtr,
        x: DeviceDenseView<'_, T>,
        mut operands: Operands,
        issue: impl FnOnce(&Operands, DevicePtr, &Parts) -> Result<(), GpuError>,
    ) -> Result<(), Error> {
        operands.check(&plan.problem)?;
        if plan.is_empty() {
            return Ok(());
        }
        let copy = match operands.reads_in_place() {
            true => None,
            false => Some(AlignedCopy::new(self.kernel.device(), stream, &x, LINE_BYTES)?),
        };
        if let Some(copy) = &copy {
            operands.x = copy.view().placed();
        }
        let maps = self.maps_for(plan, &operands, zeros)?;
        let [map_x] = maps.addresses();
        Ok(issue(&operands, map_x, &*self.parts_for(plan, stream)?)?)
    }

    /// The map of this X.
    fn maps_for<Arguments>(
        &self,
        plan: &LinearPlan<Arguments>,
        operands: &Operands,
        zeros: DevicePtr,
    ) -> Result<Arc<TensorMaps<1>>, GpuError> {
        self.maps.get_or((operands.x.address, operands.x.shape.leading_dimension), || {
            let device = self.kernel.device();
            let map = TensorMap::new(device, &operands.x_map(plan.configuration, zeros))?;
            Ok(Arc::new(TensorMaps::upload(device, &[map])?))
        })
    }

    /// The parts of launches on `stream`.
    fn parts_for<Arguments>(&self, plan: &LinearPlan<Arguments>, stream: &Stream) -> Result<Arc<Parts>, GpuError> {
        self.parts.get_or(stream.as_inner().addr(), || {
            let device = self.kernel.device();
            Ok(Arc::new(Parts {
                workspace: DeviceBuffer::filled(device, plan.workspace_bytes() / size_of::<f32>(), 0)?,
                counters: DeviceBuffer::filled(device, plan.num_counters(), 0)?,
            }))
        })
    }
}
