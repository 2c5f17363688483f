//! The one place that decides what a GPU test does where there is no GPU, and products on a device.

#![allow(dead_code, reason = "not each test program multiplies")]

use std::env;
use std::io::{self, Write as _};

use hopper_sparse::formats::{DenseView, DenseViewMut};
use hopper_sparse::gpu::{Device, DeviceBuffer, DeviceDenseView, DeviceDenseViewMut, Stream};
use hopper_sparse::{Element, Result};

/// The variable that makes a missing device a failure: `HOPPER_REQUIRE_GPU=1`.
const REQUIRE: &str = "HOPPER_REQUIRE_GPU";

/// The device to test on. Where there is none, says on standard error that `test` was skipped, and why.
///
/// # Panics
/// Where there is none although `HOPPER_REQUIRE_GPU` is set to anything but `0` or nothing.
pub fn device_or_skip(test: &str) -> Option<Device> {
    let reason = match Device::hopper() {
        Ok(device) => return Some(device),
        Err(reason) => reason,
    };
    let required = env::var_os(REQUIRE).is_some_and(|value| !value.is_empty() && value != "0");
    assert!(!required, "{REQUIRE} is set, but `{test}` cannot run: {reason}");
    // Not by `eprintln!`, which the test harness swallows for a test that passes; and in one piece, since tests run at
    // the same time.
    let _ = io::stderr().write_all(format!("skipped: {test}: {reason}\n").as_bytes());
    None
}

/// Launches with B and C in device memory exactly as they are on the host, gaps between lines included.
pub fn on_device<T: Element, U: Element>(
    device: &Device,
    b: DenseView<'_, T>,
    c: &mut DenseViewMut<'_, U>,
    launch: impl FnOnce(&Stream, DeviceDenseView<'_, T>, &mut DeviceDenseViewMut<'_, U>) -> Result<()>,
) -> Result<()> {
    let stream = Stream::new(device)?;
    let device_b = DeviceBuffer::from_slice(device, b.data())?;
    let device_c = DeviceBuffer::from_slice(device, c.data_mut())?;
    let b = DeviceDenseView::of_buffer(&device_b, b.num_rows(), b.num_cols(), b.leading_dimension(), b.layout())?;
    let (ptr, rows, cols, lines) = (device_c.ptr(), c.num_rows(), c.num_cols(), c.leading_dimension());
    // SAFETY: the buffer is a copy of C's memory, and nothing else uses it.
    let mut view = unsafe { DeviceDenseViewMut::<U>::from_raw_parts(ptr, rows, cols, lines, c.layout())? };
    launch(&stream, b, &mut view)?;
    stream.synchronize()?;
    device_c.download(c.data_mut())?;
    Ok(())
}
