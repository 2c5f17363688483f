//! PTX instructions: one wrapper, one instruction, named after the opcode with dots as underscores.
//!
//! Each function's documentation gives the PTX line, who must execute it (*thread*: any thread for itself; *warp*,
//! *warp group*, *block*, *cluster*: all of its threads, converged), and what must hold. Shared memory is addressed by
//! 32-bit offsets into the shared window (`u32`); global memory by generic 64-bit pointers.
//!
//! Source of all of it: the PTX ISA, sections 9.7.8 (moves and copies), 9.7.9.25 (asynchronous copies), 9.7.13 (barriers
//! and fences), 9.7.15 (warp-group matrix products) and 10 (special registers).
#![cfg_attr(not(target_arch = "nvptx64"), allow(unused_variables, unreachable_code, unused_mut))]

/// `asm!` on the device. On the CPU there is no such instruction.
macro_rules! ptx_asm {
    ($($tokens:tt)*) => {{
        // SAFETY: each wrapper's `# Safety` section is the instruction's, and its caller's promise.
        #[cfg(target_arch = "nvptx64")]
        #[allow(unused_unsafe)]
        unsafe {
            core::arch::asm!($($tokens)*);
        }
        #[cfg(not(target_arch = "nvptx64"))]
        $crate::ptx::only_on_the_device();
    }};
}

pub mod async_copy;
pub mod barrier;
pub mod bulk;
pub mod cluster;
pub mod convert;
pub mod fence;
pub mod matrix;
pub mod mbarrier;
pub mod memory;
pub mod registers;
pub mod special;
pub mod tensor;
pub mod warp;
pub mod wgmma;

/// What a wrapper does where there is no GPU.
#[cfg(not(target_arch = "nvptx64"))]
#[cold]
#[track_caller]
fn only_on_the_device() -> ! {
    panic!("this PTX instruction exists only on the device")
}
