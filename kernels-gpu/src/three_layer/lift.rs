//! From a tile as it came to two layers that tensor cores can read.

// `seq!` writes an expression out for each index, and for index 0 it says what nobody would write by hand.
#![allow(clippy::erasing_op, clippy::identity_op, clippy::eq_op)]

use hopper_std::ptx::bits::{dp4a_u32_u32, prmt_b32, shf_r_wrap_b32};
use hopper_std::ptx::fence::fence_proxy_async_shared_cta;
use hopper_std::ptx::memory::{
    ld_shared_u32, ld_shared_v2_u32, ld_shared_v4_u32, st_shared_u16, st_shared_u16_if, st_shared_v4_u32,
};
use hopper_std::ptx::warp::bar_warp_sync;
use hopper_std::sm90::{Metadata, NamedBarrier, Shared};
use hopper_std::warp::{broadcast, inclusive_sum, lane_id};

use super::config::{Lifted, Meeting, Values, WTile};
use super::layout::{ROW_VALUES, SECOND_LAYER, WARP_ROWS, WARPS, free_slots, from_header};

/// Bytes of a row of values.
const ROW_BYTES: u32 = ROW_VALUES as u32 * 2;

/// Bytes of a warp's rows of values.
const WARP_BYTES: u32 = WARP_ROWS as u32 * ROW_BYTES;

/// Entries that the lanes of a warp place at once, eight each.
const PASS: u32 = 32 * 8;

/// What one warp needs to take surplus out of tiles, from stage to stage.
///
/// There are three second layers, used in turn. When all warps have met before the products of a stage, those of the stage before are
/// done: each warp clears its rows of that one's second layer, and at the next meeting it is ready for the stage after next.
pub(super) struct Lifter<E> {
    /// The second layers: of this stage, of the next, and of the one before.
    second: [Shared<Values<E>>; 3],
    lifted: Shared<Lifted>,
    warp: u32,
    /// Whether the stage before has put something into its second layer.
    last_is_used: bool,
    /// Whether rows were cleared since the last meeting.
    cleared: bool,
}

/// The two layers of a stage.
#[derive(Clone, Copy)]
pub(super) struct Layers<E> {
    /// Where this lane's two words of metadata are.
    words: u32,
    /// Values of the second layer.
    pub(super) second: Shared<Values<E>>,
    /// Whether the second layer has any.
    pub(super) has_second: bool,
}

impl<E> Layers<E> {
    /// The metadata: two words of the first layer, then two of the second. Thread.
    ///
    /// NOTE: products in flight read these registers, which ptxas (13.0) does not know. Read once more after the wait for the products
    /// before, the words do not take the registers of those.
    ///
    /// # Safety
    /// The products of the stage before are done, and this stage is still there.
    #[inline(always)]
    pub(super) unsafe fn metadata(&self) -> Metadata<4> {
        // SAFETY: the words are parts of the tile.
        let [near, far] = unsafe { ld_shared_v2_u32(self.words) };
        Metadata::new([near, far, near ^ SECOND_LAYER, far ^ SECOND_LAYER])
    }
}

impl<E> Lifter<E> {
    /// For warp `warp` of those that multiply; with all second layers empty. Warp.
    ///
    /// # Safety
    /// All consumer warps call it, each once; nothing else uses the second layers, nor the place of this warp's lifted values.
    #[inline(always)]
    pub(super) unsafe fn new(second: Shared<[Values<E>; 3]>, lifted: Shared<Lifted>, warp: u32) -> Self {
        let second = [second.at(0), second.at(1), second.at(2)];
        // SAFETY: nobody has used the layers nor the place; all consumer warps are here.
        unsafe {
            clear(second[0].address() + warp * WARP_BYTES);
            clear(second[1].address() + warp * WARP_BYTES);
            clear(second[2].address() + warp * WARP_BYTES);
            clear(lifted.address());
            Meeting::SecondLayer.sync();
        }
        Self { second, lifted, warp, last_is_used: false, cleared: false }
    }

    /// Takes this warp's surplus out of its slots and puts it where it belongs, in any warp's rows of the second layer. Warp.
    ///
    /// # Safety
    /// `tile` has arrived and is as [`layout`](super::layout) says; [`publish`](Self::publish) was called after the last call of this.
    #[inline(always)]
    pub(super) unsafe fn lift(&mut self, tile: Shared<WTile<E>>) -> Layers<E> {
        let second = self.second[0];
        // SAFETY: the words are parts of the tile.
        unsafe {
            let words = WTile::metadata(tile).at(self.warp).address() + lane_id() * 8;
            let [near, far] = ld_shared_v2_u32(words);
            let entries = WTile::entries(tile);
            let [all] = ld_shared_u32(entries.at(WARPS as u32).address());
            if all != 0 {
                let [word] = ld_shared_u32(entries.at(self.warp).address());
                let [next] = ld_shared_u32(entries.at(self.warp + 1).address());
                let ((first, position), (end, _)) = (from_header(word), from_header(next));
                if first != end {
                    let values = WTile::values(tile).address() + self.warp * WARP_BYTES;
                    self.empty_slots(values, [near, far]);
                    bar_warp_sync();
                    let distances = entries.at(WARPS as u32 + 1).address();
                    self.place(distances, first, end - first, position, second.address());
                }
            }
            Layers { words, second, has_second: all != 0 }
        }
    }

    /// Copies what is in this warp's free slots to its place for lifted values, in the order of slots, and leaves zeros. Warp.
    ///
    /// # Safety
    /// `values` are this warp's rows; `metadata` is this lane's.
    #[inline(always)]
    unsafe fn empty_slots(&self, values: u32, metadata: [u32; 2]) {
        let lane = lane_id();
        let (line, column) = (lane / 4, lane % 4);
        let odd = line % 2;
        let (near, far) = if odd == 0 { (metadata[0], metadata[1]) } else { (metadata[1], metadata[0]) };
        let words = [free_slots(near), free_slots(far)];
        let free = words[0] | words[1] << 2;
        let count = free.count_ones();
        // SAFETY: the whole warp is here.
        let before = unsafe { inclusive_sum(count) } - count;
        let mut to = self.lifted.address() + before * 2;
        let unit = values + line * ROW_BYTES + (((column + 4 * odd) ^ line) * 16);
        hopper_std::seq!(P in 0..4 {
            let address = (unit ^ (P / 2 * 64)) + P % 2 * 8 * ROW_BYTES;
            let word = words[P / 2];
            // SAFETY: the unit is in this warp's rows, and so many slots have room among the lifted values.
            unsafe {
                let [a, b, c, d] = ld_shared_v4_u32(address);
                let a = empty_group::<{ P % 2 * 16 + P / 2 * 2 }, { P % 2 * 4 }>(free, word, a, &mut to);
                let b = empty_group::<{ P % 2 * 16 + P / 2 * 2 + 4 }, { P % 2 * 4 + 1 }>(free, word, b, &mut to);
                let c = empty_group::<{ P % 2 * 16 + P / 2 * 2 + 8 }, { P % 2 * 4 + 2 }>(free, word, c, &mut to);
                let d = empty_group::<{ P % 2 * 16 + P / 2 * 2 + 12 }, { P % 2 * 4 + 3 }>(free, word, d, &mut to);
                st_shared_v4_u32(address, [a, b, c, d]);
            }
        });
    }

    /// Puts the lifted values where their distances lead. Warp.
    ///
    /// # Safety
    /// The warp has lifted at least `count` values; their distances are the nibbles at `distances` from the one of index `first` on, and
    /// lead from `position` to groups of the layer at `second`.
    #[inline(always)]
    unsafe fn place(&self, distances: u32, first: u32, count: u32, position: u32, second: u32) {
        let mut mine = lane_id() * 8;
        let mut position = position;
        let mut pass = 0;
        while pass < count {
            let left = count.saturating_sub(mine);
            let (mut nibbles, mut values) = (0, [0; 4]);
            if left > 0 {
                // SAFETY: the first of these eight is one of the warp's, and so is one in the second word, where that is read.
                unsafe {
                    let (word, shift) = ((first + mine) / 8, (first + mine) % 8 * 4);
                    let [low] = ld_shared_u32(distances + word * 4);
                    let reaches_over = shift + if left < 8 { left * 4 } else { 32 } > 32;
                    let high = if reaches_over { ld_shared_u32(distances + word * 4 + 4)[0] } else { 0 };
                    nibbles = shf_r_wrap_b32(low, high, shift);
                    values = ld_shared_v4_u32(self.lifted.address() + mine * 2);
                }
            }
            if left < 8 {
                nibbles &= (1 << (left * 4)) - 1;
            }
            // SAFETY: the whole warp is here; the sum of the distances leads to a group of the layer.
            unsafe {
                const ONES: u32 = 0x0101_0101;
                let even = dp4a_u32_u32(nibbles & 0x0f0f_0f0f, ONES, 0);
                let sum = dp4a_u32_u32(nibbles >> 4 & 0x0f0f_0f0f, ONES, even);
                let up_to_mine = inclusive_sum(sum);
                let mut at = second + (position + up_to_mine - sum) * 4 - 4;
                position += broadcast(up_to_mine, 31);
                hopper_std::seq!(I in 0..8 {
                    if I < left {
                        let distance = nibbles >> (I * 4) & 0xf;
                        at += distance * 4;
                        let second_of_group = if distance == 0 { 2 } else { 0 };
                        st_shared_u16(at + second_of_group, (values[I / 2] >> (I % 2 * 16)) as u16);
                    }
                });
            }
            mine += PASS;
            pass += PASS;
        }
    }

    /// Waits until all consumers have lifted, and clears this warp's rows of the second layer of the stage before. Warp.
    ///
    /// # Safety
    /// All consumer warps call it, after [`lift`](Self::lift) and when the products of the stage before are done.
    #[inline(always)]
    pub(super) unsafe fn publish(&mut self, layers: &Layers<E>) {
        let [current, next, last] = self.second;
        if layers.has_second || self.last_is_used || self.cleared {
            // SAFETY: all consumers come to the same decision, and have waited for their products.
            unsafe {
                fence_proxy_async_shared_cta();
                Meeting::SecondLayer.sync();
                if self.last_is_used {
                    clear(last.address() + self.warp * WARP_BYTES);
                }
            }
        }
        self.cleared = self.last_is_used;
        self.last_is_used = layers.has_second;
        self.second = [next, last, current];
    }
}

/// Writes zeros to a warp's rows of a layer, or to as many bytes at `address`. Warp.
///
/// # Safety
/// Nobody uses them.
#[inline(always)]
unsafe fn clear(address: u32) {
    const { assert!(WARP_BYTES == 4 * 512 && size_of::<Lifted>() == WARP_BYTES as usize) };
    hopper_std::seq!(I in 0..4 {
        // SAFETY: the units are within the bytes.
        unsafe { st_shared_v4_u32(address + lane_id() * 16 + I * 512, [0; 4]) };
    });
}

/// The two values of a group without those that are in free slots; these go to `to`. Bits `BIT` and `BIT + 1` of `free` say which, and
/// those of nibble `NIBBLE` of `free_of_word`. Thread.
///
/// There is no branch, and the mask is bytes of signs: two instructions for what would be six with conditions.
///
/// # Safety
/// There is room for them.
#[inline(always)]
unsafe fn empty_group<const BIT: u32, const NIBBLE: u32>(
    free: u32,
    free_of_word: u32,
    values: u32,
    to: &mut u32,
) -> u32 {
    let (first, second) = (free & 1 << BIT, free & 2 << BIT);
    // SAFETY: the caller's promise.
    unsafe {
        st_shared_u16_if(first, *to, values as u16);
        *to += (first >> BIT) * 2;
        st_shared_u16_if(second, *to, (values >> 16) as u16);
        *to += second >> BIT;
        // The nibble's bits as the signs of byte NIBBLE / 2.
        let shift = if NIBBLE.is_multiple_of(2) { 7 } else { 3 };
        let signs = (8 + NIBBLE / 2) * 0x11 + (12 + NIBBLE / 2) * 0x1100;
        values & !prmt_b32(free_of_word << shift, free_of_word << (shift - 1), signs)
    }
}
