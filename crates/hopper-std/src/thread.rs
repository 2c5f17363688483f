//! Where a thread is, and block-wide synchronisation. Names as in rust-cuda's `cuda_std::thread`.

use hopper_macros::instruction;

use crate::ptx::{barrier, special};

macro_rules! positions {
    ($($(#[$doc:meta])* $name:ident = $register:ident;)*) => {
        $(
            $(#[$doc])*
            #[instruction]
            pub fn $name() -> u32 {
                // SAFETY: reading a special register has no preconditions.
                unsafe { special::$register() }
            }
        )*
    };
}

positions! {
    /// This thread's index in its block.
    thread_idx_x = tid_x;
    /// Threads in a block.
    block_dim_x = ntid_x;
    /// This block's index in the grid, along x.
    block_idx_x = ctaid_x;
    /// This block's index in the grid, along y.
    block_idx_y = ctaid_y;
    /// This block's index in the grid, along z.
    block_idx_z = ctaid_z;
    /// Blocks in the grid, along x.
    grid_dim_x = nctaid_x;
    /// Blocks in the grid, along y.
    grid_dim_y = nctaid_y;
    /// Blocks in the grid, along z.
    grid_dim_z = nctaid_z;
    /// This cluster's index in the grid, along x.
    cluster_idx_x = clusterid_x;
}

/// Waits until every thread of the block is here; what they wrote before is seen after.
///
/// # Safety
/// Every thread of the block must reach this same call.
#[instruction]
pub unsafe fn sync_threads() {
    // SAFETY: the caller's promise.
    unsafe { barrier::barrier_sync_all() }
}
