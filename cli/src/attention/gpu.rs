//! Attention on a GPU.

use hopper_sparse::formats::{HeadsShape, HeadsStrides};
use hopper_sparse::gpu::{DeviceBuffer, DeviceDense, DeviceHeadsView, DeviceHeadsViewMut};
use hopper_sparse::ops::attention::{Attention, AttentionPlan, AttentionPrepared};
use hopper_sparse::{Element, Error};
use serde_json::{Value, json};

use super::{Inputs, Machine, Output};
use crate::error::Result;
use crate::gpu::{Gpu, Timer};

/// A problem whose tensors are in device memory.
struct GpuAttention<T> {
    prepared: AttentionPrepared<T>,
    q: DeviceBuffer<T>,
    k: DeviceBuffer<T>,
    v: DeviceBuffer<T>,
    o: DeviceBuffer<T>,
    lse: DeviceDense<f32>,
    /// Of Q and O, and of K and V.
    places: [(HeadsShape, HeadsStrides); 2],
    timer: Timer,
    gpu: Gpu,
}

/// Whether a launch stores the log-sum-exps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lse {
    Stored,
    LeftOut,
}

/// Plans, and copies the inputs to the device.
///
/// # Errors
/// Usage where no kernel serves the problem, a failure of the driver, or where memory does not suffice.
pub fn prepare<T: Element>(gpu: Gpu, problem: &Attention, inputs: &Inputs<T>) -> Result<Box<dyn Machine<T>>> {
    let device = gpu.device();
    let plan = problem.plan(device.num_multiprocessors()).map_err(Error::from)?;
    let output = Output::<T>::poisoned(problem);
    let upload = |data: &[T]| DeviceBuffer::from_slice(device, data).map_err(Error::from);
    Ok(Box::new(GpuAttention {
        prepared: plan.prepare(device)?,
        q: upload(inputs.q.data())?,
        k: upload(inputs.k.data())?,
        v: upload(inputs.v.data())?,
        o: upload(output.o.data())?,
        lse: DeviceDense::from_host(device, output.lse.view()).map_err(Error::from)?,
        places: [(inputs.q.shape(), inputs.q.strides()), (inputs.k.shape(), inputs.k.strides())],
        timer: Timer::new(&gpu).map_err(Error::from)?,
        gpu,
    }))
}

impl<T: Element> GpuAttention<T> {
    fn launch(&mut self, lse: Lse) -> Result<f64, Error> {
        let Self { prepared, q, k, v, o, places: [queries, keys], timer, .. } = self;
        let q = DeviceHeadsView::of_buffer(q, queries.0, queries.1)?;
        let k = DeviceHeadsView::of_buffer(k, keys.0, keys.1)?;
        let v = DeviceHeadsView::of_buffer(v, keys.0, keys.1)?;
        let mut o = DeviceHeadsViewMut::of_buffer(o, queries.0, queries.1)?;
        let mut stored = self.lse.view_mut();
        let lse = (lse == Lse::Stored).then_some(&mut stored);
        // SAFETY: the tensors are ours, on the device that the plan was prepared on, as is the stream; nothing else touches
        // them before `time` has waited.
        timer.time(|stream| unsafe { prepared.launch(stream, q, k, v, &mut o, lse) })
    }
}

impl<T: Element> Machine<T> for GpuAttention<T> {
    fn description(&self) -> String {
        format!("GPU {}, {}", self.gpu.device().index(), self.gpu.device().name())
    }

    fn json(&self) -> Value {
        let device = self.gpu.device();
        json!({
            "name": "gpu",
            "device": device.index(),
            "device_name": device.name(),
            "driver": device.driver_version().to_string(),
        })
    }

    fn plan(&self) -> Option<&AttentionPlan> {
        Some(self.prepared.plan())
    }

    fn compute(&mut self) -> Result<Output<T>> {
        self.launch(Lse::Stored)?;
        let mut output = Output::poisoned(self.prepared.plan().problem());
        self.o.download(output.o.data_mut()).map_err(Error::from)?;
        self.lse.to_host(&mut output.lse.view_mut()).map_err(Error::from)?;
        Ok(output)
    }

    fn time(&mut self) -> Result<Option<f64>> {
        Ok(Some(self.launch(Lse::LeftOut)?))
    }
}
