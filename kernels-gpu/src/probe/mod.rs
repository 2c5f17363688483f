//! Probes: kernels of one instruction, whose operands come from the launch and whose raw result goes back.
//!
//! They settle what a description leaves open, and hold the simulator to the hardware: `tests/agreement.rs` runs each on
//! a GPU and in the simulator, with the same operands, and compares the bytes. Nothing of the library launches them.
//!
//! # What each does
//!
//! ```text
//! operands: global -> shared memory, 16 bytes a thread, as they are      fill
//! fence.proxy.async, barrier of the block                                publish
//! one instruction (with the fences and waits that it needs)
//! registers or shared memory -> global, as they are                      dump
//! ```
//!
//! - `product.rs`: `wgmma.mma_async`, dense and sparse; descriptors are arguments.
//! - `tensor.rs`: tensor copies of 1 to 5 dimensions, stores and sums.
//! - `warp.rs`: `ldmatrix`, `stmatrix`, `movmatrix`, `shfl`.
//!
//! # Contract
//!
//! Every launch is of one block. Addresses in shared memory, in arguments and descriptors, count from the beginning of the
//! block's dynamic shared memory, which is aligned to 1024 bytes. Byte counts are multiples of 16, and global addresses
//! are 16-byte aligned.

pub mod product;
pub mod tensor;
pub mod warp;

use hopper_std::KernelSpec;
use hopper_std::ptx::fence::fence_proxy_async_shared_cta;
use hopper_std::ptx::memory::{ld_global_v4_u32, ld_shared_v4_u32, st_global_v4_u32, st_shared_v4_u32};
use hopper_std::thread;

/// Bytes of shared memory for operands.
pub const SHARED_BYTES: u32 = 64 * 1024;

/// What shared memory holds where no operand was put.
pub const PATTERN: u32 = 0xa5a5_a5a5;

/// The specification of every probe.
pub fn specs() -> impl Iterator<Item = &'static KernelSpec> {
    product::SPECS.iter().chain(tensor::SPECS).chain(warp::SPECS)
}

/// Copies `bytes` from global to shared memory. Block.
///
/// # Safety
/// Both ranges are there, and aligned to 16 bytes.
#[inline(always)]
unsafe fn fill(shared: u32, source: *const u32, bytes: u32) {
    let mut offset = thread::thread_idx_x() * 16;
    while offset < bytes {
        // SAFETY: the offset is within both ranges.
        unsafe { st_shared_v4_u32(shared + offset, ld_global_v4_u32(source.wrapping_byte_add(offset as usize))) };
        offset += thread::block_dim_x() * 16;
    }
}

/// Fills `bytes` of shared memory with [`PATTERN`]. Block.
///
/// # Safety
/// The range is there, and aligned to 16 bytes.
#[inline(always)]
unsafe fn fill_with_pattern(shared: u32, bytes: u32) {
    let mut offset = thread::thread_idx_x() * 16;
    while offset < bytes {
        // SAFETY: the offset is within the range.
        unsafe { st_shared_v4_u32(shared + offset, [PATTERN; 4]) };
        offset += thread::block_dim_x() * 16;
    }
}

/// Makes what the block wrote visible to itself and to the asynchronous proxy. Block.
///
/// # Safety
/// Every thread of the block calls it.
#[inline(always)]
unsafe fn publish() {
    // SAFETY: the caller's promise.
    unsafe {
        fence_proxy_async_shared_cta();
        thread::sync_threads();
    }
}

/// Copies `bytes` from shared to global memory. Block.
///
/// # Safety
/// Both ranges are there, and aligned to 16 bytes.
#[inline(always)]
unsafe fn dump(out: *mut u32, shared: u32, bytes: u32) {
    let mut offset = thread::thread_idx_x() * 16;
    while offset < bytes {
        // SAFETY: the offset is within both ranges.
        unsafe { st_global_v4_u32(out.wrapping_byte_add(offset as usize), ld_shared_v4_u32(shared + offset)) };
        offset += thread::block_dim_x() * 16;
    }
}
