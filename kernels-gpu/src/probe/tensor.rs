//! One tensor copy: a box from global to shared memory, or back, replacing or adding.

use hopper_std::ptx::bulk::{cp_async_bulk_commit_group, cp_async_bulk_wait_group};
use hopper_std::ptx::fence::fence_mbarrier_init_release_cluster;
use hopper_std::ptx::mbarrier::{mbarrier_arrive_expect_tx, mbarrier_init, mbarrier_try_wait_parity};
use hopper_std::ptx::special::dynamic_shared_address;
use hopper_std::ptx::tensor;
use hopper_std::{KernelSpec, kernel, thread};

use super::{SHARED_BYTES, dump, fill, fill_with_pattern, publish};

/// Threads of a block.
pub const THREADS: u32 = 128;

/// Bytes of shared memory: operands, and one barrier after them.
const WITH_BARRIER: usize = SHARED_BYTES as usize + 16;

/// Makes the entries and the list of their specifications.
macro_rules! kernels {
    (
        load { $($load:ident $load_spec:ident: $load_copy:ident, ($($load_index:literal),*);)* }
        store { $($store:ident $store_spec:ident: $store_copy:ident, ($($store_index:literal),*);)* }
    ) => {
        /// The exported kernels, `probe_tensor_<rank>d_<load, store or add>`.
        ///
        /// # Safety
        /// The launch contract of each: `map` is a tensor map of its rank; `c0` to `c4` are coordinates, of which it takes
        /// as many; the box lies at `offset` in shared memory, within `bytes`, at most [`SHARED_BYTES`].
        ///
        /// A load: the box has `box_bytes`, and all `bytes` of shared memory, in which the box is surrounded by
        /// [`PATTERN`](super::PATTERN), go to `out`. A store or sum: shared memory is first filled from `operands`.
        #[allow(clippy::too_many_arguments, clippy::missing_safety_doc)]
        pub mod entries {
            use super::*;

            $(
                /// A box from global to shared memory.
                #[kernel(threads = THREADS, shared = WITH_BARRIER)]
                pub unsafe fn $load(
                    map: *const u8,
                    c0: i32,
                    c1: i32,
                    c2: i32,
                    c3: i32,
                    c4: i32,
                    offset: u32,
                    box_bytes: u32,
                    out: *mut u32,
                    bytes: u32,
                ) {
                    let at = [c0, c1, c2, c3, c4];
                    // SAFETY: the launch contract; the barrier lies after the operands, and is initialised before the
                    // block's barrier.
                    unsafe {
                        let shared = dynamic_shared_address();
                        let barrier = shared + SHARED_BYTES;
                        fill_with_pattern(shared, bytes);
                        if thread::thread_idx_x() == 0 {
                            mbarrier_init(barrier, 1);
                            fence_mbarrier_init_release_cluster();
                        }
                        publish();
                        if thread::thread_idx_x() == 0 {
                            mbarrier_arrive_expect_tx(barrier, box_bytes);
                            tensor::$load_copy(shared + offset, map, [$(at[$load_index]),*], barrier);
                        }
                        while !mbarrier_try_wait_parity(barrier, 0) {}
                        thread::sync_threads();
                        dump(out, shared, bytes);
                    }
                }
            )*

            $(
                /// A box from shared to global memory.
                #[kernel(threads = THREADS, shared = SHARED_BYTES as usize)]
                pub unsafe fn $store(
                    map: *const u8,
                    c0: i32,
                    c1: i32,
                    c2: i32,
                    c3: i32,
                    c4: i32,
                    offset: u32,
                    operands: *const u32,
                    bytes: u32,
                ) {
                    let at = [c0, c1, c2, c3, c4];
                    // SAFETY: the launch contract; the group is waited for before the block ends.
                    unsafe {
                        let shared = dynamic_shared_address();
                        fill(shared, operands, bytes);
                        publish();
                        if thread::thread_idx_x() == 0 {
                            tensor::$store_copy(map, [$(at[$store_index]),*], shared + offset);
                            cp_async_bulk_commit_group();
                            cp_async_bulk_wait_group::<0>();
                        }
                    }
                }
            )*
        }

        /// The specifications.
        pub static SPECS: &[KernelSpec] = &[$(entries::$load_spec,)* $(entries::$store_spec,)*];
    };
}

kernels! {
    load {
        probe_tensor_1d_load PROBE_TENSOR_1D_LOAD: cp_async_bulk_tensor_1d, (0);
        probe_tensor_2d_load PROBE_TENSOR_2D_LOAD: cp_async_bulk_tensor_2d, (0, 1);
        probe_tensor_3d_load PROBE_TENSOR_3D_LOAD: cp_async_bulk_tensor_3d, (0, 1, 2);
        probe_tensor_4d_load PROBE_TENSOR_4D_LOAD: cp_async_bulk_tensor_4d, (0, 1, 2, 3);
        probe_tensor_5d_load PROBE_TENSOR_5D_LOAD: cp_async_bulk_tensor_5d, (0, 1, 2, 3, 4);
    }
    store {
        probe_tensor_2d_store PROBE_TENSOR_2D_STORE: cp_async_bulk_tensor_2d_store, (0, 1);
        probe_tensor_3d_store PROBE_TENSOR_3D_STORE: cp_async_bulk_tensor_3d_store, (0, 1, 2);
        probe_tensor_2d_add PROBE_TENSOR_2D_ADD: cp_reduce_async_bulk_tensor_2d_add, (0, 1);
        probe_tensor_3d_add PROBE_TENSOR_3D_ADD: cp_reduce_async_bulk_tensor_3d_add, (0, 1, 2);
    }
}
