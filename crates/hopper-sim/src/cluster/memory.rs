//! Ordinary loads and stores, and the banks they meet in.

use std::collections::{HashMap, VecDeque};

use hopper_std::sim::At;

use super::products::poison_of;
use super::{Cluster, State, WARP};
use crate::finding::FindingKind;
use crate::memory;

/// The accesses of one line of source: each lane's first ones together, then its second ones, and so on.
#[derive(Default)]
struct Rows {
    /// Accesses of each lane that are already counted or waiting.
    made: [u64; WARP],
    /// The number of the first row that waits.
    first: u64,
    rows: VecDeque<(u32, [u32; WARP])>,
}

/// The accesses of a warp to shared memory that some of its lanes have made and others not yet.
#[derive(Default)]
pub(crate) struct Banks {
    lines: HashMap<(u32, u32, &'static str, u32), Rows>,
}

impl Banks {
    /// Counts an access of a lane; once all lanes have made it, the ways beyond one in which it meets in a bank.
    fn count(&mut self, at: At, lane: usize, address: u32, bytes: u32) -> u64 {
        let rows = self.lines.entry((at.line(), at.column(), at.file(), bytes)).or_default();
        let row = (rows.made[lane] - rows.first) as usize;
        rows.made[lane] += 1;
        while rows.rows.len() <= row {
            rows.rows.push_back((0, [0; WARP]));
        }
        let (lanes, addresses) = &mut rows.rows[row];
        *lanes |= 1 << lane;
        addresses[lane] = address;
        let mut conflicts = 0;
        while let Some(&(u32::MAX, addresses)) = rows.rows.front() {
            conflicts += ways_beyond_one(&addresses, bytes);
            rows.rows.pop_front();
            rows.first += 1;
        }
        conflicts
    }
}

/// In how many ways beyond one the accesses of a warp, `bytes` each, meet in a bank.
///
/// 32 banks of 4 bytes; a warp's accesses of 8 bytes are served by halves, those of 16 by quarters. Lanes that read one
/// word share it.
pub(crate) fn ways_beyond_one(addresses: &[u32], bytes: u32) -> u64 {
    let at_once = (WARP as u32 * 4 / bytes.max(4)) as usize;
    let ways = |part: &[u32]| {
        let mut words: Vec<u32> =
            part.iter().flat_map(|address| (address / 4)..(address / 4 + bytes.div_ceil(4))).collect();
        words.sort_unstable();
        words.dedup();
        let mut banks = [0_u64; 32];
        for word in words {
            banks[word as usize % 32] += 1;
        }
        banks.into_iter().max().unwrap_or(0).saturating_sub(1)
    };
    addresses.chunks(at_once).map(ways).sum()
}

impl Cluster<'_> {
    /// Whether the bytes are allocated and aligned to their number; else the end.
    fn check_global(&self, at: At, address: usize, num_bytes: usize) {
        if !address.is_multiple_of(num_bytes) {
            self.fatal(FindingKind::Misaligned, at, format!("an access of {num_bytes} bytes at {address:#x}"));
        }
        if let Err(details) = self.memory.find(address, num_bytes) {
            self.fatal(FindingKind::OutOfBounds, at, details);
        }
    }

    pub(crate) fn load_global(&self, at: At, address: *const u8, bytes: &mut [u8]) {
        self.step(at);
        self.check_global(at, address as usize, bytes.len());
        // SAFETY: the bytes are allocated.
        unsafe { memory::read(address, bytes) };
    }

    pub(crate) fn store_global(&self, at: At, address: *mut u8, bytes: &[u8]) {
        self.step(at);
        self.check_global(at, address as usize, bytes.len());
        self.check_words(&mut self.state.borrow_mut(), at, bytes);
        // SAFETY: the bytes are allocated.
        unsafe { memory::write(address, bytes) };
    }

    pub(crate) fn atomic_add(&self, at: At, address: *mut u32, value: u32) -> u32 {
        self.step(at);
        self.check_global(at, address as usize, size_of::<u32>());
        // SAFETY: the word is allocated and aligned.
        unsafe { memory::add(address, value) }
    }

    pub(crate) fn load_shared(&self, at: At, address: u32, bytes: &mut [u8]) {
        self.step(at);
        let num_bytes = bytes.len() as u32;
        let address = self.resolve_own(at, address, num_bytes, num_bytes);
        let rank = self.rank();
        let mut state = self.state.borrow_mut();
        if let Err(fault) = state.blocks[rank].shared.check_load(address, num_bytes) {
            self.shared_fault(&mut state, at, rank, &fault);
        }
        state.blocks[rank].shared.peek(address, bytes);
        self.count_banks(&mut state, at, address, num_bytes);
    }

    pub(crate) fn store_shared(&self, at: At, address: u32, bytes: &[u8]) {
        self.step(at);
        let num_bytes = bytes.len() as u32;
        let address = self.resolve_own(at, address, num_bytes, num_bytes);
        let mut state = self.state.borrow_mut();
        self.check_words(&mut state, at, bytes);
        self.write_shared(&mut state, at, self.current.get(), address, bytes);
        self.count_banks(&mut state, at, address, num_bytes);
    }

    /// An ordinary store of `thread`, which is of the running block.
    pub(crate) fn write_shared(&self, state: &mut State, at: At, thread: usize, address: u32, bytes: &[u8]) {
        let rank = self.rank();
        if let Err(fault) = state.blocks[rank].shared.check_write(address, bytes.len() as u32) {
            self.shared_fault(state, at, rank, &fault);
        }
        self.check_no_barrier(state, at, rank, address, bytes.len() as u32);
        let epoch = state.threads[thread].epoch;
        state.blocks[rank].shared.store(address, bytes, (thread % self.block_threads()) as u16, epoch);
    }

    fn count_banks(&self, state: &mut State, at: At, address: u32, num_bytes: u32) {
        let thread = self.current.get();
        state.bank_conflicts += state.warps[thread / WARP].banks.count(at, thread % WARP, address, num_bytes);
    }

    /// Words that are registers of an accumulator in flight must not leave the thread.
    fn check_words(&self, state: &mut State, at: At, bytes: &[u8]) {
        for word in bytes.chunks_exact(4) {
            let mut bits = [0; 4];
            bits.copy_from_slice(word);
            self.check_bits(state, at, u32::from_le_bytes(bits));
        }
    }

    /// The same for one word.
    pub(crate) fn check_bits(&self, state: &mut State, at: At, bits: u32) {
        if let Some(accumulator) = poison_of(bits).and_then(|number| state.accumulators.get(&number)) {
            let issued = accumulator.at;
            let details =
                format!("a register of the accumulator of the products issued at {issued}, before their wait");
            self.fault(state, FindingKind::AccumulatorInFlight, at, details);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banks() {
        let stride = |bytes: u32| core::array::from_fn::<u32, WARP, _>(|lane| 1024 + lane as u32 * bytes);
        assert_eq!(ways_beyond_one(&stride(4), 4), 0);
        assert_eq!(ways_beyond_one(&stride(0), 4), 0);
        assert_eq!(ways_beyond_one(&stride(8), 4), 1);
        assert_eq!(ways_beyond_one(&stride(128), 4), 31);
        assert_eq!(ways_beyond_one(&stride(16), 16), 0);
        assert_eq!(ways_beyond_one(&stride(128), 16), 4 * 7);
    }
}
