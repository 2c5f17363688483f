//! `hopper-sparse attention`: draw Q, K and V, choose, prepare, launch, check, report.

mod args;
mod check;
mod cpu;
#[cfg(feature = "gpu")]
mod gpu;
mod report;
#[cfg(feature = "sim")]
mod simulated;

use std::time::Instant;

use hopper_sparse::formats::{Dense, Heads, HeadsLayout, HeadsShape, Layout};
use hopper_sparse::ops::attention::{Attention, AttentionPlan};
use hopper_sparse::{Dtype, Element, bf16, f16};
use serde_json::Value;

use crate::error::{CliError, Result};
use crate::random::normal_at;
use crate::samples::Samples;
use crate::{memory, progress};

pub use args::AttentionArgs;
use args::BackendArg;
use report::{Backend, Report};

/// Runs the verb.
pub fn run(args: &AttentionArgs) -> Result<()> {
    let problem = args.problem();
    problem.check().map_err(CliError::usage)?;
    match problem.dtype {
        Dtype::F16 => run_typed::<f16>(args, &problem),
        // The check has left two types.
        _ => run_typed::<bf16>(args, &problem),
    }
}

/// Q, K and V.
#[derive(Clone)]
pub struct Inputs<T> {
    /// Queries.
    pub q: Heads<T>,
    /// Keys.
    pub k: Heads<T>,
    /// Values.
    pub v: Heads<T>,
}

/// O and the log-sum-exps.
pub struct Output<T> {
    /// The result.
    pub o: Heads<T>,
    /// The logarithm of each row's sum of exponentials.
    pub lse: Dense<f32>,
}

impl<T: Element> Output<T> {
    /// NaN everywhere: every element must be overwritten.
    pub fn poisoned(problem: &Attention) -> Self {
        let mut o = Heads::zeros(problem.query_shape(), HeadsLayout::TokensHeads);
        o.data_mut().fill(T::from_f64(f64::NAN));
        let [num_rows, num_cols] = problem.lse_shape();
        Self { o, lse: Dense::from_fn(num_rows, num_cols, Layout::RowMajor, |_, _| f32::NAN) }
    }
}

/// What computes.
pub trait Machine<T> {
    /// What it is, for people.
    fn description(&self) -> String;
    /// What it is, for machines: an object, with its `name`.
    fn json(&self) -> Value;
    /// The plan, where kernels compute.
    fn plan(&self) -> Option<&AttentionPlan>;
    /// Computes O and the log-sum-exps.
    ///
    /// # Errors
    /// A failure of the device.
    fn compute(&mut self) -> Result<Output<T>>;
    /// Computes O alone, and says how many seconds that took; `None` where its time says nothing.
    ///
    /// # Errors
    /// A failure of the device.
    fn time(&mut self) -> Result<Option<f64>>;
}

fn run_typed<T: Element>(args: &AttentionArgs, problem: &Attention) -> Result<()> {
    refuse_what_does_not_fit(problem)?;
    let Opened { prepare, reason } = open::<T>(args)?;
    let inputs = draw::<T>(problem, args.seed);
    let start = Instant::now();
    let mut machine = prepare(problem, &inputs)?;
    let preparation = start.elapsed().as_secs_f64();
    let output = machine.compute()?;
    let check = args.check.then(|| check::run(problem, &inputs, &output, args.seed)).transpose()?;
    let is_wrong = check.as_ref().is_some_and(|check| !check.is_accepted());
    let samples = match machine.time()? {
        // A wrong result has no time.
        Some(_) if !is_wrong => Some(take_samples(machine.as_mut(), args)?),
        _ => None,
    };
    let backend = Backend { text: machine.description(), json: machine.json(), reason };
    let report = Report { args, problem, plan: machine.plan(), backend, preparation, samples, check };
    report.print()?;
    match report.check {
        Some(check) if is_wrong => Err(CliError::failure(format_args!("the result is {check}"))),
        _ => Ok(()),
    }
}

fn take_samples<T>(machine: &mut dyn Machine<T>, args: &AttentionArgs) -> Result<Samples> {
    Samples::take(args.repeat, || Ok(machine.time()?.unwrap_or(f64::NAN)))
}

/// Puts a problem and its inputs on a machine.
type Prepare<T> = Box<dyn FnOnce(&Attention, &Inputs<T>) -> Result<Box<dyn Machine<T>>>>;

/// A machine that was found.
struct Opened<T> {
    prepare: Prepare<T>,
    /// Why it is this one, where it was not asked for.
    reason: Option<String>,
}

/// Finds the machine before anything is drawn.
fn open<T: Element>(args: &AttentionArgs) -> Result<Opened<T>> {
    let asked_for = |prepare| Ok(Opened { prepare, reason: None });
    match args.backend {
        BackendArg::Auto => Ok(match open_gpu(args.device) {
            Ok(prepare) => Opened { prepare, reason: None },
            Err(reason) => Opened { prepare: Box::new(cpu::prepare), reason: Some(reason) },
        }),
        BackendArg::Gpu => {
            asked_for(open_gpu(args.device).map_err(|reason| {
                CliError::failure(reason).hint("--backend auto takes the CPU where there is no GPU")
            })?)
        }
        BackendArg::Cpu => asked_for(Box::new(cpu::prepare)),
        #[cfg(feature = "sim")]
        BackendArg::Sim => asked_for(Box::new(simulated::prepare)),
    }
}

#[cfg(feature = "gpu")]
fn open_gpu<T: Element>(device: Option<u32>) -> Result<Prepare<T>, String> {
    let gpu = crate::gpu::Gpu::open(device)?;
    Ok(Box::new(move |problem, inputs| gpu::prepare(gpu, problem, inputs)))
}

#[cfg(not(feature = "gpu"))]
fn open_gpu<T: Element>(_: Option<u32>) -> Result<Prepare<T>, String> {
    Err("this program was built without the `gpu` feature".to_owned())
}

fn draw<T: Element>(problem: &Attention, seed: u64) -> Inputs<T> {
    let spinner = progress::spinner("drawing Q, K and V");
    let tensor = |shape: HeadsShape, stream: u64| {
        let mut tensor = Heads::zeros(shape, HeadsLayout::TokensHeads);
        // One stream each: of the same seed, K must not be V.
        let stream = seed.wrapping_mul(3).wrapping_add(stream);
        fill(tensor.data_mut(), |index| T::from_f32(normal_at(stream, index as u64)));
        tensor
    };
    let (queries, keys) = (problem.query_shape(), problem.key_shape());
    let inputs = Inputs { q: tensor(queries, 0), k: tensor(keys, 1), v: tensor(keys, 2) };
    spinner.finish_and_clear();
    inputs
}

fn fill<T: Send>(elements: &mut [T], value: impl Fn(usize) -> T + Sync) {
    use rayon::prelude::*;

    elements.par_iter_mut().with_min_len(1 << 14).enumerate().for_each(|(index, element)| *element = value(index));
}

fn refuse_what_does_not_fit(problem: &Attention) -> Result<()> {
    let elements = |shape: HeadsShape| {
        [shape.tokens, shape.heads, shape.head_dim]
            .into_iter()
            .fold(shape.batch as u128, |product, extent| product.saturating_mul(extent as u128))
    };
    let (queries, keys) = (elements(problem.query_shape()), elements(problem.key_shape()));
    let tensors = queries.saturating_add(keys).saturating_mul(2 * problem.dtype.size_bytes() as u128);
    memory::check("such an attention", tensors.saturating_add(queries / problem.head_dim as u128 * 4))
}
