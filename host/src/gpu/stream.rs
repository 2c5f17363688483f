//! Streams, in which launches follow one another, and events, which time them.

use core::fmt;
use core::ops::Deref;

use cuda_loader::driver;
use cust::event::EventFlags;
use cust::stream::StreamFlags;

use super::device::Device;
use super::error::{GpuError, check, check_cust};

/// A stream of a device. It derefs to cust's, which is what [`Kernel::launch`](super::Kernel::launch) takes.
///
/// Launches on one stream run in order; launches on two may overlap. cust creates streams that keep the order with the
/// legacy default stream, on which this library's blocking copies run: a download sees the launches before it, and a
/// launch sees the upload before it, on whatever stream.
pub struct Stream {
    /// NOTE: dropped before the device, whose context it needs.
    stream: cust::stream::Stream,
    device: Device,
}

impl Stream {
    /// A new stream.
    ///
    /// # Errors
    /// [`GpuError::Driver`] where the driver fails.
    pub fn new(device: &Device) -> Result<Self, GpuError> {
        device.make_current()?;
        let stream = check_cust("cuStreamCreateWithPriority", cust::stream::Stream::new(StreamFlags::DEFAULT, None))?;
        Ok(Self { stream, device: device.clone() })
    }

    /// The stream's device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Waits until everything launched on the stream is done.
    ///
    /// # Errors
    /// [`GpuError::Driver`], also for a fault of one of the launches.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.device.make_current()?;
        // Not by cust's function: it does not know the codes of newer faults.
        // SAFETY: the stream is alive and its context is current.
        check("cuStreamSynchronize", unsafe { driver::cuStreamSynchronize(self.stream.as_inner()) })
    }
}

impl Deref for Stream {
    type Target = cust::stream::Stream;

    fn deref(&self) -> &cust::stream::Stream {
        &self.stream
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("device", &self.device).finish_non_exhaustive()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // For cust, which destroys the stream next. Where it fails the driver is gone, and the stream with it.
        let _ = self.device.make_current();
    }
}

/// A point in a stream, to time what lies between two.
pub struct Event {
    /// NOTE: dropped before the device, whose context it needs.
    event: cust::event::Event,
    device: Device,
}

impl Event {
    /// A new event, not yet recorded.
    ///
    /// # Errors
    /// [`GpuError::Driver`] where the driver fails.
    pub fn new(device: &Device) -> Result<Self, GpuError> {
        device.make_current()?;
        let event = check_cust("cuEventCreate", cust::event::Event::new(EventFlags::DEFAULT))?;
        Ok(Self { event, device: device.clone() })
    }

    /// Puts the event after everything launched on `stream` so far; an earlier place is forgotten.
    ///
    /// # Errors
    /// [`GpuError::Driver`], for instance where the stream belongs to another device.
    pub fn record(&self, stream: &cust::stream::Stream) -> Result<(), GpuError> {
        self.device.make_current()?;
        check_cust("cuEventRecord", self.event.record(stream))
    }

    /// Waits until the device has passed the event.
    ///
    /// # Errors
    /// [`GpuError::Driver`], also for a fault of a launch before it.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.device.make_current()?;
        check_cust("cuEventSynchronize", self.event.synchronize())
    }

    /// The time from `start` to this event, in milliseconds, with a resolution of about half a microsecond. Waits for
    /// this event.
    ///
    /// # Errors
    /// [`GpuError::Driver`], for instance where one of the two was never recorded.
    pub fn elapsed_ms(&self, start: &Event) -> Result<f32, GpuError> {
        self.synchronize()?;
        check_cust("cuEventElapsedTime", self.event.elapsed_time_f32(&start.event))
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("device", &self.device).finish_non_exhaustive()
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // For cust, which destroys the event next. Where it fails the driver is gone, and the event with it.
        let _ = self.device.make_current();
    }
}
