//! Findings, and the shared addresses that are none.

use hopper_std::sim::At;

use super::{Cluster, State};
use crate::finding::{Finding, FindingKind};
use crate::shared::{BASE, Fault, RANK_SHIFT};

impl Cluster<'_> {
    /// A fault of the thread that runs.
    pub(crate) fn fault(&self, state: &mut State, kind: FindingKind, at: At, details: String) {
        self.fault_of(state, self.current.get(), kind, Some(at), details);
    }

    /// A fault of a thread.
    pub(crate) fn fault_of(
        &self,
        state: &mut State,
        thread: usize,
        kind: FindingKind,
        at: Option<At>,
        details: String,
    ) {
        let block = self.block_index(self.rank_of(thread));
        let thread = Some((thread % self.block_threads()) as u32);
        state.find(Finding { kind, kernel: self.spec.name, block, thread, at, details });
    }

    /// A fault after which nothing means anything.
    pub(crate) fn fatal(&self, kind: FindingKind, at: At, details: String) -> ! {
        self.fault(&mut self.state.borrow_mut(), kind, at, details);
        self.stop()
    }

    /// The block and the address in it that a shared address of this thread's names.
    pub(crate) fn resolve(&self, at: At, address: u32, num_bytes: u32, align: u32) -> (usize, u32) {
        let offset = address & ((1 << RANK_SHIFT) - 1);
        let rank = match address >> RANK_SHIFT {
            0 => self.rank(),
            named => named as usize - 1,
        };
        if rank >= self.spec.cluster as usize {
            self.fatal(FindingKind::OutOfBounds, at, format!("{address:#x} is in no block of the cluster"));
        }
        if !offset.is_multiple_of(align) {
            let details = format!("shared address {offset:#x} is no multiple of {align}");
            self.fatal(FindingKind::Misaligned, at, details);
        }
        let inside = self.state.borrow().blocks[rank].shared.contains(offset, num_bytes);
        if !inside {
            self.fatal(FindingKind::OutOfBounds, at, self.beyond(offset, num_bytes));
        }
        (rank, offset)
    }

    /// What is not within a block's shared memory, in words.
    pub(crate) fn beyond(&self, address: u32, num_bytes: u32) -> String {
        let relative = i64::from(address) - i64::from(BASE);
        format!("{num_bytes} bytes at byte {relative} of {} of shared memory", self.spec.shared_bytes)
    }

    /// As [`resolve`](Self::resolve), for an instruction that names this block's memory only.
    pub(crate) fn resolve_own(&self, at: At, address: u32, num_bytes: u32, align: u32) -> u32 {
        if address >> RANK_SHIFT != 0 {
            let details =
                format!("{address:#x} is an address of the cluster's window, this instruction takes the block's");
            self.fatal(FindingKind::OutOfBounds, at, details);
        }
        self.resolve(at, address, num_bytes, align).1
    }

    /// Records what a check of shared memory found.
    pub(crate) fn shared_fault(&self, state: &mut State, at: At, rank: usize, fault: &Fault) {
        let relative = fault.address - BASE;
        let other = state.describe(fault.task);
        let details = match fault.kind {
            FindingKind::ReadInFlight => format!("byte {relative} of shared memory is being written by {other}"),
            FindingKind::OverwriteInFlight if fault.task != 0 => {
                format!("byte {relative} of shared memory is being written by {other}")
            }
            FindingKind::OverwriteInFlight => {
                let reader = state.reader_of(rank, fault.address);
                format!("byte {relative} of shared memory is being read by {reader}")
            }
            FindingKind::MissingProxyFence => {
                let writer = state.blocks[rank].shared.writer(fault.address);
                format!(
                    "byte {relative} of shared memory was written by an ordinary store of thread {}, with no \
                     fence.proxy.async after it",
                    writer.map_or_else(|| "?".to_owned(), |writer| writer.to_string())
                )
            }
            _ => format!("byte {relative} of shared memory was never written"),
        };
        self.fault(state, fault.kind, at, details);
    }
}
