//! Rows of 32 words, one for each lane, that a warp streams through shared memory for itself.
//!
//! ```text
//!            group 0       group 1              group GROUPS-1   first rows again
//! row       0 ...... 7    8 ..... 15    ...                      0 .. 3
//! lane 0    w w w w w w   w
//! lane 1    w w w         each lane reads `WINDOW` rows from one of its own choice: lanes drift apart
//! ...
//! lane 31   w w w w w w   w w w
//! ```
//!
//! Word j of every lane lies in row j, so that lane l reads in bank l only, however far lanes are from one another. A warp fills its
//! ring itself: nobody else reads it, and a group may be overwritten when no lane is before its end any more.

use hopper_macros::instruction;

use super::{FullBarrier, Phase, Shared};
use crate::ptx::tensor::CachePolicy;
use crate::ptx::{bulk, mbarrier, memory};
use crate::{hint, warp};

/// Bytes of a row: a word for each lane.
pub const ROW_BYTES: u32 = 128;

/// Rows of a group, which is what one copy brings.
pub const GROUP_ROWS: u32 = 8;

/// Rows that a lane reads at once.
pub const WINDOW: usize = 5;

/// Bytes of a group.
const GROUP_BYTES: u32 = GROUP_ROWS * ROW_BYTES;

/// Rows of the first group that stand once more behind the last, so that a window need not turn round.
const AGAIN_ROWS: u32 = WINDOW as u32 - 1;

/// The ring of a warp: `GROUPS` groups, a power of two.
#[repr(C, align(128))]
pub struct WarpRing<const GROUPS: usize> {
    groups: [[[u32; 32]; GROUP_ROWS as usize]; GROUPS],
    again: [[u32; 32]; AGAIN_ROWS as usize],
    full: [FullBarrier; GROUPS],
}

impl<const GROUPS: usize> Shared<WarpRing<GROUPS>> {
    #[inline(always)]
    fn full(self, slot: u32) -> Shared<FullBarrier> {
        // SAFETY: the field is there.
        unsafe { self.project::<[FullBarrier; GROUPS]>(core::mem::offset_of!(WarpRing<GROUPS>, full)) }.at(slot)
    }

    /// Initialises the barriers. Thread.
    ///
    /// # Safety
    /// One thread calls it, before a barrier of the block after which the ring is used.
    #[instruction]
    pub unsafe fn init(self) {
        let mut slot = 0;
        while slot < GROUPS as u32 {
            // SAFETY: the caller's promise.
            unsafe { mbarrier::mbarrier_init(self.full(slot).address(), 1) };
            slot += 1;
        }
    }
}

/// A warp's end of its ring, of both ends.
///
/// Groups are numbered from the first that was ever copied.
pub struct WarpStream<const GROUPS: usize> {
    ring: Shared<WarpRing<GROUPS>>,
    policy: CachePolicy,
    copied: u32,
    arrived: u32,
}

impl<const GROUPS: usize> WarpStream<GROUPS> {
    const MASK: u32 = {
        assert!(GROUPS.is_power_of_two(), "places in the ring are taken by their lowest bits");
        GROUPS as u32 * GROUP_BYTES - 1
    };

    /// The stream through `ring`.
    ///
    /// # Safety
    /// The ring is [initialised](Shared::init) and visible, and one warp has its stream: all lanes the same.
    #[inline(always)]
    pub const unsafe fn new(ring: Shared<WarpRing<GROUPS>>, policy: CachePolicy) -> Self {
        Self { ring, policy, copied: 0, arrived: 0 }
    }

    /// Copies groups for as long as there is room: `next` gives the address of each, and null where there is none any more.
    /// No lane reads before group `first_used` again. Warp: lane 0 copies.
    ///
    /// # Safety
    /// All lanes call it together, after a meeting of the warp that each lane reached when it had read what it reads of the groups
    /// before; `next` gives 16-byte aligned groups, of which there will be as many as [`wait`](Self::wait) asks for.
    #[instruction]
    pub unsafe fn fill(&mut self, first_used: u32, mut next: impl FnMut() -> *const u8) {
        if warp::lane_id() != 0 {
            return;
        }
        while self.copied < first_used + GROUPS as u32 {
            let source = next();
            if source.is_null() {
                return;
            }
            let slot = self.copied % GROUPS as u32;
            let full = self.ring.full(slot);
            let again = if slot == 0 { AGAIN_ROWS * ROW_BYTES } else { 0 };
            let to = self.ring.address() + slot * GROUP_BYTES;
            // SAFETY: the slot is free, and its barrier waits for these bytes; the rest is the caller's promise.
            unsafe {
                full.expect(GROUP_BYTES + again);
                let copy = bulk::cp_async_bulk_global_to_shared_hinted;
                copy(to, source, GROUP_BYTES, full.address(), self.policy);
                if again != 0 {
                    let behind = self.ring.address() + GROUPS as u32 * GROUP_BYTES;
                    copy(behind, source, again, full.address(), self.policy);
                }
            }
            self.copied += 1;
        }
    }

    /// Waits until group `last` has arrived, and all before it. Warp.
    ///
    /// # Safety
    /// All lanes call it with the same group, which was, or will be, copied while there is [room](Self::fill).
    #[instruction]
    pub unsafe fn wait(&mut self, last: u32) {
        while self.arrived <= last {
            hint::no_unroll();
            let lap = self.arrived / GROUPS as u32;
            let phase = if lap.is_multiple_of(2) { Phase::FIRST } else { Phase::BEFORE_FIRST };
            // SAFETY: the barrier is initialised.
            unsafe { self.ring.full(self.arrived % GROUPS as u32).wait(phase) };
            self.arrived += 1;
        }
    }

    /// This lane's words of the `WINDOW` rows from `row` on, counted from the first row ever copied. Thread.
    ///
    /// # Safety
    /// [`wait`](Self::wait) has returned for the groups of all these rows, and [`fill`](Self::fill) was not told that they are free.
    #[instruction]
    pub unsafe fn window(&self, row: u32) -> [u32; WINDOW] {
        let lane = self.ring.address() + warp::lane_id() * 4;
        let at = lane + ((row * ROW_BYTES) & Self::MASK);
        let word = |row: u32| {
            // SAFETY: the caller's promise.
            unsafe { memory::ld_shared_u32(at + row * ROW_BYTES)[0] }
        };
        [word(0), word(1), word(2), word(3), word(4)]
    }
}
