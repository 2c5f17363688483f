//! What computes, how A is stored, and why.

use hopper_sparse::formats::{BlockShape, FillStatistics, WindowShape};
#[cfg(any(feature = "gpu", test))]
use hopper_sparse::ops::auto::{Format, Recommendation};
use hopper_sparse::reference::naive::Unit;
use hopper_sparse::{Dtype, Element};
use serde_json::{Value, json};

use super::limit::{self, Machine};
use super::{Problem, Types};
use crate::args::{BackendChoice, FormatChoice, SpmmArgs};
use crate::choose::{self, Choice, Storage};
use crate::error::{CliError, Result};
use crate::input::Input;
use crate::memory;
#[cfg(any(feature = "gpu", test))]
use crate::table::seconds;

/// What computes.
pub enum Backend {
    /// This machine's processors.
    Cpu,
    /// A GPU.
    #[cfg(feature = "gpu")]
    Gpu(crate::gpu::Gpu),
}

/// A backend and the reason for it.
pub struct Computer {
    /// What computes.
    pub backend: Backend,
    /// Why, where it was not asked for.
    pub reason: Option<String>,
}

impl Computer {
    /// Finds the backend, before anything is read: what is refused is refused at once.
    ///
    /// # Errors
    /// Where the GPU is asked for: usage where no kernel serves the types and the format, a failure where there is no GPU.
    pub fn find(args: &SpmmArgs, types: Types) -> Result<Self> {
        match args.backend {
            BackendChoice::Cpu => Ok(Self { backend: Backend::Cpu, reason: None }),
            BackendChoice::Gpu => {
                if let Some(reason) = no_kernel(args.format, types) {
                    return Err(CliError::usage(reason).hint("--backend cpu computes every type in every format"));
                }
                let backend = open(args.device).map_err(|reason| {
                    CliError::failure(reason).hint("--backend auto takes the CPU where there is no GPU")
                })?;
                Ok(Self { backend, reason: None })
            }
            BackendChoice::Auto => Ok(match no_kernel(args.format, types).map_or_else(|| open(args.device), Err) {
                Ok(backend) => Self { backend, reason: None },
                Err(reason) => Self { backend: Backend::Cpu, reason: Some(reason) },
            }),
        }
    }
}

impl Computer {
    /// What computes, for people.
    pub fn description(&self) -> String {
        match &self.backend {
            Backend::Cpu => format!("CPU, {} threads", rayon::current_num_threads()),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => format!("GPU {}, {}", gpu.device().index(), gpu.device().name()),
        }
    }

    /// What computes, for machines.
    pub fn json(&self) -> Value {
        match &self.backend {
            Backend::Cpu => json!({ "name": "cpu", "reason": self.reason, "threads": rayon::current_num_threads() }),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => json!({
                "name": "gpu",
                "reason": self.reason,
                "device": gpu.device().index(),
                "device_name": gpu.device().name(),
                "driver": gpu.device().driver_version().to_string(),
            }),
        }
    }
}

/// Whether GPU kernels take A and B of this type: in blocks, which tensor cores multiply, or as entries.
const fn is_served(format: FormatChoice, dtype: Dtype) -> bool {
    match dtype {
        Dtype::Bf16 | Dtype::F16 => true,
        Dtype::F32 => !matches!(format, FormatChoice::Bcsr(_)),
        Dtype::F64 => false,
    }
}

/// Why no GPU kernel computes this, if none does.
fn no_kernel(format: FormatChoice, types: Types) -> Option<String> {
    let served = is_served(format, types.input);
    (!served).then(|| match format {
        FormatChoice::Auto => format!("no GPU kernel multiplies {}", types.input),
        FormatChoice::Csr => format!("no GPU kernel multiplies csr in {}", types.input),
        FormatChoice::Bcsr(_) => format!("no GPU kernel multiplies bcsr in {}", types.input),
    })
}

#[cfg(feature = "gpu")]
fn open(device: Option<u32>) -> Result<Backend, String> {
    crate::gpu::Gpu::open(device).map(Backend::Gpu)
}

#[cfg(not(feature = "gpu"))]
fn open(_: Option<u32>) -> Result<Backend, String> {
    Err("this program was built without the `gpu` feature".to_owned())
}

/// How A is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stored {
    /// Compressed sparse rows.
    Csr,
    /// Blocks, and how well they fit.
    Bcsr(BlockShape, FillStatistics),
    /// Windows of rows, on a GPU, and how well they fit.
    #[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "only a GPU multiplies windows"))]
    Wcsr(WindowShape, WindowFit),
}

/// How well windows fit a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowFit {
    /// Bytes of A.
    pub bytes: u64,
    /// Elements that are multiplied, zeros included.
    pub stored_elements: u64,
    /// Entries over stored elements, 0 to 1.
    pub fill: f64,
}

impl From<Storage> for Stored {
    fn from(storage: Storage) -> Self {
        match storage {
            Storage::Csr => Self::Csr,
            Storage::Bcsr(shape, statistics) => Self::Bcsr(shape, statistics),
        }
    }
}

/// How A is stored, and why, where nobody asked for it.
type Reasoned = (Stored, Option<String>);

impl From<Choice> for Reasoned {
    fn from(Choice { storage, reason }: Choice) -> Self {
        (storage.into(), reason)
    }
}

/// Everything that was chosen.
pub struct Plan {
    /// What computes, and why.
    pub computer: Computer,
    /// How A is stored.
    pub storage: Stored,
    /// Why A is stored so, where nobody asked for it.
    pub storage_reason: Option<String>,
}

impl Plan {
    /// Chooses how A is stored, for the given backend.
    ///
    /// # Errors
    /// A failure where the blocks or windows cannot be held in memory.
    pub fn new<T: Element, C: Element>(
        args: &SpmmArgs,
        computer: Computer,
        input: &Input,
        problem: &Problem<'_, T, C>,
    ) -> Result<Self> {
        let (storage, reason) = choose_storage(args, &computer.backend, input, problem);
        match storage {
            Stored::Csr => {}
            Stored::Bcsr(shape, statistics) => {
                let elements = u128::from(statistics.num_blocks) * (shape.rows * shape.cols) as u128;
                memory::check(&format!("A in blocks of {shape}"), elements * T::DTYPE.size_bytes() as u128)?;
            }
            Stored::Wcsr(shape, fit) => memory::check(&format!("A in windows of {shape}"), fit.bytes.into())?,
        }
        Ok(Self { computer, storage, storage_reason: reason })
    }

    /// What adds up the products: the kernels of a GPU for blocks and windows do it on tensor cores.
    pub fn unit(&self) -> Unit {
        match &self.computer.backend {
            Backend::Cpu => Unit::Core,
            #[cfg(feature = "gpu")]
            Backend::Gpu(_) => match self.storage {
                Stored::Csr => Unit::Core,
                Stored::Bcsr(..) | Stored::Wcsr(..) => Unit::TensorCore,
            },
        }
    }

    /// What the machine can do in this type, measured where that can be done.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn measure_machine(&self, dtype: Dtype) -> Result<Machine> {
        match &self.computer.backend {
            Backend::Cpu => Ok(limit::measure_cpu(dtype)),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => super::gpu::measure(gpu, self.storage),
        }
    }
}

/// What was asked for, else what the file holds, else what is worth it: of what the backend has kernels for.
fn choose_storage<T: Element, C: Element>(
    args: &SpmmArgs,
    backend: &Backend,
    input: &Input,
    problem: &Problem<'_, T, C>,
) -> Reasoned {
    let fit = |shape| (shape, FillStatistics::of(problem.a.view(), shape));
    let blocks = |shape, reason| {
        let (shape, statistics) = fit(shape);
        (Stored::Bcsr(shape, statistics), reason)
    };
    let has_blocks = matches!(backend, Backend::Cpu) || is_served(FormatChoice::Bcsr(None), T::DTYPE);
    match (args.format, input.block) {
        (FormatChoice::Csr, _) => (Stored::Csr, None),
        (FormatChoice::Bcsr(Some(shape)), _) => blocks(shape, None),
        (_, Some(shape)) if has_blocks => blocks(shape, Some("as in the file".to_owned())),
        #[cfg(feature = "gpu")]
        (format, _) if let Backend::Gpu(gpu) = backend => {
            let may_be = |found: Format| format == FormatChoice::Auto || matches!(found, Format::Bcsr(_));
            by_prediction(&recommendation(args, gpu, problem), may_be, |shape| fit(shape).1)
                .unwrap_or_else(|| choose::fullest(&BlockShape::ALL.map(fit)).into())
        }
        (FormatChoice::Auto, _) => choose::for_cpu(&BlockShape::ALL.map(fit)).into(),
        (_, _) => choose::fullest(&BlockShape::ALL.map(fit)).into(),
    }
}

/// What is predicted of every format on this device.
#[cfg(feature = "gpu")]
fn recommendation<T: Element, C: Element>(
    args: &SpmmArgs,
    gpu: &crate::gpu::Gpu,
    problem: &Problem<'_, T, C>,
) -> Recommendation {
    use hopper_sparse::ops::auto::{Question, recommend};
    let question = Question {
        output: C::DTYPE,
        b_layout: args.b_layout.into(),
        c_layout: args.c_layout.into(),
        ..Question::new(args.cols, T::DTYPE).with_device(gpu.device().into())
    };
    recommend(problem.a.pattern(), &question)
}

/// The format that is predicted to be the soonest of those that it `may_be`; `None` where none of them was a candidate.
#[cfg(any(feature = "gpu", test))]
fn by_prediction(
    found: &Recommendation,
    may_be: impl Fn(Format) -> bool,
    fit: impl Fn(BlockShape) -> FillStatistics,
) -> Option<Reasoned> {
    let mut candidates = found.candidates.iter().filter(|candidate| may_be(candidate.format));
    let best = candidates.next()?;
    let stored = match best.format {
        Format::Csr => Stored::Csr,
        Format::Bcsr(shape) => Stored::Bcsr(shape, fit(shape)),
        Format::Wcsr(window) => {
            let (bytes, stored_elements, fill) = (best.bytes, best.stored_elements, best.fill);
            Stored::Wcsr(window, WindowFit { bytes, stored_elements, fill })
        }
    };
    let mut reason = format!("predicted: {} a launch, bound by {}", seconds(best.launch_seconds()), best.bound());
    if let Some(next) = candidates.next() {
        reason += &format!("; {} would take {}", next.format, seconds(next.launch_seconds()));
    }
    Some((stored, Some(reason)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_by_format_and_type() {
        let bcsr = FormatChoice::Bcsr(None);
        for (format, input, refusal) in [
            (FormatChoice::Csr, Dtype::Bf16, None),
            (FormatChoice::Csr, Dtype::F16, None),
            (FormatChoice::Csr, Dtype::F32, None),
            (FormatChoice::Csr, Dtype::F64, Some("no GPU kernel multiplies csr in f64")),
            (bcsr, Dtype::Bf16, None),
            (bcsr, Dtype::F32, Some("no GPU kernel multiplies bcsr in f32")),
            (FormatChoice::Auto, Dtype::F32, None),
            (FormatChoice::Auto, Dtype::F64, Some("no GPU kernel multiplies f64")),
        ] {
            assert_eq!(no_kernel(format, Types { input, output: input }).as_deref(), refusal);
        }
    }

    /// For an H200: what a device would choose, without one.
    #[test]
    fn the_soonest_format_is_chosen_and_said_why() {
        use hopper_sparse::generate::GeneratorSpec;
        use hopper_sparse::ops::auto::{Question, recommend};
        for (spec, dtype, expected) in [
            // As many block rows as an H200 has multiprocessors, nearly: fewer leave some idle, which split windows do not.
            ("blocks:16384x1024,128x64,0.2", Dtype::Bf16, "bcsr"),
            ("uniform:20000x20000,0.0005", Dtype::Bf16, "csr"),
            ("fem:6000", Dtype::F32, "csr"),
        ] {
            let a = GeneratorSpec::parse(spec).and_then(|spec| spec.generate()).expect("a matrix");
            let found = recommend(a.pattern(), &Question::new(128, dtype));
            let fit = |shape| FillStatistics::of(a.view(), shape);
            let (stored, reason) = by_prediction(&found, |_| true, fit).expect("a candidate");
            let name = match stored {
                Stored::Csr => "csr",
                Stored::Bcsr(_, statistics) => {
                    assert_eq!(statistics.num_entries, a.num_entries() as u64);
                    "bcsr"
                }
                Stored::Wcsr(_, fit) => {
                    assert!(fit.fill > 0.0 && fit.stored_elements >= a.num_entries() as u64, "{fit:?}");
                    "wcsr"
                }
            };
            assert_eq!(name, expected, "{spec}: {found}");
            let reason = reason.expect("a reason");
            assert!(reason.starts_with("predicted: ") && reason.contains("bound by"), "{reason}");
            let blocks = by_prediction(&found, |format| matches!(format, Format::Bcsr(_)), fit);
            assert!(blocks.is_none_or(|(stored, _)| matches!(stored, Stored::Bcsr(..))), "{spec}");
        }
    }
}
