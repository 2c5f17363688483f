//! A warp's 16 rows: their masks, a unit ahead, and the lanes' streams, as far ahead as the ring goes.

// `seq!` writes an expression out for each index, and for index 0 it says what nobody would write by hand.
#![allow(clippy::erasing_op, clippy::identity_op)]

use hopper_std::global::GlobalArray;
use hopper_std::ptx::warp::{redux_sync_max_u32, redux_sync_min_u32};
use hopper_std::sm90::{GROUP_ROWS, LeftFragment, ROW_BYTES, Shared, WINDOW, WarpRing, WarpStream};
use hopper_std::warp;

use super::config::{Arguments, RING_GROUPS, STARTS_PER_PIECE};
use super::decode::Windows;
use crate::linear::{Piece, WARPS};

/// Bits of a lane's stream in a row, and in a group.
const ROW_BITS: u32 = 32;
const GROUP_BITS: u32 = ROW_BITS * GROUP_ROWS;

/// Bytes of a group.
const GROUP_BYTES: u32 = GROUP_ROWS * ROW_BYTES;

/// Bits of a value.
const VALUE_BITS: u32 = 16;

/// Where a warp stands in its worker's pieces.
pub(super) struct Strip {
    warp: u32,
    stream: WarpStream<RING_GROUPS>,
    /// Where this lane is, in bits from the first row that was ever copied.
    position: u32,
    /// The first group of the piece that comes next.
    next_group: u32,
    /// The groups of this piece, or one that comes later, that are still to be copied, and from where.
    source: *const u8,
    remaining: u32,
    /// Which piece that is.
    copied: u32,
    /// Pieces behind it.
    behind: u32,
    /// The masks of this lane and the unit ahead, and where they stand.
    ahead: [u32; 4],
    next: GlobalArray<[u32; 4]>,
    /// Those of this unit.
    masks: [u32; 4],
    unit: u32,
    end: u32,
    /// The realignments still to come, and the unit of the first.
    realignments: GlobalArray<u32>,
    realigned: u32,
}

impl Strip {
    /// A warp that has not begun, of a worker whose pieces begin with `first`.
    ///
    /// # Safety
    /// The launch contract of [`Arguments`]; `ring` is initialised and of this warp only.
    #[inline(always)]
    pub(super) unsafe fn new(
        arguments: &Arguments,
        ring: Shared<WarpRing<RING_GROUPS>>,
        warp: u32,
        first: u32,
    ) -> Self {
        // SAFETY: the caller's promise.
        let (stream, own, piece) = unsafe {
            (WarpStream::new(ring, arguments.policy), arguments.stream(first, warp), arguments.work.piece(first))
        };
        let mut strip = Self {
            warp,
            stream,
            position: 0,
            next_group: 0,
            source: arguments.values.wrapping_add(own.first_group as usize * GROUP_BYTES as usize),
            remaining: own.num_groups,
            copied: first,
            behind: piece.behind,
            ahead: [0; 4],
            next: arguments.masks,
            masks: [0; 4],
            unit: 0,
            end: 0,
            realignments: arguments.realignments,
            realigned: u32::MAX,
        };
        // What is known of the values is enough to begin with.
        // SAFETY: the ring is empty.
        unsafe { strip.copy(arguments, 0) };
        strip
    }

    /// Goes to the piece `index`. Warp.
    ///
    /// # Safety
    /// The launch contract of [`Arguments`]; the pieces of the worker come one after the other.
    #[inline(always)]
    pub(super) unsafe fn begin(&mut self, arguments: &Arguments, index: u32, piece: &Piece) {
        let (warp, lane) = (self.warp, warp::lane_id());
        let strip = piece.row_block * WARPS as u32 + warp;
        let first_unit = u64::from(strip) * u64::from(arguments.units) + u64::from(piece.begin);
        // SAFETY: the caller's promise: the lists have the piece, and the strip has its units.
        unsafe {
            let stream = arguments.stream(index, warp);
            let start = arguments.starts.get(index * STARTS_PER_PIECE as u32 + warp * 32 + lane);
            self.position = self.next_group * GROUP_BITS + start;
            self.next_group += stream.num_groups;
            self.next = arguments.masks.skip(first_unit * 32 + u64::from(lane));
            self.ahead = self.next.get(0);
            (self.unit, self.end) = (piece.begin, piece.end);
            self.realignments = arguments.realignments.skip(u64::from(stream.first_realignment));
            self.realigned = self.realignments.get(0);
        }
    }

    /// Whether the piece has more units.
    #[inline(always)]
    pub(super) fn has_more(&self) -> bool {
        self.unit < self.end
    }

    /// Goes to the next unit, whose values have then arrived. Warp.
    ///
    /// # Safety
    /// As [`begin`](Self::begin); the piece [has more](Self::has_more).
    #[inline(always)]
    pub(super) unsafe fn next_unit(&mut self, arguments: &Arguments) {
        // SAFETY: the caller's promise; the whole warp is here.
        unsafe {
            if self.unit == self.realigned {
                self.realign();
            }
            self.masks = self.ahead;
            self.unit += 1;
            if self.unit < self.end {
                self.next = self.next.skip(32);
                self.ahead = self.next.get(0);
            }
            let values = self.masks.iter().map(|mask| mask.count_ones()).sum::<u32>();
            let end = self.position + values * VALUE_BITS;
            let first_group = redux_sync_min_u32(self.position) / GROUP_BITS;
            let last_group = (redux_sync_max_u32(end) / ROW_BITS + WINDOW as u32 - 1) / GROUP_ROWS;
            self.copy(arguments, first_group);
            self.stream.wait(last_group);
        }
    }

    /// The left operand of a part of the unit, `WORDS * 4` columns from step `first` on. Warp.
    ///
    /// # Safety
    /// As [`begin`](Self::begin); each part of the unit in turn.
    #[inline(always)]
    pub(super) unsafe fn decode<const WORDS: usize>(&mut self, first: usize) -> LeftFragment<WORDS> {
        let mut words = [0; WORDS];
        hopper_std::seq!(STEP in 0..4 {
            if STEP * 16 < WORDS {
                // SAFETY: the unit's values have arrived.
                let columns = unsafe { Windows::read(&self.stream, self.mask(first + STEP), &mut self.position) };
                let [[a, b, c, d], [e, f, g, h], [i, j, k, l], [m, n, o, p]] = columns.expand();
                let step = [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p];
                hopper_std::seq!(WORD in 0..16 {
                    words[(STEP * 16 + WORD) % WORDS] = step[WORD];
                });
            }
        });
        LeftFragment::new(words)
    }

    /// The mask of a step of the unit. Where the step is no constant, no memory is made of the words.
    #[inline(always)]
    fn mask(&self, step: usize) -> u32 {
        let [first, second, third, fourth] = self.masks;
        match step {
            0 => first,
            1 => second,
            2 => third,
            _ => fourth,
        }
    }

    /// Copies what there is room for, where no lane needs the groups before `first_used` any more. Warp.
    ///
    /// # Safety
    /// The launch contract of [`Arguments`].
    #[inline(always)]
    unsafe fn copy(&mut self, arguments: &Arguments, first_used: u32) {
        loop {
            let room = self.stream.room(first_used);
            let count = if self.remaining < room { self.remaining } else { room };
            if count > 0 {
                // SAFETY: the whole warp is here, as it met to find its first group; these are groups of the piece's.
                unsafe { self.stream.fill(self.source, count) };
                self.source = self.source.wrapping_add((count * GROUP_BYTES) as usize);
                self.remaining -= count;
            }
            if self.remaining > 0 || self.behind == 0 {
                return;
            }
            self.copied += 1;
            self.behind -= 1;
            // SAFETY: the list has a worker's pieces.
            let stream = unsafe { arguments.stream(self.copied, self.warp) };
            self.source = arguments.values.wrapping_add(stream.first_group as usize * GROUP_BYTES as usize);
            self.remaining = stream.num_groups;
        }
    }

    /// All lanes go on at the row after the last that one of them has read of. Warp.
    ///
    /// # Safety
    /// As [`begin`](Self::begin).
    #[inline(always)]
    unsafe fn realign(&mut self) {
        // SAFETY: the whole warp is here; behind the last realignment stands one that never comes.
        unsafe {
            self.position = redux_sync_max_u32(self.position).next_multiple_of(ROW_BITS);
            self.realignments = self.realignments.skip(1);
            self.realigned = self.realignments.get(0);
        }
    }
}
