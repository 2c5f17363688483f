//! A warp's 16 rows: their masks, a unit ahead, and the lanes' streams, as far ahead as the ring goes.

use hopper_std::global::GlobalArray;
use hopper_std::ptx::warp::{redux_sync_max_u32, redux_sync_min_u32};
use hopper_std::sm90::{GROUP_ROWS, LeftFragment, ROW_BYTES, Shared, WINDOW, WarpRing, WarpStream};
use hopper_std::warp;

use super::config::{Arguments, RING_GROUPS, STARTS_PER_PIECE, Stream};
use super::decode::decode;
use crate::linear::{Piece, UNIT_STEPS, WARPS};

/// Bits of a lane's stream in a row, and in a group.
const ROW_BITS: u32 = 32;
const GROUP_BITS: u32 = ROW_BITS * GROUP_ROWS;

/// Bytes of a group.
const GROUP_BYTES: u32 = GROUP_ROWS * ROW_BYTES;

/// Bits of a value.
const VALUE_BITS: u32 = 16;

/// Where a warp stands in its worker's pieces.
pub(super) struct Strip {
    stream: WarpStream<RING_GROUPS>,
    copies: Copies,
    /// Where this lane is, in bits from the first row that was ever copied.
    position: u32,
    /// The first group of the piece that comes next.
    next_group: u32,
    masks: Masks,
    /// The realignments still to come, and the unit of the first.
    realignments: GlobalArray<u32>,
    realigned: u32,
}

/// The groups still to be copied, over all pieces. Lane 0's are what counts.
struct Copies {
    source: *const u8,
    remaining: u32,
    piece: u32,
    last: u32,
    warp: u32,
}

/// The masks of a piece.
struct Masks {
    /// Those of this lane and the unit ahead.
    next: GlobalArray<[u32; 4]>,
    /// The steps to come of this unit, the first one first.
    words: [u32; 4],
    ahead: [u32; 4],
    unit: u32,
    end: u32,
    /// Steps to come of this unit.
    steps: u32,
}

impl Strip {
    /// A warp that has not begun, of a worker whose pieces go from `first` to `last`.
    ///
    /// # Safety
    /// The launch contract of [`Arguments`]; `ring` is initialised and of this warp only.
    #[inline(always)]
    pub(super) unsafe fn new(
        arguments: &Arguments,
        ring: Shared<WarpRing<RING_GROUPS>>,
        warp: u32,
        first: u32,
        last: u32,
    ) -> Self {
        Self {
            // SAFETY: the caller's promise.
            stream: unsafe { WarpStream::new(ring, arguments.policy) },
            copies: Copies { source: core::ptr::null(), remaining: 0, piece: first, last, warp },
            position: 0,
            next_group: 0,
            masks: Masks { next: arguments.masks, words: [0; 4], ahead: [0; 4], unit: 0, end: 0, steps: 0 },
            realignments: arguments.realignments,
            realigned: u32::MAX,
        }
    }

    /// Goes to the piece `index`. Warp.
    ///
    /// # Safety
    /// The launch contract of [`Arguments`]; the pieces of the worker come one after the other.
    #[inline(always)]
    pub(super) unsafe fn begin(&mut self, arguments: &Arguments, index: u32, piece: &Piece) {
        let (warp, lane) = (self.copies.warp, warp::lane_id());
        let strip = piece.row_block * WARPS as u32 + warp;
        let first_unit = u64::from(strip) * u64::from(arguments.units) + u64::from(piece.begin);
        // SAFETY: the caller's promise: the lists have the piece, and the strip has its units.
        unsafe {
            let stream = arguments.stream(index, warp);
            let start = arguments.starts.get(index * STARTS_PER_PIECE as u32 + warp * 32 + lane);
            self.position = self.next_group * GROUP_BITS + start;
            self.next_group += stream.num_groups;
            self.masks = Masks::new(arguments.masks.skip(first_unit * 32 + u64::from(lane)), piece);
            self.realignments = arguments.realignments.skip(u64::from(stream.first_realignment));
            self.realigned = self.realignments.get(0);
        }
    }

    /// Whether the piece has more steps.
    #[inline(always)]
    pub(super) fn has_more(&self) -> bool {
        self.masks.steps > 0 || self.masks.unit < self.masks.end
    }

    /// The left operand of the next step's products. Warp.
    ///
    /// # Safety
    /// As [`begin`](Self::begin); the piece [has more](Self::has_more).
    #[inline(always)]
    pub(super) unsafe fn decode(&mut self, arguments: &Arguments) -> LeftFragment<16> {
        // SAFETY: the caller's promise; the whole warp is here.
        unsafe {
            if self.masks.steps == 0 {
                if self.masks.unit == self.realigned {
                    self.realign();
                }
                self.masks.turn();
            }
            let mask = self.masks.step();
            let end = self.position + mask.count_ones() * VALUE_BITS;
            let first_group = redux_sync_min_u32(self.position) / GROUP_BITS;
            let last_group = (redux_sync_max_u32(end) / ROW_BITS + WINDOW as u32 - 1) / GROUP_ROWS;
            let copies = &mut self.copies;
            self.stream.fill(first_group, || copies.next(arguments));
            self.stream.wait(last_group);
            decode(&self.stream, mask, &mut self.position)
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

impl Copies {
    /// The address of the next group, or null. Thread.
    ///
    /// # Safety
    /// The launch contract of [`Arguments`].
    #[inline(always)]
    unsafe fn next(&mut self, arguments: &Arguments) -> *const u8 {
        while self.remaining == 0 {
            if self.piece == self.last {
                return core::ptr::null();
            }
            // SAFETY: the list has a worker's pieces.
            let Stream { first_group, num_groups, .. } = unsafe { arguments.stream(self.piece, self.warp) };
            self.source = arguments.values.wrapping_add(first_group as usize * GROUP_BYTES as usize);
            self.remaining = num_groups;
            self.piece += 1;
        }
        let source = self.source;
        self.source = source.wrapping_add(GROUP_BYTES as usize);
        self.remaining -= 1;
        source
    }
}

impl Masks {
    /// The masks of `piece`, whose first unit's, of this lane, stand at `first`.
    ///
    /// # Safety
    /// They do, and those of the piece's other units 32 entries apart.
    #[inline(always)]
    unsafe fn new(first: GlobalArray<[u32; 4]>, piece: &Piece) -> Self {
        // SAFETY: the caller's promise.
        let ahead = unsafe { first.get(0) };
        Self { next: first, words: [0; 4], ahead, unit: piece.begin, end: piece.end, steps: 0 }
    }

    /// On to the unit ahead.
    ///
    /// # Safety
    /// There is one.
    #[inline(always)]
    unsafe fn turn(&mut self) {
        self.words = self.ahead;
        self.steps = UNIT_STEPS as u32;
        self.unit += 1;
        if self.unit < self.end {
            // SAFETY: the piece has this unit, 32 entries on.
            unsafe {
                self.next = self.next.skip(32);
                self.ahead = self.next.get(0);
            }
        }
    }

    /// The mask of the next step of this unit.
    #[inline(always)]
    fn step(&mut self) -> u32 {
        let [first, second, third, fourth] = self.words;
        self.words = [second, third, fourth, 0];
        self.steps -= 1;
        first
    }
}
