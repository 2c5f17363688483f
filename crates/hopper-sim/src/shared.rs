//! One block's shared memory, and what is known of each of its words.

use crate::finding::FindingKind;

/// Where dynamic shared memory begins: the hardware keeps the first kilobyte for itself.
pub(crate) const BASE: u32 = 1024;

/// The bits of an address that name the block, in the cluster's window: rank + 1.
pub(crate) const RANK_SHIFT: u32 = 24;

/// An asynchronous operation, by number; 0 is none.
pub(crate) type TaskId = u32;

/// What is known of four bytes.
#[derive(Clone, Copy, Default)]
struct Word {
    /// The copy in flight that writes it.
    writing: TaskId,
    /// Asynchronous reads in flight.
    readers: u16,
    /// One more than the thread that wrote it last with an ordinary store; 0 for none.
    writer: u16,
    /// That thread's proxy fences when it did.
    epoch: u32,
    /// Which of its bytes were ever written.
    written: u8,
}

/// What a check found: the kind, and what is at odds.
pub(crate) struct Fault {
    pub(crate) kind: FindingKind,
    pub(crate) address: u32,
    /// The operation in flight, where there is one.
    pub(crate) task: TaskId,
}

pub(crate) struct SharedMemory {
    bytes: Vec<u8>,
    words: Vec<Word>,
}

impl SharedMemory {
    pub(crate) fn new(num_bytes: u32) -> Self {
        // A pattern that is no small number, so that what is read too early looks like nothing sensible.
        Self { bytes: vec![0xa5; num_bytes as usize], words: vec![Word::default(); num_bytes.div_ceil(4) as usize] }
    }

    /// Whether `num_bytes` from `address` on are within the block's memory.
    pub(crate) fn contains(&self, address: u32, num_bytes: u32) -> bool {
        address >= BASE && u64::from(address - BASE) + u64::from(num_bytes) <= self.bytes.len() as u64
    }

    fn words_of(&mut self, address: u32, num_bytes: u32) -> &mut [Word] {
        let first = (address - BASE) / 4;
        let end = (address - BASE + num_bytes).div_ceil(4).max(first);
        &mut self.words[first as usize..end as usize]
    }

    /// The bytes, whatever is known of them.
    pub(crate) fn peek(&self, address: u32, bytes: &mut [u8]) {
        let start = (address - BASE) as usize;
        bytes.copy_from_slice(&self.bytes[start..start + bytes.len()]);
    }

    /// Sets the bytes, whatever is known of them.
    pub(crate) fn poke(&mut self, address: u32, bytes: &[u8]) {
        let start = (address - BASE) as usize;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self.mark_written(address, bytes.len() as u32);
    }

    fn mark_written(&mut self, address: u32, num_bytes: u32) {
        let start = address - BASE;
        for (first, word) in (start / 4 * 4..).step_by(4).zip(self.words_of(address, num_bytes)) {
            // The bytes of this word, of 0 to 4, from the first to the last that are written.
            let (low, high) = (start.saturating_sub(first), (start + num_bytes - first).min(4));
            word.written |= (0xf << low) & (0xf >> (4 - high));
        }
    }

    /// Whether an ordinary load may read here.
    pub(crate) fn check_load(&mut self, address: u32, num_bytes: u32) -> Result<(), Fault> {
        for byte in address..address + num_bytes {
            let word = self.words[(byte - BASE) as usize / 4];
            let fault = |kind, task| Err(Fault { kind, address: byte, task });
            if word.writing != 0 {
                return fault(FindingKind::ReadInFlight, word.writing);
            }
            if word.written & (1 << (byte % 4)) == 0 {
                return fault(FindingKind::UninitialisedRead, 0);
            }
        }
        Ok(())
    }

    /// Whether an ordinary store, or a copy, may write here.
    pub(crate) fn check_write(&mut self, address: u32, num_bytes: u32) -> Result<(), Fault> {
        let start = (address - BASE) / 4 * 4 + BASE;
        for (index, word) in self.words_of(address, num_bytes).iter().enumerate() {
            if word.writing != 0 || word.readers != 0 {
                let address = start + index as u32 * 4;
                return Err(Fault { kind: FindingKind::OverwriteInFlight, address, task: word.writing });
            }
        }
        Ok(())
    }

    /// An ordinary store by `thread`, which has executed `epoch` proxy fences.
    pub(crate) fn store(&mut self, address: u32, bytes: &[u8], thread: u16, epoch: u32) {
        self.poke(address, bytes);
        for word in self.words_of(address, bytes.len() as u32) {
            (word.writer, word.epoch) = (thread + 1, epoch);
        }
    }

    /// Marks what a copy will write.
    pub(crate) fn begin_write(&mut self, address: u32, num_bytes: u32, task: TaskId) {
        for word in self.words_of(address, num_bytes) {
            word.writing = task;
        }
    }

    /// The copy has arrived.
    pub(crate) fn end_write(&mut self, address: u32, bytes: &[u8]) {
        self.poke(address, bytes);
        for word in self.words_of(address, bytes.len() as u32) {
            (word.writing, word.writer) = (0, 0);
        }
    }

    /// Whether the asynchronous proxy may read here; `epochs` are the threads' proxy fences.
    pub(crate) fn check_async_read(
        &mut self,
        address: u32,
        num_bytes: u32,
        epoch_of: impl Fn(u16) -> u32,
    ) -> Result<(), Fault> {
        let start = (address - BASE) / 4 * 4 + BASE;
        for (index, word) in self.words_of(address, num_bytes).iter().enumerate() {
            let address = start + index as u32 * 4;
            let fault = |kind, task| Err(Fault { kind, address, task });
            if word.writing != 0 {
                return fault(FindingKind::ReadInFlight, word.writing);
            }
            if word.written != 0xf {
                return fault(FindingKind::UninitialisedRead, 0);
            }
            if word.writer != 0 && epoch_of(word.writer - 1) <= word.epoch {
                return fault(FindingKind::MissingProxyFence, 0);
            }
        }
        Ok(())
    }

    /// An asynchronous read is in flight.
    pub(crate) fn begin_read(&mut self, address: u32, num_bytes: u32) {
        for word in self.words_of(address, num_bytes) {
            word.readers += 1;
        }
    }

    /// It is known to be over.
    pub(crate) fn end_read(&mut self, address: u32, num_bytes: u32) {
        for word in self.words_of(address, num_bytes) {
            word.readers -= 1;
        }
    }

    /// Says that `thread` wrote the words, which it did through an instruction of its own.
    pub(crate) fn set_writer(&mut self, address: u32, num_bytes: u32, thread: u16, epoch: u32) {
        for word in self.words_of(address, num_bytes) {
            (word.writer, word.epoch) = (thread + 1, epoch);
        }
    }

    /// The thread that wrote the word last with an ordinary store.
    pub(crate) fn writer(&mut self, address: u32) -> Option<u16> {
        self.words_of(address, 1)[0].writer.checked_sub(1)
    }
}
