//! The contract of one exported kernel, shared by the device, the builder and the host.
//!
//! `#[kernel(...)]` makes one [`KernelSpec`] for each kernel. On the device its [record](KernelSpec::record) is kept
//! as a global named `__hopper_spec_<kernel>`; hopper-builder reads it from the PTX text, writes the launch bounds
//! that it states, and removes it. On the host the same constant is checked against every launch.

/// The most shared memory that one block may use on Hopper, in bytes: 227 KiB.
pub const MAX_SHARED_BYTES: u32 = 227 * 1024;

/// Registers of one multiprocessor, 32 bits each.
pub const REGISTERS: u32 = 65_536;

/// The prefix of the global that carries a kernel's record.
pub const RECORD_PREFIX: &str = "__hopper_spec_";

/// The first word of every record, so that a reader can tell one.
pub const RECORD_MAGIC: u32 = 0x4850_5253;

/// What a launch of a kernel must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSpec {
    /// The entry's name in the PTX.
    pub name: &'static str,
    /// Threads of a block, exactly.
    pub threads: u32,
    /// Blocks that must fit a multiprocessor at once: with `threads`, the cap on registers at launch.
    pub min_blocks: u32,
    /// Blocks of a cluster, along x; 1 for none.
    pub cluster: u32,
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
}

impl KernelSpec {
    /// A checked specification.
    ///
    /// # Panics
    /// At compile time where it is a constant: where `threads` is no multiple of 32 or over 1024, where shared memory
    /// exceeds 227 KiB, or where the cluster is not 1 to 8 blocks.
    pub const fn new(name: &'static str, threads: u32, min_blocks: u32, cluster: u32, shared_bytes: usize) -> Self {
        assert!(
            threads >= 32 && threads <= 1024 && threads.is_multiple_of(32),
            "threads must be a multiple of 32, at most 1024"
        );
        assert!(min_blocks >= 1 && min_blocks <= 32, "a multiprocessor holds 1 to 32 blocks");
        assert!(cluster >= 1 && cluster <= 8, "a portable cluster has 1 to 8 blocks");
        assert!(shared_bytes <= MAX_SHARED_BYTES as usize, "a block has at most 227 KiB of shared memory");
        Self { name, threads, min_blocks, cluster, shared_bytes: shared_bytes as u32 }
    }

    /// The record: magic, threads, min_blocks, cluster, shared_bytes, three reserved words.
    pub const fn record(&self) -> [u32; 8] {
        [RECORD_MAGIC, self.threads, self.min_blocks, self.cluster, self.shared_bytes, 0, 0, 0]
    }

    /// Registers a thread has at launch, where a kernel splits them: the largest multiple of 8 that lets `min_blocks` blocks fit
    /// and that a thread can name.
    pub const fn launch_registers(&self) -> u32 {
        let registers = REGISTERS / (self.threads * self.min_blocks) / 8 * 8;
        if registers > 248 { 248 } else { registers }
    }
}
