//! The product on a GPU.

use cust::device::DeviceAttribute;
use hopper_sparse::formats::{Dense, Layout};
use hopper_sparse::gpu::{DeviceBuffer, DeviceDense, GpuError};
use hopper_sparse::ops::auto::{AutoPlan, AutoPrepared, Format, Question};
use hopper_sparse::{Element, Error};

use super::limit::{Machine, Origin, Rate};
use super::plan::Stored;
use super::{Prepared, Problem};
use crate::error::{CliError, Result};
use crate::gpu::{Gpu, Timer};

/// A product whose operands are in device memory.
struct GpuProduct<T: Element, C> {
    a: AutoPrepared<T>,
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
    storage: Stored,
    problem: &Problem<'_, T, C>,
) -> Result<Box<dyn Prepared<C>>> {
    let Problem { a, b, c, .. } = problem;
    let device = gpu.device();
    let format = match storage {
        Stored::Csr => Format::Csr,
        Stored::Bcsr(shape, _) => Format::Bcsr(shape),
        Stored::Wcsr(window, _) => Format::Wcsr(window),
    };
    let question = Question {
        output: C::DTYPE,
        b_layout: b.layout(),
        c_layout: c.layout(),
        ..Question::new(b.num_cols(), T::DTYPE).with_device(device.into())
    };
    let prepared = AutoPlan::with_format(a, &question, format)?.prepare(device)?;
    Ok(Box::new(GpuProduct::new(gpu, prepared, problem)?))
}

impl<T: Element, C: Element> GpuProduct<T, C> {
    fn new(gpu: &Gpu, a: AutoPrepared<T>, problem: &Problem<'_, T, C>) -> Result<Self, Error> {
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

impl<T: Element, C: Element> Prepared<C> for GpuProduct<T, C> {
    fn launch(&mut self) -> Result<f64> {
        let Self { a, factors: (alpha, beta), b, c, timer, .. } = self;
        Ok(timer.time(|stream| {
            // SAFETY: B and C are ours, on the device that the factor was prepared on, as is the stream; nothing else
            // touches them before `time` has waited.
            unsafe { a.launch(stream, *alpha, b.view(), *beta, &mut c.view_mut()) }
        })?)
    }

    fn output(&mut self) -> Result<Dense<C>> {
        let (num_rows, num_cols, layout) = self.shape;
        let mut host = Dense::zeros(num_rows, num_cols, layout);
        self.c.to_host(&mut host.view_mut()).map_err(Error::from)?;
        Ok(host)
    }

    fn kernel(&self) -> Option<String> {
        Some(self.a.to_string())
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
pub fn measure(gpu: &Gpu, storage: Stored) -> Result<Machine> {
    let operations = match storage {
        Stored::Bcsr(..) | Stored::Wcsr(..) => TENSOR_OPERATIONS,
        Stored::Csr => CORE_OPERATIONS,
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
