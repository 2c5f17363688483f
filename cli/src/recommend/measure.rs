//! `--measure`: each candidate built, checked and timed on a GPU.

use std::time::Instant;

use hopper_sparse::formats::{Csr, Dense};
use hopper_sparse::gpu::DeviceDense;
use hopper_sparse::ops::auto::{AutoPlan, AutoPrepared, Format, Question, Recommendation};
use hopper_sparse::reference::naive::{self, Unit};
use hopper_sparse::{Dtype, Element, Error, bf16, f16, reference};

use super::{Measured, RecommendArgs, Times};
use crate::error::{CliError, Result};
use crate::gpu::{Gpu, Timer};
use crate::input::Input;
use crate::samples::Samples;
use crate::{memory, progress, random};

/// Rows of C that are compared with float64.
const CHECKED_ROWS: usize = 256;

/// Measures every candidate, in their order.
///
/// # Errors
/// A failure where B and C do not fit memory, or of the device. What goes wrong with one candidate is in its place.
pub fn all(
    gpu: &Gpu,
    args: &RecommendArgs,
    input: &Input,
    question: &Question,
    found: &Recommendation,
) -> Result<Vec<Measured>> {
    match (question.dtype, question.output) {
        (Dtype::Bf16, Dtype::Bf16) => typed::<bf16, bf16>(gpu, args, input, question, found),
        (Dtype::Bf16, _) => typed::<bf16, f32>(gpu, args, input, question, found),
        (Dtype::F16, Dtype::F16) => typed::<f16, f16>(gpu, args, input, question, found),
        (Dtype::F16, _) => typed::<f16, f32>(gpu, args, input, question, found),
        _ => typed::<f32, f32>(gpu, args, input, question, found),
    }
}

/// What all candidates multiply.
struct Operands<'a, T, C> {
    a: &'a Csr<T>,
    host_b: Dense<T>,
    b: DeviceDense<T>,
    /// NaN, which the product must overwrite.
    host_c: Dense<C>,
    c: DeviceDense<C>,
}

fn typed<T: Element, C: Element>(
    gpu: &Gpu,
    args: &RecommendArgs,
    input: &Input,
    question: &Question,
    found: &Recommendation,
) -> Result<Vec<Measured>> {
    let a: Csr<T> = input.matrix.cast();
    let bytes = |rows: usize, size: usize| rows as u128 * question.num_cols as u128 * size as u128;
    let needed = bytes(a.num_cols(), size_of::<T>()) + 2 * bytes(a.num_rows(), size_of::<C>());
    memory::check(&format!("a product with {} columns", question.num_cols), needed)?;
    let host_b = random::dense::<T>(a.num_cols(), question.num_cols, question.b_layout, args.seed.wrapping_add(1));
    let host_c = Dense::from_fn(a.num_rows(), question.num_cols, question.c_layout, |_, _| C::from_f64(f64::NAN));
    let on_device = |error| CliError::from(Error::from(error));
    let b = DeviceDense::from_host(gpu.device(), host_b.view()).map_err(on_device)?;
    let c = DeviceDense::from_host(gpu.device(), host_c.view()).map_err(on_device)?;
    let mut operands = Operands { a: &a, host_b, b, host_c, c };
    let bar = progress::bar("measuring", found.candidates.len() as u64);
    let measured = found.candidates.iter().map(|candidate| {
        let times = measure(gpu, args, question, candidate.format, &mut operands);
        bar.inc(1);
        Measured { format: candidate.format.to_string(), times: times.map_err(|error| error.to_string()) }
    });
    let measured = measured.collect();
    bar.finish_and_clear();
    Ok(measured)
}

fn measure<T: Element, C: Element>(
    gpu: &Gpu,
    args: &RecommendArgs,
    question: &Question,
    format: Format,
    operands: &mut Operands<'_, T, C>,
) -> Result<Times> {
    let Operands { a, host_b, b, host_c, c } = operands;
    *c = DeviceDense::from_host(gpu.device(), host_c.view()).map_err(Error::from)?;
    let timer = Timer::new(gpu).map_err(Error::from)?;
    let start = Instant::now();
    let prepared = AutoPlan::with_format(a, question, format)?.prepare(gpu.device())?;
    launch(&timer, &prepared, b, c)?;
    let preparation = start.elapsed().as_secs_f64();
    let mut result = Dense::zeros(a.num_rows(), question.num_cols, question.c_layout);
    c.to_host(&mut result.view_mut()).map_err(Error::from)?;
    check(format, a, host_b, host_c, &result)?;
    let samples = Samples::take(args.repeat, || Ok(launch(&timer, &prepared, b, c)?))?;
    Ok(Times { launch: samples.median(), preparation })
}

/// Computes once; seconds.
fn launch<T: Element, C: Element>(
    timer: &Timer,
    prepared: &AutoPrepared<T>,
    b: &DeviceDense<T>,
    c: &mut DeviceDense<C>,
) -> Result<f64, Error> {
    timer.time(|stream| {
        // SAFETY: B and C are the caller's, on the device that A was prepared on, as is the stream; nothing else touches them
        // before `time` has waited.
        unsafe { prepared.launch(stream, 1.0, b.view(), 0.0, &mut c.view_mut()) }
    })
}

/// A wrong result has no time.
fn check<T: Element, C: Element>(
    format: Format,
    a: &Csr<T>,
    b: &Dense<T>,
    before: &Dense<C>,
    result: &Dense<C>,
) -> Result<()> {
    let unit = if format == Format::Csr { Unit::Core } else { Unit::TensorCore };
    let rows = reference::sample_rows(a.num_rows(), a.num_rows().min(CHECKED_ROWS));
    let exact = reference::spmm_rows(1.0, &a.view(), b.view(), 0.0, before.view(), &rows).map_err(CliError::failure)?;
    let tolerance = naive::tolerance(unit, 1.0, &a.view(), b.view(), 0.0, before.view(), &exact);
    let error = exact.compare(result.view()).map_err(CliError::failure)?;
    let verdict = tolerance.map_err(CliError::failure)?.judge(&error);
    if verdict.is_accepted() { Ok(()) } else { Err(CliError::failure(format_args!("the result is {verdict}"))) }
}
