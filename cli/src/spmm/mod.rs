//! `hopper-sparse spmm`: read or generate A, choose, prepare, launch, check, report.

mod check;
mod cpu;
#[cfg(feature = "gpu")]
mod gpu;
mod limit;
mod plan;
mod report;

use std::time::Instant;

use hopper_sparse::formats::{Csr, Dense, Layout};
use hopper_sparse::{Dtype, Element, bf16, f16};

use crate::args::SpmmArgs;
use crate::error::{CliError, Result};
use crate::input::{self, Input};
use crate::samples::Samples;
use crate::{files, memory, output, progress, random};

use check::Check;
use plan::{Backend, Computer, Plan};
use report::Report;

/// Runs the verb.
pub fn run(args: &SpmmArgs) -> Result<()> {
    let types = Types::of(args)?;
    if let Some(path) = &args.out {
        files::require_safetensors(path)?;
        output::check(path, args.existing())?;
    }
    let computer = Computer::find(args, types)?;
    let input = input::from_source(&args.source, &args.read, args.seed)?;
    match (types.input, types.output) {
        (Dtype::Bf16, Dtype::Bf16) => run_typed::<bf16, bf16>(args, computer, &input),
        (Dtype::Bf16, _) => run_typed::<bf16, f32>(args, computer, &input),
        (Dtype::F16, Dtype::F16) => run_typed::<f16, f16>(args, computer, &input),
        (Dtype::F16, _) => run_typed::<f16, f32>(args, computer, &input),
        (Dtype::F32, _) => run_typed::<f32, f32>(args, computer, &input),
        (Dtype::F64, _) => run_typed::<f64, f64>(args, computer, &input),
    }
}

/// The types of A and B, and of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types {
    /// The type of A and B.
    pub input: Dtype,
    /// The type of C: that of A and B, or f32 for 16-bit ones.
    pub output: Dtype,
}

impl Types {
    fn of(args: &SpmmArgs) -> Result<Self> {
        let input = Dtype::from(args.dtype);
        let output = args.c_dtype.map_or(input, Dtype::from);
        let is_widened = output == Dtype::F32 && input.size_bytes() == 2;
        if output == input || is_widened {
            return Ok(Self { input, output });
        }
        Err(CliError::usage(format_args!("C cannot be {output} where A and B are {input}"))
            .hint("C has the type of A and B, or f32 where they are bf16 or f16"))
    }
}

/// One product, the same for every backend.
pub struct Problem<'a, T, C> {
    /// alpha A B + beta C
    pub alpha: f64,
    /// The sparse factor, with its values rounded to the type of the product.
    pub a: &'a Csr<T>,
    /// The dense factor.
    pub b: &'a Dense<T>,
    /// alpha A B + beta C
    pub beta: f64,
    /// What C holds before the first launch.
    pub c: &'a Dense<C>,
}

/// What was prepared: device memory, blocks, whatever a backend needs before its first launch.
pub trait Prepared<C> {
    /// Computes once, and says how many seconds that took.
    ///
    /// # Errors
    /// A failure of the device.
    fn launch(&mut self) -> Result<f64>;
    /// What C holds now.
    ///
    /// # Errors
    /// A failure of the device.
    fn output(&mut self) -> Result<Dense<C>>;
    /// The kernel and how it is launched, where a GPU computes.
    fn kernel(&self) -> Option<String> {
        None
    }
}

fn run_typed<T: Element, C: Element>(args: &SpmmArgs, computer: Computer, input: &Input) -> Result<()> {
    let a: Csr<T> = input.matrix.cast();
    let (num_rows, num_cols) = (a.num_rows(), a.num_cols());
    refuse_what_does_not_fit::<T, C>(args, num_rows, num_cols)?;
    let b = random::dense::<T>(num_cols, args.cols, Layout::from(args.b_layout), args.seed.wrapping_add(1));
    let c = initial_c::<C>(args, num_rows);
    let problem = Problem { alpha: args.alpha, a: &a, b: &b, beta: args.beta, c: &c };

    let plan = Plan::new(args, computer, input, &problem)?;
    let start = Instant::now();
    let mut prepared = prepare(&plan, &problem)?;
    let preparation = start.elapsed().as_secs_f64();
    prepared.launch()?;
    let result = prepared.output()?;
    let check = args.check.then(|| check::run(&problem, &result, plan.unit())).transpose()?;
    let samples = match &check {
        // A wrong result has no time.
        Some(Check { accepted: false, .. }) => None,
        _ => Some(Samples::take(args.repeat, || prepared.launch())?),
    };
    if let Some(path) = &args.out {
        output::write_whole(path, args.existing(), |path| files::save_dense(path, &result))?;
    }

    let machine = samples.is_some().then(|| plan.measure_machine(T::DTYPE)).transpose()?;
    let report = Report {
        args,
        input,
        plan: &plan,
        kernel: prepared.kernel(),
        types: (T::DTYPE, C::DTYPE),
        preparation,
        samples,
        machine,
        check,
    };
    report.print()?;
    match report.check {
        Some(Check { accepted: false, verdict, .. }) => Err(CliError::failure(format_args!("the result is {verdict}"))),
        _ => Ok(()),
    }
}

/// C before the first launch: random where it is read, NaN where it must be overwritten.
fn initial_c<C: Element>(args: &SpmmArgs, num_rows: usize) -> Dense<C> {
    let layout = Layout::from(args.c_layout);
    if args.beta == 0.0 {
        Dense::from_fn(num_rows, args.cols, layout, |_, _| C::from_f64(f64::NAN))
    } else {
        random::dense(num_rows, args.cols, layout, args.seed.wrapping_add(2))
    }
}

fn refuse_what_does_not_fit<T: Element, C: Element>(args: &SpmmArgs, num_rows: usize, num_cols: usize) -> Result<()> {
    let b = num_cols as u128 * args.cols as u128 * T::DTYPE.size_bytes() as u128;
    // C as it was, as it is computed, and as it is compared.
    let c = 3 * num_rows as u128 * args.cols as u128 * C::DTYPE.size_bytes() as u128;
    memory::check(&format!("a product with {} columns", args.cols), b + c)
}

fn prepare<T: Element, C: Element>(plan: &Plan, problem: &Problem<'_, T, C>) -> Result<Box<dyn Prepared<C>>> {
    let spinner = progress::spinner("preparing");
    let prepared = match &plan.computer.backend {
        Backend::Cpu => cpu::prepare(plan.storage, problem)?,
        #[cfg(feature = "gpu")]
        Backend::Gpu(gpu) => gpu::prepare(gpu, plan.storage, problem)?,
    };
    spinner.finish_and_clear();
    Ok(prepared)
}
