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
    fn full(self, fill: u32) -> Shared<FullBarrier> {
        // SAFETY: the field is there.
        unsafe { self.project::<[FullBarrier; GROUPS]>(core::mem::offset_of!(WarpRing<GROUPS>, full)) }
            .at(fill % GROUPS as u32)
    }

    /// Initialises the barriers. Thread.
    ///
    /// # Safety
    /// One thread calls it, before a barrier of the block after which the ring is used.
    #[instruction]
    pub unsafe fn init(self) {
        let mut fill = 0;
        while fill < GROUPS as u32 {
            // SAFETY: the caller's promise.
            unsafe { mbarrier::mbarrier_init(self.full(fill).address(), 1) };
            fill += 1;
        }
    }
}

/// A warp's end of its ring, of both ends.
///
/// Groups are numbered from the first that was ever copied, and so are *fills*: copies of several groups at once, each with a
/// barrier. A fill has a group at least, so that there are never more under way than groups.
pub struct WarpStream<const GROUPS: usize> {
    ring: Shared<WarpRing<GROUPS>>,
    policy: CachePolicy,
    /// Groups that were copied, and fills.
    copied: u32,
    fills: u32,
    /// Fills that have arrived.
    arrived: u32,
    /// For each of the last 16 fills, four bits each, how many groups it has, less one: the latest in the lowest bits.
    sizes: u64,
    /// Groups that have arrived.
    ready: u32,
}

impl<const GROUPS: usize> WarpStream<GROUPS> {
    const MASK: u32 = {
        assert!(GROUPS.is_power_of_two(), "places in the ring are taken by their lowest bits");
        assert!(GROUPS <= 16, "the sizes of fills have four bits each");
        GROUPS as u32 * GROUP_BYTES - 1
    };

    /// The stream through `ring`.
    ///
    /// # Safety
    /// The ring is [initialised](Shared::init) and visible, and one warp has its stream: all lanes the same.
    #[inline(always)]
    pub const unsafe fn new(ring: Shared<WarpRing<GROUPS>>, policy: CachePolicy) -> Self {
        Self { ring, policy, copied: 0, fills: 0, arrived: 0, sizes: 0, ready: 0 }
    }

    /// How many groups can be copied: no lane reads before group `first_used` again.
    #[inline(always)]
    pub const fn room(&self, first_used: u32) -> u32 {
        first_used + GROUPS as u32 - self.copied
    }

    /// Copies `count` groups that lie at `source`. Warp: lane 0 copies.
    ///
    /// # Safety
    /// All lanes call it together, after a meeting of the warp that each lane reached when it had read what it reads of the groups
    /// that are overwritten; there is [room](Self::room) for them, `count` is at least 1 and `source` 16-byte aligned.
    #[instruction]
    pub unsafe fn fill(&mut self, source: *const u8, count: u32) {
        let slot = self.copied % GROUPS as u32;
        if warp::lane_id() == 0 {
            let full = self.ring.full(self.fills);
            let to_end = GROUPS as u32 - slot;
            let (here, turned) = if count > to_end { (to_end, count - to_end) } else { (count, 0) };
            let copy = |group: u32, first: u32, bytes: u32| {
                let source = source.wrapping_add((first * GROUP_BYTES) as usize);
                let to = self.ring.address() + group * GROUP_BYTES;
                // SAFETY: the groups are free, and the barrier waits for these bytes; the rest is the caller's promise.
                unsafe { bulk::cp_async_bulk_global_to_shared_hinted(to, source, bytes, full.address(), self.policy) }
            };
            // The first group of the ring, where it is among them, is copied behind the last one, too.
            let again = slot == 0 || turned > 0;
            let again_bytes = if again { AGAIN_ROWS * ROW_BYTES } else { 0 };
            // SAFETY: the barrier is initialised, and its fill before was waited for.
            unsafe { full.expect(count * GROUP_BYTES + again_bytes) };
            copy(slot, 0, here * GROUP_BYTES);
            if turned > 0 {
                copy(0, here, turned * GROUP_BYTES);
            }
            if again {
                copy(GROUPS as u32, if slot == 0 { 0 } else { here }, again_bytes);
            }
        }
        self.copied += count;
        self.fills += 1;
        self.sizes = self.sizes << 4 | (count - 1) as u64;
    }

    /// Waits until group `last` has arrived, and all before it. Warp.
    ///
    /// # Safety
    /// All lanes call it with the same group, which was copied.
    #[instruction]
    pub unsafe fn wait(&mut self, last: u32) {
        while self.ready <= last {
            hint::no_unroll();
            let lap = self.arrived / GROUPS as u32;
            let phase = if lap.is_multiple_of(2) { Phase::FIRST } else { Phase::BEFORE_FIRST };
            // SAFETY: the barrier is initialised.
            unsafe { self.ring.full(self.arrived).wait(phase) };
            self.arrived += 1;
            let size = (self.sizes >> (4 * (self.fills - self.arrived))) as u32 & 15;
            self.ready += size + 1;
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
