//! What computes, how A is stored, and why.

use hopper_sparse::formats::{BlockShape, FillStatistics};
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

/// A family of kernels, one for each storage of A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Csr,
    Bcsr,
}

impl Family {
    /// The types of A and B that GPU kernels of this family take.
    const fn gpu_dtypes(self) -> &'static [Dtype] {
        match self {
            Self::Csr => &[Dtype::Bf16, Dtype::F16, Dtype::F32],
            Self::Bcsr => &[Dtype::Bf16, Dtype::F16],
        }
    }

    /// Whether `backend` has kernels of this family for the type.
    fn is_served(self, backend: &Backend, dtype: Dtype) -> bool {
        matches!(backend, Backend::Cpu) || self.gpu_dtypes().contains(&dtype)
    }
}

/// Why no GPU kernel computes this, if none does.
fn no_kernel(format: FormatChoice, types: Types) -> Option<String> {
    let families: &[Family] = match format {
        FormatChoice::Auto => &[Family::Csr, Family::Bcsr],
        FormatChoice::Csr => &[Family::Csr],
        FormatChoice::Bcsr(_) => &[Family::Bcsr],
    };
    if families.iter().any(|family| family.gpu_dtypes().contains(&types.input)) {
        return None;
    }
    Some(match format {
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

/// Everything that was chosen.
pub struct Plan {
    /// What computes, and why.
    pub computer: Computer,
    /// How A is stored.
    pub storage: Storage,
    /// Why A is stored so, where nobody asked for it.
    pub storage_reason: Option<String>,
}

impl Plan {
    /// Chooses how A is stored, for the given backend.
    ///
    /// # Errors
    /// A failure where the blocks asked for cannot be held in memory.
    pub fn new<T: Element, C: Element>(
        args: &SpmmArgs,
        computer: Computer,
        input: &Input,
        problem: &Problem<'_, T, C>,
    ) -> Result<Self> {
        let Choice { storage, reason } = choose_storage(args, &computer.backend, input, problem);
        if let Storage::Bcsr(shape, statistics) = storage {
            let bytes = u128::from(statistics.num_blocks) * (shape.rows * shape.cols * T::DTYPE.size_bytes()) as u128;
            memory::check(&format!("A in blocks of {shape}"), bytes)?;
        }
        Ok(Self { computer, storage, storage_reason: reason })
    }

    /// What adds up the products: the block kernels of a GPU do it on tensor cores.
    pub fn unit(&self) -> Unit {
        match &self.computer.backend {
            Backend::Cpu => Unit::Core,
            #[cfg(feature = "gpu")]
            Backend::Gpu(_) => match self.storage {
                Storage::Csr => Unit::Core,
                Storage::Bcsr(..) => Unit::TensorCore,
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
) -> Choice {
    let fit = |shape| (shape, FillStatistics::of(problem.a.view(), shape));
    let blocks = |shape, reason| {
        let (shape, statistics) = fit(shape);
        Choice { storage: Storage::Bcsr(shape, statistics), reason }
    };
    let has_csr = Family::Csr.is_served(backend, T::DTYPE);
    let has_blocks = Family::Bcsr.is_served(backend, T::DTYPE);
    let traffic = choose::Traffic { cols: args.cols, dtype: T::DTYPE };
    let is_on_cpu = matches!(backend, Backend::Cpu);
    match (args.format, input.block) {
        (FormatChoice::Csr, _) => Choice { storage: Storage::Csr, reason: None },
        (FormatChoice::Bcsr(Some(shape)), _) => blocks(shape, None),
        (_, Some(shape)) if has_blocks => blocks(shape, Some("as in the file".to_owned())),
        (FormatChoice::Auto, _) if !has_blocks => {
            Choice { storage: Storage::Csr, reason: Some(format!("no GPU kernel multiplies bcsr in {}", T::DTYPE)) }
        }
        (FormatChoice::Auto, _) if is_on_cpu => choose::for_cpu(&BlockShape::ALL.map(fit)),
        (FormatChoice::Auto, _) if has_csr => {
            choose::for_gpu(traffic, problem.a.num_entries() as u64, &BlockShape::ALL.map(fit))
        }
        (_, _) if is_on_cpu => choose::fullest(&BlockShape::ALL.map(fit)),
        (_, _) => choose::least_traffic(traffic, &BlockShape::ALL.map(fit)),
    }
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
}
