//! The product on a GPU.

use cust::device::DeviceAttribute;
use hopper_sparse::formats::{AnyBcsr, Dense, Layout};
use hopper_sparse::gpu::{DeviceBuffer, DeviceDense, DeviceDenseView, DeviceDenseViewMut, GpuError, Stream};
use hopper_sparse::ops::bcsr::{BcsrPrepared, BcsrSpmm};
use hopper_sparse::ops::csr::{CsrPrepared, CsrSpmm};
use hopper_sparse::{Element, Error};

use super::limit::{Machine, Origin, Rate};
use super::{Prepared, Problem};
use crate::choose::Storage;
use crate::error::{CliError, Result};
use crate::gpu::{Gpu, Timer};

/// A sparse factor in device memory, of any format.
trait Factor<T, C> {
    /// As the library's `launch`.
    ///
    /// # Safety
    /// B and C are on the factor's device, as is the stream, and nothing else uses C or writes to B until the launch is done.
    unsafe fn launch(
        &self,
        stream: &Stream,
        factors: (f32, f32),
        b: DeviceDenseView<'_, T>,
        c: &mut DeviceDenseViewMut<'_, C>,
    ) -> Result<(), Error>;

    /// The plan, for people.
    fn plan(&self) -> String;
}

macro_rules! factors {
    ($($prepared:ident)*) => {
        $(
            impl<T: Element, C: Element> Factor<T, C> for $prepared<T> {
                unsafe fn launch(
                    &self,
                    stream: &Stream,
                    (alpha, beta): (f32, f32),
                    b: DeviceDenseView<'_, T>,
                    c: &mut DeviceDenseViewMut<'_, C>,
                ) -> Result<(), Error> {
                    // SAFETY: the caller's promise.
                    unsafe { Self::launch(self, stream, alpha, b, beta, c) }
                }

                fn plan(&self) -> String {
                    Self::plan(self).to_string()
                }
            }
        )*
    };
}

factors!(BcsrPrepared CsrPrepared);

/// A product whose operands are in device memory.
struct GpuProduct<A, T, C> {
    a: A,
    /// alpha and beta
    factors: (f32, f32),
    b: DeviceDense<T>,
    c: DeviceDense<C>,
    shape: (usize, usize, Layout),
    timer: Timer,
}

/// Plans, and copies the operands to the device.
///
/// # Errors
/// Usage where no kernel serves the problem, a failure of the driver, or where memory does not suffice.
pub fn prepare<T: Element, C: Element>(
    gpu: &Gpu,
    storage: Storage,
    problem: &Problem<'_, T, C>,
) -> Result<Box<dyn Prepared<C>>> {
    match storage {
        Storage::Bcsr(shape, _) => {
            let a = AnyBcsr::from_csr(problem.a.view(), shape).map_err(CliError::failure)?;
            Ok(Box::new(GpuProduct::new(gpu, prepare_bcsr(gpu, &a, problem)?, problem)?))
        }
        Storage::Csr => Ok(Box::new(GpuProduct::new(gpu, prepare_csr(gpu, problem)?, problem)?)),
    }
}

fn prepare_bcsr<T: Element, C: Element>(
    gpu: &Gpu,
    a: &AnyBcsr<T>,
    Problem { b, c, .. }: &Problem<'_, T, C>,
) -> Result<BcsrPrepared<T>, Error> {
    let (device, a) = (gpu.device(), a.view());
    let problem = BcsrSpmm::new(&a, b.num_cols(), C::DTYPE, b.layout(), c.layout());
    problem.plan(&a, device.num_multiprocessors())?.prepare(device, &a)
}

fn prepare_csr<T: Element, C: Element>(
    gpu: &Gpu,
    Problem { a, b, c, .. }: &Problem<'_, T, C>,
) -> Result<CsrPrepared<T>, Error> {
    let a = a.view();
    CsrSpmm::new(&a, b.num_cols(), C::DTYPE, b.layout(), c.layout()).plan(&a)?.prepare(gpu.device(), &a)
}

impl<A: Factor<T, C>, T: Element, C: Element> GpuProduct<A, T, C> {
    fn new(gpu: &Gpu, a: A, problem: &Problem<'_, T, C>) -> Result<Self, Error> {
        let (device, b, c) = (gpu.device(), problem.b, problem.c);
        Ok(Self {
            a,
            factors: (problem.alpha as f32, problem.beta as f32),
            b: DeviceDense::from_host(device, b.view())?,
            c: DeviceDense::from_host(device, c.view())?,
            shape: (c.num_rows(), c.num_cols(), c.layout()),
            timer: Timer::new(gpu)?,
        })
    }
}

impl<A: Factor<T, C>, T: Element, C: Element> Prepared<C> for GpuProduct<A, T, C> {
    fn launch(&mut self) -> Result<f64> {
        let Self { a, factors, b, c, timer, .. } = self;
        Ok(timer.time(|stream| {
            // SAFETY: B and C are ours, on the device that the factor was prepared on, as is the stream; nothing else
            // touches them before `time` has waited.
            unsafe { a.launch(stream, *factors, b.view(), &mut c.view_mut()) }
        })?)
    }

    fn output(&mut self) -> Result<Dense<C>> {
        let (num_rows, num_cols, layout) = self.shape;
        let mut host = Dense::zeros(num_rows, num_cols, layout);
        self.c.to_host(&mut host.view_mut()).map_err(Error::from)?;
        Ok(host)
    }

    fn kernel(&self) -> Option<String> {
        Some(self.a.plan())
    }
}

/// Bytes of a buffer that is copied: several times the L2 cache.
const COPIED_BYTES: usize = 512 << 20;
/// The best of this many copies is taken.
const COPIES: usize = 5;
/// Additions and multiplications of a multiprocessor in a clock cycle: its tensor cores' in bf16 and f16,
const TENSOR_OPERATIONS: f64 = 4096.0;
/// and its other cores' in f32.
const CORE_OPERATIONS: f64 = 256.0;

/// Measures how fast the device copies; how fast it computes is estimated from its clock.
///
/// Source of the operations a cycle: NVIDIA H100 Tensor Core GPU Architecture, table 1 (2022).
///
/// # Errors
/// A failure of the driver, or where memory does not suffice.
pub fn measure(gpu: &Gpu, storage: Storage) -> Result<Machine> {
    let operations = match storage {
        Storage::Bcsr(..) => TENSOR_OPERATIONS,
        Storage::Csr => CORE_OPERATIONS,
    };
    let kilohertz = gpu.device().cust_device().get_attribute(DeviceAttribute::ClockRate).map_err(CliError::failure)?;
    let per_second = f64::from(gpu.device().num_multiprocessors()) * f64::from(kilohertz) * 1e3 * operations;
    Ok(Machine {
        copy: Rate { per_second: copy_bandwidth(gpu)?, origin: Origin::Measured },
        peak: Rate { per_second, origin: Origin::Estimated },
    })
}

fn copy_bandwidth(gpu: &Gpu) -> Result<f64, Error> {
    let from = DeviceBuffer::<u8>::filled(gpu.device(), COPIED_BYTES, 1)?;
    let to = DeviceBuffer::<u8>::filled(gpu.device(), COPIED_BYTES, 0)?;
    let timer = Timer::new(gpu)?;
    let mut best = f64::INFINITY;
    for _ in 0..COPIES {
        let seconds = timer.time(|stream| {
            // SAFETY: both buffers hold this many bytes and live until `time` has waited.
            let code = unsafe {
                cuda_loader::driver::cuMemcpyDtoDAsync_v2(to.ptr().0, from.ptr().0, COPIED_BYTES, stream.as_inner())
            };
            match code {
                cuda_loader::SUCCESS => Ok(()),
                code => Err(GpuError::Driver { call: "cuMemcpyDtoDAsync_v2", code }.into()),
            }
        })?;
        best = best.min(seconds);
    }
    Ok(2.0 * COPIED_BYTES as f64 / best)
}
