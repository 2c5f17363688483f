//! `hopper-sparse recommend`: which format multiplies a matrix soonest, predicted or measured.

mod args;
#[cfg(feature = "gpu")]
mod measure;
mod report;

pub use args::RecommendArgs;

use hopper_sparse::ops::auto::{DeviceDescription, Question, recommend};

use crate::error::{CliError, Result};
use crate::input;
use crate::{print, print_json};
use report::Report;

/// Runs the verb.
///
/// # Errors
/// As [`input::from_source`]; usage where no kernel serves the types; a failure where a measurement is asked for and there is no GPU, or it
/// fails.
pub fn run(args: &RecommendArgs) -> Result<()> {
    let machine = Machine::find(args)?;
    let input = input::from_source(&args.source, &args.read, args.seed)?;
    let question = args.question(machine.description());
    let found = recommend(input.matrix.pattern(), &question);
    if found.candidates.is_empty() {
        let reason = found.refused.first().map_or_else(String::new, |one| format!(": {}", one.refusal));
        return Err(CliError::usage(format_args!("no GPU kernel serves the product{reason}"))
            .hint("`hopper-sparse spmm --backend cpu` computes every type"));
    }
    let measured = if args.measure { Some(machine.measure(args, &input, &question, &found)?) } else { None };
    let report =
        Report { args, input: &input, question: &question, found: &found, assumed: machine.assumed(), measured };
    if args.json { print_json(&report.json()) } else { print(|out| report.table().write(out)) }
}

/// What a candidate's measurement came to.
#[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "only a GPU measures"))]
pub struct Measured {
    /// As [`Format`](hopper_sparse::ops::auto::Format) prints.
    pub format: String,
    /// The times; what went wrong, where there are none.
    pub times: Result<Times, String>,
}

/// What was measured of a candidate whose result is right.
#[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "only a GPU measures"))]
pub struct Times {
    /// Seconds of a launch, the median.
    pub launch: f64,
    /// Seconds to build, plan and upload A, and of the first launch.
    pub preparation: f64,
}

/// What is predicted for and measured on.
enum Machine {
    /// Nothing: the reason why an H200 is assumed.
    Assumed(String),
    #[cfg(feature = "gpu")]
    Gpu(crate::gpu::Gpu),
}

impl Machine {
    #[cfg(feature = "gpu")]
    fn find(args: &RecommendArgs) -> Result<Self> {
        match crate::gpu::Gpu::open(args.device) {
            Ok(gpu) => Ok(Self::Gpu(gpu)),
            Err(reason) if args.measure || args.device.is_some() => Err(no_device(args, &reason)),
            Err(reason) => Ok(Self::Assumed(reason)),
        }
    }

    #[cfg(not(feature = "gpu"))]
    fn find(args: &RecommendArgs) -> Result<Self> {
        let reason = "this program was built without the `gpu` feature";
        if args.measure || args.device.is_some() {
            Err(no_device(args, reason))
        } else {
            Ok(Self::Assumed(reason.to_owned()))
        }
    }

    fn description(&self) -> DeviceDescription {
        match self {
            Self::Assumed(_) => DeviceDescription::h200(),
            #[cfg(feature = "gpu")]
            Self::Gpu(gpu) => gpu.device().into(),
        }
    }

    /// Why the device is assumed, where it is.
    fn assumed(&self) -> Option<&str> {
        match self {
            Self::Assumed(reason) => Some(reason),
            #[cfg(feature = "gpu")]
            Self::Gpu(_) => None,
        }
    }

    #[cfg_attr(not(feature = "gpu"), expect(unused_variables, reason = "only a GPU measures"))]
    fn measure(
        &self,
        args: &RecommendArgs,
        input: &input::Input,
        question: &Question,
        found: &hopper_sparse::ops::auto::Recommendation,
    ) -> Result<Vec<Measured>> {
        match self {
            Self::Assumed(reason) => Err(no_device(args, reason)),
            #[cfg(feature = "gpu")]
            Self::Gpu(gpu) => measure::all(gpu, args, input, question, found),
        }
    }
}

fn no_device(args: &RecommendArgs, reason: &str) -> CliError {
    let error = if args.measure {
        CliError::failure(format_args!("nothing can be measured: {reason}"))
    } else {
        CliError::failure(reason)
    };
    error.hint("without --measure and --device the times are predicted, for an H200 where there is no GPU")
}
