//! How PTX instructions reach a machine that is not a GPU.
//!
//! Built for the CPU with the feature `sim`, every wrapper of [`ptx`](crate::ptx) that needs a device asks the [`Machine`]
//! that is [installed](with_machine) on this thread. hopper-sim is one; without one, the wrappers panic.
//!
//! Addresses are those of [`ptx`](crate::ptx): 32-bit offsets for shared memory, plain pointers for global memory. Each
//! method gets the place in the source that executes the instruction.

use core::cell::Cell;
use core::panic::Location;

/// The place in the source that executes an instruction.
pub type At = &'static Location<'static>;

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in PTX")]
pub enum Special {
    TidX,
    NtidX,
    CtaidX,
    CtaidY,
    CtaidZ,
    NctaidX,
    NctaidY,
    NctaidZ,
    Laneid,
    Smid,
    ClusteridX,
    NclusteridX,
    ClusterCtarank,
    ClusterNctarank,
    DynamicSmemSize,
    Clock64,
    Globaltimer,
}

/// Where a shuffle takes its value from, relative to the lane operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    /// `laneid ^ lane`.
    Bfly,
    /// `lane`.
    Idx,
    /// `laneid - lane`.
    Up,
    /// `laneid + lane`.
    Down,
}

/// What a reduction over a warp keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// The least value.
    Min,
    /// The greatest value.
    Max,
}

/// Which accesses a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// `fence.proxy.async.shared::cta`.
    ProxyAsyncShared,
    /// `fence.proxy.async`.
    ProxyAsync,
    /// `fence.mbarrier_init.release.cluster`.
    MbarrierInit,
    /// `fence.acq_rel.cluster`.
    Cluster,
    /// `fence.acq_rel.gpu`.
    Gpu,
}

/// What a wait for bulk groups waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkWait {
    /// The copies are done.
    Done,
    /// Their sources have been read.
    Read,
}

/// Whether a tensor store replaces or adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Replaces what was there.
    Replace,
    /// Adds to it.
    Add,
}

/// The element type of A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmaType {
    /// bfloat16.
    Bf16,
    /// binary16.
    F16,
}

/// How an 8 x 8 matrix goes between shared memory and registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixMove {
    /// As it lies.
    Plain,
    /// `.trans`: rows and columns change places.
    Trans,
}

impl MatrixMove {
    /// By the instruction's qualifier: none, or `.trans`.
    pub(crate) const fn of_qualifier(qualifier: &str) -> Self {
        if qualifier.is_empty() { Self::Plain } else { Self::Trans }
    }
}

/// Which index of an operand of a product runs along contiguous shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmaMajor {
    /// K: the transpose immediate is 0.
    K,
    /// M or N: the transpose immediate is 1.
    Mn,
}

impl MmaMajor {
    /// By the instruction's transpose immediate.
    pub(crate) const fn of_immediate(trans: i32) -> Self {
        if trans == 0 { Self::K } else { Self::Mn }
    }
}

/// The left operand of a warp-group product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmaLeft {
    /// A descriptor, and how the operand lies.
    Shared(u64, MmaMajor),
    /// This thread's packed pairs.
    Registers([u32; 4]),
}

/// One warp-group product, as one thread executes it.
#[derive(Debug)]
pub struct Wgmma<'a> {
    /// This thread's registers of D: N / 2.
    pub d: &'a mut [f32],
    /// The left operand.
    pub a: MmaLeft,
    /// The descriptor of the right operand.
    pub b: u64,
    /// How B lies.
    pub b_major: MmaMajor,
    /// 0 ignores what D held.
    pub scale_d: u32,
    /// The type of A and B.
    pub element: MmaType,
    /// For a sparse product (K = 32): this thread's metadata word, and the selector.
    pub sparse: Option<(u32, u32)>,
}

/// Carries out instructions. Each method is one of them, or a few that differ by an operand.
#[allow(missing_docs, reason = "named as the wrappers of `ptx`, whose documentation holds")]
pub trait Machine {
    fn special(&self, register: Special) -> u64;
    fn dynamic_shared_address(&self) -> u32;

    fn load_global(&self, at: At, address: *const u8, bytes: &mut [u8]);
    fn store_global(&self, at: At, address: *mut u8, bytes: &[u8]);
    /// Adds to a word, and gives back what it was before.
    fn atomic_add(&self, at: At, address: *mut u32, value: u32) -> u32;
    fn load_shared(&self, at: At, address: u32, bytes: &mut [u8]);
    fn store_shared(&self, at: At, address: u32, bytes: &[u8]);

    fn shuffle(&self, at: At, kind: Shuffle, value: u32, lane: u32) -> u32;
    fn ballot(&self, at: At, predicate: bool) -> u32;
    fn reduce(&self, at: At, kind: Reduce, value: u32) -> u32;
    fn elect(&self, at: At) -> bool;
    fn warp_sync(&self, at: At);
    fn movmatrix_trans(&self, at: At, pair: u32) -> u32;
    fn ldmatrix(&self, at: At, address: u32, how: MatrixMove, matrices: &mut [u32]);
    fn stmatrix(&self, at: At, address: u32, how: MatrixMove, matrices: &[u32]);

    /// `barrier.sync id, threads`; `None` is all threads of the block.
    fn barrier_sync(&self, at: At, id: u32, threads: Option<u32>);
    fn barrier_arrive(&self, at: At, id: u32, threads: u32);
    fn fence(&self, at: At, fence: Fence);
    fn setmaxnreg_dec(&self, at: At, count: u32);
    fn setmaxnreg_inc(&self, at: At, count: u32);

    fn mapa(&self, at: At, address: u32, rank: u32) -> u32;
    fn cluster_arrive(&self, at: At);
    fn cluster_wait(&self, at: At);

    fn mbarrier_init(&self, at: At, barrier: u32, count: u32);
    fn mbarrier_inval(&self, at: At, barrier: u32);
    fn mbarrier_arrive(&self, at: At, barrier: u32);
    /// At a barrier of any block of the cluster.
    fn mbarrier_arrive_cluster(&self, at: At, barrier: u32);
    fn mbarrier_arrive_expect_tx(&self, at: At, barrier: u32, bytes: u32);
    fn mbarrier_expect_tx(&self, at: At, barrier: u32, bytes: u32);
    /// May wait.
    fn mbarrier_try_wait(&self, at: At, barrier: u32, parity: u32) -> bool;
    fn mbarrier_test_wait(&self, at: At, barrier: u32, parity: u32) -> bool;

    /// `mask` names the blocks of a multicast.
    fn bulk_load(&self, at: At, destination: u32, source: *const u8, bytes: u32, barrier: u32, mask: Option<u16>);
    fn bulk_store(&self, at: At, destination: *mut u8, source: u32, bytes: u32);
    fn bulk_commit(&self, at: At);
    fn bulk_wait(&self, at: At, count: u32, what: BulkWait);
    /// `mask` names the blocks of a multicast.
    fn tensor_load(&self, at: At, destination: u32, map: *const u8, box_at: &[i32], barrier: u32, mask: Option<u16>);
    fn tensor_store(&self, at: At, map: *const u8, box_at: &[i32], source: u32, kind: StoreKind);
    fn prefetch_tensormap(&self, at: At, map: *const u8);

    /// Copies `source_bytes` and fills up to `bytes` with zeros.
    fn cp_async(&self, at: At, destination: u32, source: *const u8, bytes: u32, source_bytes: u32);
    fn cp_async_commit(&self, at: At);
    fn cp_async_wait(&self, at: At, count: u32);
    /// Arrives at `barrier` when this thread's earlier copies are done, as one of the arrivals it was initialised with.
    fn cp_async_mbarrier_arrive_noinc(&self, at: At, barrier: u32);

    fn wgmma_fence(&self, at: At);
    fn wgmma_commit(&self, at: At);
    fn wgmma_wait(&self, at: At, count: u32);
    fn wgmma(&self, at: At, product: Wgmma<'_>);
    /// Code that touches the registers is not moved across: where their products have been waited for, they hold the sums
    /// after it.
    fn tie(&self, at: At, registers: &mut [f32]);
    /// A value that leaves the registers: converted, or about to be stored.
    fn use_f32(&self, at: At, value: f32);
}

thread_local! {
    static CURRENT: Cell<Option<*const dyn Machine>> = const { Cell::new(None) };
}

/// Runs `body` with `machine` as the machine of this thread's instructions.
pub fn with_machine<R>(machine: &dyn Machine, body: impl FnOnce() -> R) -> R {
    /// Puts back what was there, also when `body` unwinds.
    struct Restore(Option<*const dyn Machine>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    // SAFETY: only the lifetime is forgotten; the pointer is taken back before `machine` ends.
    let pointer = unsafe { core::mem::transmute::<*const (dyn Machine + '_), *const (dyn Machine + 'static)>(machine) };
    let _restore = Restore(CURRENT.replace(Some(pointer)));
    body()
}

/// The machine of this thread, if there is one.
pub(crate) fn try_machine<'a>() -> Option<&'a dyn Machine> {
    // SAFETY: `with_machine` keeps it alive for as long as it is installed, and instructions end before it does.
    CURRENT.get().map(|machine| unsafe { &*machine })
}

/// The machine of this thread.
///
/// # Panics
/// Where there is none.
#[track_caller]
pub(crate) fn machine<'a>() -> &'a dyn Machine {
    match try_machine() {
        Some(machine) => machine,
        None => panic!("this PTX instruction exists only on the device, or in a simulated launch"),
    }
}
