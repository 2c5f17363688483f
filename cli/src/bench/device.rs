//! The device as the harness and the vendor's libraries use it: bytes, one stream, and time.

use core::ffi::c_void;
use std::cell::{OnceCell, RefCell};

use hopper_sparse::gpu::{Device, DeviceBuffer, Event, GpuError, Stream};

use super::error::BenchError;
use super::implementation::Refusal;
use super::vendor::{cublaslt, cusparse, cusparselt};

/// A device, a stream on it, and the vendor's handles, each opened on first use.
pub struct Gpu {
    /// NOTE: dropped before the device, whose context they need.
    cublaslt: OnceCell<cublaslt::Handle>,
    cusparse: OnceCell<cusparse::Handle>,
    cusparselt: OnceCell<cusparselt::Handle>,
    start: Event,
    end: Event,
    stream: Stream,
    device: Device,
}

/// Bytes on the device, without a type: each implementation reads them as it was told.
pub struct DeviceBytes(RefCell<DeviceBuffer<u8>>);

/// The operands of a workload on the device, and the place of its result.
pub struct DeviceSet {
    /// As [`Operands::inputs`](super::operands::Operands::inputs) lists them.
    pub inputs: Vec<DeviceBytes>,
    /// The result, without gaps.
    pub output: DeviceBytes,
}

impl DeviceBytes {
    /// The address; valid while `self` lives.
    pub fn address(&self) -> u64 {
        self.0.borrow().ptr().0
    }

    /// The address, as foreign functions take it.
    pub fn pointer(&self) -> *mut c_void {
        self.address() as *mut c_void
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }
}

impl Gpu {
    /// Opens device number `index`, counted from 0.
    ///
    /// # Errors
    /// [`Refusal::NoDevice`] with the reason.
    pub fn open(index: u32) -> Result<Self, Refusal> {
        let open = || -> Result<Self, GpuError> {
            let device = Device::hopper_at(index)?;
            Ok(Self {
                cublaslt: OnceCell::new(),
                cusparse: OnceCell::new(),
                cusparselt: OnceCell::new(),
                start: Event::new(&device)?,
                end: Event::new(&device)?,
                stream: Stream::new(&device)?,
                device,
            })
        };
        open().map_err(|error| Refusal::NoDevice { reason: error.to_string() })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The stream on which everything is launched.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The stream, as foreign functions take it; valid while `self` lives.
    pub fn stream_pointer(&self) -> *mut c_void {
        self.stream.as_inner().cast()
    }

    /// cuBLASLt, initialised for this device.
    ///
    /// # Errors
    /// [`Refusal::LibraryMissing`], or what the library failed at.
    pub fn cublaslt(&self) -> Result<&cublaslt::Handle, BenchError> {
        self.once(&self.cublaslt, cublaslt::Handle::new)
    }

    /// cuSPARSE, initialised for this device.
    ///
    /// # Errors
    /// [`Refusal::LibraryMissing`], or what the library failed at.
    pub fn cusparse(&self) -> Result<&cusparse::Handle, BenchError> {
        self.once(&self.cusparse, cusparse::Handle::new)
    }

    /// cuSPARSELt, initialised for this device.
    ///
    /// # Errors
    /// [`Refusal::LibraryMissing`], [`Refusal::FunctionMissing`], or what the library failed at.
    pub fn cusparselt(&self) -> Result<&cusparselt::Handle, BenchError> {
        self.once(&self.cusparselt, cusparselt::Handle::new)
    }

    fn once<'a, T>(
        &self,
        cell: &'a OnceCell<T>,
        new: impl FnOnce() -> Result<T, BenchError>,
    ) -> Result<&'a T, BenchError> {
        if cell.get().is_none() {
            self.device.make_current().map_err(library)?;
            // The cell is empty, so this stores the value.
            let _ = cell.set(new()?);
        }
        Ok(cell.get_or_init(|| unreachable!("the cell was just filled")))
    }

    /// Memory that holds NaN, in whatever type it is read.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the memory does not suffice.
    pub fn allocate(&self, num_bytes: usize) -> Result<DeviceBytes, BenchError> {
        let buffer = DeviceBuffer::filled(&self.device, num_bytes, u8::MAX).map_err(library)?;
        Ok(DeviceBytes(RefCell::new(buffer)))
    }

    /// A copy of bytes of the host.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the memory does not suffice.
    pub fn upload(&self, bytes: &[u8]) -> Result<DeviceBytes, BenchError> {
        let buffer = DeviceBuffer::from_slice(&self.device, bytes).map_err(library)?;
        Ok(DeviceBytes(RefCell::new(buffer)))
    }

    /// Copies at `count` addresses of bytes of the host, which are sent once.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the memory does not suffice, or the driver refuses.
    pub fn upload_copies(&self, bytes: &[u8], count: usize) -> Result<Vec<DeviceBytes>, BenchError> {
        self.copies_of(self.upload(bytes)?, count)
    }

    /// So many of the same in all, the first included.
    ///
    /// # Errors
    /// As [`upload_copies`](Self::upload_copies).
    pub fn copies_of(&self, first: DeviceBytes, count: usize) -> Result<Vec<DeviceBytes>, BenchError> {
        let mut copies = vec![first];
        while copies.len() < count {
            let next = self.allocate(copies[0].len())?;
            self.copy(&copies[0], &next)?;
            copies.push(next);
        }
        self.synchronize()?;
        Ok(copies)
    }

    /// Sets every bit: a NaN in every type.
    ///
    /// # Errors
    /// [`BenchError::Library`], also for the fault of an earlier launch.
    pub fn fill_ones(&self, memory: &DeviceBytes) -> Result<(), BenchError> {
        memory.0.borrow_mut().fill_bytes(u8::MAX).map_err(library)
    }

    /// Copies all bytes to the host.
    ///
    /// # Errors
    /// [`BenchError::Library`], also for the fault of an earlier launch.
    pub fn download(&self, memory: &DeviceBytes, bytes: &mut [u8]) -> Result<(), BenchError> {
        memory.0.borrow().download(bytes).map_err(library)
    }

    /// Enqueues a copy from one place on the device to another of the same size.
    ///
    /// # Errors
    /// [`BenchError::Library`] where the driver refuses it.
    pub fn copy(&self, from: &DeviceBytes, to: &DeviceBytes) -> Result<(), BenchError> {
        self.device.make_current().map_err(library)?;
        let (to_address, from_address) = (to.address(), from.address());
        let num_bytes = from.len().min(to.len());
        // SAFETY: both places have that many bytes, and live beyond the copy: their owners wait for the device before
        // they free them.
        let code = unsafe {
            cuda_loader::driver::cuMemcpyDtoDAsync_v2(
                to_address,
                from_address,
                num_bytes,
                self.stream.as_inner().cast(),
            )
        };
        if code == cuda_loader::SUCCESS {
            Ok(())
        } else {
            Err(library(GpuError::Driver { call: "cuMemcpyDtoDAsync_v2", code }))
        }
    }

    /// Waits until everything enqueued is done.
    ///
    /// # Errors
    /// [`BenchError::Library`], also for the fault of a launch.
    pub fn synchronize(&self) -> Result<(), BenchError> {
        self.stream.synchronize().map_err(library)
    }

    /// Microseconds between two events of the stream, with what `work` enqueues between them; waits for it.
    ///
    /// # Errors
    /// What `work` failed at; [`BenchError::Library`] for the fault of a launch.
    pub fn time_us(&self, work: impl FnOnce() -> Result<(), BenchError>) -> Result<f64, BenchError> {
        self.start.record(&self.stream).map_err(library)?;
        work()?;
        self.end.record(&self.stream).map_err(library)?;
        Ok(f64::from(self.end.elapsed_ms(&self.start).map_err(library)?) * 1e3)
    }

    /// Bytes of the L2 cache.
    pub fn l2_bytes(&self) -> u64 {
        self.device.l2_bytes()
    }

    /// The card's name, as in the records' folder: `NVIDIA H200` becomes `nvidia-h200`.
    pub fn name(&self) -> String {
        self.device.name().to_lowercase().replace(' ', "-")
    }

    /// The CUDA version that the driver serves.
    pub fn driver(&self) -> String {
        self.device.driver_version().to_string()
    }
}

/// The device layer's error as the harness has it.
pub(super) fn library(error: GpuError) -> BenchError {
    BenchError::Library(error.into())
}
