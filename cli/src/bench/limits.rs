//! What the device can do at most, measured in the run that the results are compared in.

use hopper_sparse::Dtype;
use hopper_sparse::formats::Layout;

use super::device::Gpu;
use super::elements::Elements;
use super::error::BenchError;
use super::session::{Limits, Progress};
use super::vendor::cublaslt::{DenseProduct, Shape};
use crate::random::Random;
use crate::statistics::Summary;

/// Far more than the cache holds.
const COPY_BYTES: usize = 1 << 30;
/// The side of the square product whose rate is taken as the peak.
const DENSE_SIDE: usize = 8192;
const NUM_SAMPLES: usize = 20;

/// Measures the copy bandwidth, and the dense rate of each element type.
///
/// # Errors
/// What the device failed at. Where cuBLASLt is missing or does not take a type, that rate stays unknown.
pub fn measure(gpu: &Gpu, dtypes: &[Dtype], progress: &Progress) -> Result<Limits, BenchError> {
    let mut limits = Limits { copy_gbps: Some(copy_gbps(gpu)?), dense: Vec::new() };
    progress.line(&format!("copy on the device: {:.0} GB/s", limits.copy_gbps.unwrap_or(0.0)));
    for &dtype in dtypes {
        match dense_tflops(gpu, dtype) {
            Ok(tflops) => {
                progress.line(&format!("dense {dtype} product of {DENSE_SIDE}^3: {tflops:.0} TFLOP/s"));
                limits.dense.push((dtype, tflops));
            }
            Err(BenchError::Refused(refusal)) => progress.line(&format!("dense {dtype} peak unknown: {refusal}")),
            Err(error) => return Err(error),
        }
    }
    // cuSPARSE's first initialisation takes a while, and is not any workload's preparation. A refusal comes again, with
    // the implementation that it concerns.
    let _ = gpu.cusparse();
    Ok(limits)
}

/// Bytes read and written by a copy, in 10^9 a second.
fn copy_gbps(gpu: &Gpu) -> Result<f64, BenchError> {
    let (from, to) = (gpu.allocate(COPY_BYTES)?, gpu.allocate(COPY_BYTES)?);
    let median_us = median(|| gpu.time_us(|| gpu.copy(&from, &to)))?;
    Ok(2.0 * COPY_BYTES as f64 / median_us * 1e-3)
}

fn dense_tflops(gpu: &Gpu, dtype: Dtype) -> Result<f64, BenchError> {
    // Not zeros: the clock falls with the power that random bits take.
    let draw = |stream| Elements::from_fn(dtype, DENSE_SIDE * DENSE_SIDE, |index| Random::at(stream, index as u64));
    let shape = Shape {
        m: DENSE_SIDE,
        n: DENSE_SIDE,
        k: DENSE_SIDE,
        dtype,
        c_dtype: dtype,
        b_layout: Layout::RowMajor,
        c_layout: Layout::RowMajor,
    };
    // A missing library is said before anything is drawn.
    gpu.cublaslt()?;
    let (a, b) = (gpu.upload(draw(1).as_bytes())?, gpu.upload(draw(2).as_bytes())?);
    let c = gpu.allocate(a.len())?;
    let product = DenseProduct::new(gpu, shape, &[[&a, &b, &c]])?;
    let median_us = median(|| gpu.time_us(|| product.launch(&a, &b, &c)))?;
    Ok(2.0 * (DENSE_SIDE as f64).powi(3) / median_us * 1e-6)
}

/// The median of some samples, in microseconds, after one that is not counted.
fn median(mut sample: impl FnMut() -> Result<f64, BenchError>) -> Result<f64, BenchError> {
    sample()?;
    let samples = (0..NUM_SAMPLES).map(|_| sample()).collect::<Result<Vec<_>, _>>()?;
    Ok(Summary::of(&samples).map_or(f64::NAN, |summary| summary.median))
}
