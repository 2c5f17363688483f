//! `hopper-sparse info`: the device, its driver, and the kernels; or a matrix.

use serde_json::{Value, json};

use crate::args::InfoArgs;
use crate::error::Result;
use crate::matrix_info::{MatrixInfo, Orders};
use crate::table::{Table, bytes, count};
use crate::{print, print_json};

/// Runs the verb. A machine without a GPU is described too.
///
/// # Errors
/// A failure where a kernel does not load, or stdout cannot be written; as [`crate::input::read`] where a matrix is named.
pub fn run(args: &InfoArgs) -> Result<()> {
    if let Some(file) = &args.file {
        let orders = if args.reorder { Orders::Sought } else { Orders::AsTheyAre };
        let matrix = MatrixInfo::read(file, &args.read, orders)?;
        return if args.json { print_json(&matrix.json()) } else { print(|out| matrix.table().write(out)) };
    }
    let machine = Machine::look(args)?;
    if args.json { print_json(&machine.json()) } else { print(|out| machine.table().write(out)) }
}

/// What there is.
struct Machine {
    device: Result<Device, String>,
    kernels: Vec<Kernel>,
}

/// A GPU that can be used.
pub struct Device {
    /// From 0, in the driver's order.
    pub index: u32,
    /// The driver's name for it.
    pub name: String,
    /// The newest CUDA version that the driver serves.
    pub driver: String,
    /// Before and after the dot.
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub num_multiprocessors: u32,
    /// The size of the L2 cache.
    pub l2_bytes: u64,
    /// Device memory that is free.
    pub free_bytes: u64,
    /// Device memory in all.
    pub total_bytes: u64,
}

/// What is known of one kernel.
struct Kernel {
    name: &'static str,
    threads: u32,
    cluster: u32,
    shared_bytes: u32,
    launch_registers: u32,
    loaded: Option<Loaded>,
}

/// What the driver says of one kernel, once it has compiled it.
pub struct Loaded {
    /// Registers of a thread.
    pub registers: u32,
    /// Local memory of a thread; 0 unless registers were spilled.
    pub local_bytes: u32,
    /// Blocks that fit a multiprocessor at once.
    pub blocks_per_multiprocessor: u32,
}

impl Machine {
    #[cfg(feature = "gpu")]
    fn look(args: &InfoArgs) -> Result<Self> {
        use crate::error::CliError;
        use crate::gpu::Gpu;
        let gpu = match (Gpu::open(args.device), args.load) {
            (Err(reason), true) => {
                return Err(CliError::failure(reason).hint("leave --load out to see the specifications alone"));
            }
            (gpu, _) => gpu,
        };
        let bar = crate::progress::bar("loading kernels", kernels_gpu::specs().count() as u64);
        let mut kernels = Vec::new();
        for spec in kernels_gpu::specs() {
            let loaded = match (&gpu, args.load) {
                (Ok(gpu), true) => Some(gpu.load(spec)?),
                _ => None,
            };
            kernels.push(Kernel::new(spec, loaded));
            bar.inc(1);
        }
        bar.finish_and_clear();
        let device = match gpu {
            Ok(gpu) => Ok(gpu.describe()?),
            Err(reason) => Err(reason),
        };
        Ok(Self { device, kernels })
    }

    #[cfg(not(feature = "gpu"))]
    fn look(_: &InfoArgs) -> Result<Self> {
        let kernels = kernels_gpu::specs().map(|spec| Kernel::new(spec, None)).collect();
        Ok(Self {
            device: Err("no GPU can be used, because this program was built without the `gpu` feature".to_owned()),
            kernels,
        })
    }

    fn table(&self) -> Table {
        let mut table = Table::default();
        match &self.device {
            Err(reason) => {
                table.row("device", reason.clone());
            }
            Ok(device) => {
                let (major, minor) = device.compute_capability;
                table.row("device", format!("{} ({}), compute capability {major}.{minor}", device.index, device.name));
                table.row("driver", format!("serves CUDA {}", device.driver));
                table.row("memory", format!("{} free of {}", bytes(device.free_bytes), bytes(device.total_bytes)));
                table.more(format!("L2 {}, {} multiprocessors", bytes(device.l2_bytes), device.num_multiprocessors));
            }
        }
        table.row("cpu", format!("{} threads", rayon::current_num_threads()));
        table.row("kernels", count(self.kernels.len() as u64));
        let width = self.kernels.iter().map(|kernel| kernel.name.len()).max().unwrap_or(0);
        for kernel in &self.kernels {
            table.more(kernel.line(width));
        }
        table
    }

    fn json(&self) -> Value {
        let device = self.device.as_ref().ok().map(|device| {
            json!({
                "index": device.index,
                "name": device.name,
                "driver": device.driver,
                "compute_capability": format!("{}.{}", device.compute_capability.0, device.compute_capability.1),
                "multiprocessors": device.num_multiprocessors,
                "l2_bytes": device.l2_bytes,
                "free_bytes": device.free_bytes,
                "total_bytes": device.total_bytes,
            })
        });
        json!({
            "device": device,
            "reason": self.device.as_ref().err(),
            "cpu_threads": rayon::current_num_threads(),
            "kernels": self.kernels.iter().map(Kernel::json).collect::<Vec<_>>(),
        })
    }
}

impl Kernel {
    fn new(spec: &hopper_std::KernelSpec, loaded: Option<Loaded>) -> Self {
        Self {
            name: spec.name,
            threads: spec.threads,
            cluster: spec.cluster,
            shared_bytes: spec.shared_bytes,
            launch_registers: spec.launch_registers(),
            loaded,
        }
    }

    fn line(&self, width: usize) -> String {
        let mut line = format!(
            "{:width$}  {} threads, {} registers, {:9} shared",
            self.name,
            self.threads,
            self.loaded.as_ref().map_or(self.launch_registers, |loaded| loaded.registers),
            bytes(self.shared_bytes.into()),
        );
        if self.cluster > 1 {
            line.push_str(&format!(", clusters of {}", self.cluster));
        }
        if let Some(loaded) = &self.loaded {
            line.push_str(&format!(
                ", {} local, {} blocks a multiprocessor",
                bytes(loaded.local_bytes.into()),
                loaded.blocks_per_multiprocessor
            ));
        }
        line
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "threads": self.threads,
            "cluster": self.cluster,
            "shared_bytes": self.shared_bytes,
            "launch_registers": self.launch_registers,
            "registers": self.loaded.as_ref().map(|loaded| loaded.registers),
            "local_bytes": self.loaded.as_ref().map(|loaded| loaded.local_bytes),
            "blocks_per_multiprocessor": self.loaded.as_ref().map(|loaded| loaded.blocks_per_multiprocessor),
        })
    }
}
