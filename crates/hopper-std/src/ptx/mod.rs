//! PTX instructions: one wrapper, one instruction, named after the opcode with dots as underscores.
//!
//! Each function's documentation gives the PTX line, who must execute it (*thread*: any thread for itself; *warp*,
//! *warp group*, *block*, *cluster*: all of its threads, converged), and what must hold. Shared memory is addressed by
//! 32-bit offsets into the shared window (`u32`); global memory by generic 64-bit pointers.
//!
//! On the CPU, with the feature `sim`, a wrapper hands its operands to the installed machine (`sim::Machine`), with
//! the place in the source that called it: beside each `asm!` stands what the machine does. Without the feature it
//! panics. Arithmetic ([`convert`], [`bits`]) is done by the CPU itself.
//!
//! Source of all of it: the PTX ISA, sections 9.7.1 (integers), 9.7.3 (floating point), 9.7.8 (shifts), 9.7.9 (moves and conversions; 9.7.9.25 asynchronous
//! copies), 9.7.13 (barriers and fences), 9.7.14 (matrices of a warp), 9.7.15 (warp-group matrix products), 9.7.19
//! (registers) and 10 (special registers).
#![cfg_attr(not(target_arch = "nvptx64"), allow(unused_variables, unreachable_code, unused_mut))]

/// One instruction: what a CPU does for it, then the operands of `asm!`, which the device executes.
///
/// - `sim(machine, at) { ... }`: asks the [`Machine`](crate::sim::Machine) for it and assigns the outputs; `at` is the
///   place that called the wrapper. Without the feature `sim` there is no machine, and the instruction panics.
/// - `cpu { ... }`: arithmetic, which any CPU can do.
macro_rules! ptx_asm {
    (sim($machine:pat_param, $at:pat_param) { $($cpu:tt)* } $($asm:tt)*) => {{
        #[cfg(all(feature = "sim", not(target_arch = "nvptx64")))]
        {
            let ($machine, $at) = ($crate::sim::machine(), core::panic::Location::caller());
            $($cpu)*
        }
        #[cfg(not(any(feature = "sim", target_arch = "nvptx64")))]
        $crate::ptx::only_on_the_device();
        ptx_asm!(@device $($asm)*);
    }};
    (cpu { $($cpu:tt)* } $($asm:tt)*) => {{
        #[cfg(not(target_arch = "nvptx64"))]
        {
            $($cpu)*
        }
        ptx_asm!(@device $($asm)*);
    }};
    (@device $($asm:tt)*) => {
        // SAFETY: each wrapper's `# Safety` section is the instruction's, and its caller's promise.
        #[cfg(target_arch = "nvptx64")]
        #[allow(unused_unsafe)]
        unsafe {
            core::arch::asm!($($asm)*);
        }
    };
}

pub mod async_copy;
pub mod atomic;
pub mod barrier;
pub mod bits;
pub mod bulk;
pub mod cluster;
pub mod convert;
#[cfg(not(target_arch = "nvptx64"))]
mod cpu;
pub mod fence;
pub mod matrix;
pub mod mbarrier;
pub mod memory;
pub mod registers;
pub mod special;
pub mod tensor;
pub mod warp;
pub mod wgmma;

/// What a wrapper does where there is neither a GPU nor a machine in its place.
#[cfg(not(any(feature = "sim", target_arch = "nvptx64")))]
#[cold]
#[track_caller]
fn only_on_the_device() -> ! {
    panic!("this PTX instruction exists only on the device")
}
