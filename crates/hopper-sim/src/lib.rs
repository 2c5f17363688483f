//! Runs Hopper kernels written with hopper-std on the CPU, and finds what only a GPU would show.
//!
//! A kernel is ordinary Rust; built for the CPU with hopper-std's feature `sim`, its PTX instructions come here. Each CUDA
//! thread is a coroutine. Copies, products and stores take effect at a time that the [schedule](Schedule) chooses, early or
//! late; until the wait that covers them, what they write is poison.
//!
//! ```
//! use hopper_sim::{Memory, Mode, Schedule, launch};
//! use hopper_std::{KernelSpec, ptx, thread};
//!
//! /// Doubles 64 numbers.
//! unsafe fn double(numbers: *mut u32) {
//!     let index = thread::thread_idx_x() as usize;
//!     // SAFETY: there are as many numbers as threads.
//!     unsafe {
//!         let [number] = ptx::memory::ld_global_u32(numbers.add(index));
//!         ptx::memory::st_global_u32(numbers.add(index), [2 * number]);
//!     }
//! }
//!
//! let spec = KernelSpec::new("double", 64, 1, 1, 0);
//! let mut memory = Memory::new();
//! let numbers = memory.upload("numbers", &(0..64).collect::<Vec<u32>>());
//! let shared = hopper_sim::Address::new(numbers);
//! let report = launch(&spec, [1, 1, 1], &memory, Schedule::new(Mode::Random, 1), || unsafe { double(shared.get()) });
//! report.assert_clean();
//! assert_eq!(memory.download(numbers, 3), [0, 2, 4]);
//! ```

mod cluster;
mod finding;
mod fragments;
mod launch;
mod mbarrier;
mod memory;
mod product;
mod schedule;
mod shared;
pub mod tensor_map;

pub use finding::{Finding, FindingKind, Report};
pub use launch::{Address, launch};
pub use memory::Memory;
pub use schedule::{Mode, Schedule};
pub use tensor_map::{EncodedTensorMap, TensorElement, TensorMap, TensorSwizzle};
