//! A plan of attention on a device, with tensors of the host.

use hopper_sparse::formats::{DenseViewMut, HeadsView, HeadsViewMut, Layout};
use hopper_sparse::gpu::{Device, DeviceBuffer, DeviceDenseViewMut, DeviceHeadsView, DeviceHeadsViewMut, Stream};
use hopper_sparse::ops::attention::AttentionPlan;
use hopper_sparse::{Element, Result};

/// Uploads the tensors, launches the plan once, and downloads its results.
pub fn launch<T: Element>(
    device: &Device,
    plan: &AttentionPlan,
    [q, k, v]: [HeadsView<'_, T>; 3],
    o: &mut HeadsViewMut<'_, T>,
    mut lse: Option<&mut DenseViewMut<'_, f32>>,
) -> Result<()> {
    let prepared = plan.prepare::<T>(device)?;
    let stream = Stream::new(device)?;
    let buffers = [
        DeviceBuffer::from_slice(device, q.data())?,
        DeviceBuffer::from_slice(device, k.data())?,
        DeviceBuffer::from_slice(device, v.data())?,
    ];
    let view = |index: usize, like: HeadsView<'_, T>| {
        DeviceHeadsView::of_buffer(&buffers[index], like.shape(), like.strides())
    };
    let (shape, strides) = (o.shape(), o.strides());
    let mut device_o = DeviceBuffer::from_slice(device, o.data_mut())?;
    let mut o_view = DeviceHeadsViewMut::of_buffer(&mut device_o, shape, strides)?;
    let device_lse = match &mut lse {
        Some(lse) => DeviceBuffer::from_slice(device, lse.data_mut())?,
        None => DeviceBuffer::from_slice(device, &[])?,
    };
    let [rows, cols] = plan.problem().lse_shape();
    // SAFETY: where log-sum-exps are wanted the buffer has so many, and nothing else uses it.
    let lse_view =
        unsafe { DeviceDenseViewMut::<f32>::from_raw_parts(device_lse.ptr(), rows, cols, cols, Layout::RowMajor) };
    let mut lse_view = lse_view?;
    let wanted = lse.is_some().then_some(&mut lse_view);
    // SAFETY: the buffers live until the stream is synchronized.
    unsafe { prepared.launch(&stream, view(0, q)?, view(1, k)?, view(2, v)?, &mut o_view, wanted) }?;
    stream.synchronize()?;
    device_o.download(o.data_mut())?;
    if let Some(lse) = lse {
        device_lse.download(lse.data_mut())?;
    }
    Ok(())
}
