//! What a simulated launch found wrong.

use core::fmt;
use core::panic::Location;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingKind {
    /// Nobody can go on.
    Deadlock,
    /// Memory was read while an asynchronous write to it was in flight.
    ReadInFlight,
    /// Memory was written while an asynchronous read or write of it was in flight.
    OverwriteInFlight,
    /// A register of an accumulator was used before the wait for its products.
    AccumulatorInFlight,
    /// A product was issued on registers that were touched since the last `wgmma.fence`.
    MissingWgmmaFence,
    /// Ordinary writes were read by the asynchronous proxy with no `fence.proxy.async` between, or a barrier was used by it
    /// with no fence after the initialisation.
    MissingProxyFence,
    /// Shared memory was read that nobody has written.
    UninitialisedRead,
    /// An access outside of every allocation.
    OutOfBounds,
    /// An address that is no multiple of what the instruction demands.
    Misaligned,
    /// A descriptor, a tensor map or an immediate that the instruction does not accept.
    BadOperand,
    /// More or fewer bytes than a barrier expects.
    TransactionBytes,
    /// More arrivals than a barrier counts.
    ArrivalOverrun,
    /// A barrier that was not initialised, or is initialised while in use; a wait at the cluster's with no arrival.
    BadBarrier,
    /// A register split that does not fit the multiprocessor.
    RegisterOversubscription,
    /// More than 227 KiB of shared memory.
    SharedMemory,
    /// One barrier id used by two groups of warps, or with two counts.
    BarrierCollision,
    /// Threads of one warp or warp group at different instructions or with different operands, where all must have the same.
    Divergence,
    /// A kernel ended with something in flight.
    Unfinished,
    /// The kernel panicked.
    Panic,
}

/// One fault: what, who, where.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What.
    pub kind: FindingKind,
    /// The kernel.
    pub kernel: &'static str,
    /// The block, x y z.
    pub block: [u32; 3],
    /// The thread of the block that was caught, where it is one.
    pub thread: Option<u32>,
    /// The line of source that was caught.
    pub at: Option<&'static Location<'static>>,
    /// The rest: addresses, barriers, counts, and the other line where two are at odds.
    pub details: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.block;
        write!(f, "{:?} in {}, block ({x}, {y}, {z})", self.kind, self.kernel)?;
        if let Some(thread) = self.thread {
            write!(f, ", thread {thread}")?;
        }
        if let Some(at) = self.at {
            write!(f, ", {at}")?;
        }
        write!(f, ": {}", self.details)
    }
}

/// What a launch came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The faults, of each kind and place the first one; none where the kernel is right.
    pub findings: Vec<Finding>,
    /// Ways beyond one in which the accesses of a warp to shared memory met in one bank: what they cost, not a fault.
    pub bank_conflicts: u64,
    /// Instructions that reached the machine.
    pub num_instructions: u64,
}

impl Report {
    /// Whether a fault of this kind was found.
    pub fn has(&self, kind: FindingKind) -> bool {
        self.findings.iter().any(|finding| finding.kind == kind)
    }

    /// Nothing, where nothing was found.
    ///
    /// # Panics
    /// With all findings, where there are some.
    #[track_caller]
    pub fn assert_clean(&self) {
        assert!(self.findings.is_empty(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.findings.is_empty() {
            return write!(f, "nothing found");
        }
        for (index, finding) in self.findings.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{finding}")?;
        }
        Ok(())
    }
}
