//! The producer: one thread that keeps Q, K and V coming, across tiles.

use hopper_std::hint::{no_unroll, opaque};
use hopper_std::sm90::{BlockScope, EmptySlot, Producer, Swizzle128, TensorMapRef, Tile, TileRow};
use hopper_std::thread;

use super::config::{Arguments, CHUNK, CONSUMER_ROWS, KeyTile, Keys, QueryTile, Source, TileWork};

/// The tensor maps.
pub(super) struct Maps<E, const KEYS: usize> {
    pub(super) q: TensorMapRef<Tile<E, CONSUMER_ROWS, CHUNK, Swizzle128>>,
    pub(super) o: TensorMapRef<Tile<E, CONSUMER_ROWS, CHUNK, Swizzle128>>,
    pub(super) k: TensorMapRef<Tile<E, KEYS, CHUNK, Swizzle128>>,
    pub(super) v: TensorMapRef<Tile<E, KEYS, CHUNK, Swizzle128>>,
    pub(super) key: TensorMapRef<TileRow<E, CHUNK, Swizzle128>>,
    pub(super) value: TensorMapRef<TileRow<E, CHUNK, Swizzle128>>,
}

/// The maps of K or of V: of a tile, and of a single key.
type KeyMaps<E, const KEYS: usize> =
    (TensorMapRef<Tile<E, KEYS, CHUNK, Swizzle128>>, TensorMapRef<TileRow<E, CHUNK, Swizzle128>>);

/// Fills the rings in the order in which the consumers read: each tile of V a step behind its tile of K, from the last tile
/// of keys to the first. With two stages of Q the steps go on from tile to tile of O. Thread.
///
/// # Safety
/// The launch contract of [`Arguments`]; one thread of the block calls it.
#[inline(always)]
pub(super) unsafe fn produce<
    E: 'static,
    const KEYS: usize,
    const CHUNKS: usize,
    const CONSUMERS: usize,
    const QUERY_STAGES: usize,
    const STAGES: usize,
    K: Source,
>(
    arguments: &Arguments,
    maps: &Maps<E, KEYS>,
    mut queries: Producer<[QueryTile<E, CHUNKS>; CONSUMERS], QUERY_STAGES, BlockScope>,
    mut ring: Producer<KeyTile<E, KEYS, CHUNKS>, STAGES, BlockScope>,
) {
    maps.q.prefetch();
    maps.k.prefetch();
    maps.v.prefetch();
    maps.o.prefetch();
    let worker = thread::block_idx_x();
    // SAFETY: the offsets have one more element than there are workers.
    let (mut index, last) = unsafe { (arguments.tile_offsets.get(worker), arguments.tile_offsets.get(worker + 1)) };
    let mut behind = None;
    while index < last {
        // SAFETY: a worker's tiles are in the list.
        let work = unsafe { arguments.tile(index) };
        let place = Sequence::of(&work);
        // SAFETY: each tile is part of its slot's stage and filled once.
        unsafe { load_queries(&queries.acquire(), maps.q, &work, arguments.query_shift) };
        let mut position = work.end_tile;
        while position > work.first_tile {
            position = opaque(position - 1);
            // SAFETY: as above.
            unsafe {
                let keys = K::keys(arguments, position, KEYS as u32);
                load_keys::<E, KEYS, CHUNKS, K>(arguments, &ring.acquire(), (maps.k, maps.key), place, keys);
                if let Some((place, keys)) = behind.replace((place, keys)) {
                    load_keys::<E, KEYS, CHUNKS, K>(arguments, &ring.acquire(), (maps.v, maps.value), place, keys);
                }
            }
        }
        index += 1;
        if (QUERY_STAGES == 1 || index == last)
            && let Some((place, keys)) = behind.take()
        {
            // SAFETY: as above.
            unsafe { load_keys::<E, KEYS, CHUNKS, K>(arguments, &ring.acquire(), (maps.v, maps.value), place, keys) };
        }
    }
}

/// Where a sequence's keys are in the maps of K and V.
#[derive(Clone, Copy)]
struct Sequence {
    token: i32,
    head: i32,
    outer: i32,
}

impl Sequence {
    #[inline(always)]
    const fn of(work: &TileWork) -> Self {
        Self { token: work.key_token, head: work.key_head as i32, outer: work.key_outer }
    }
}

/// Starts the copies of this block's rows of Q.
///
/// # Safety
/// As [`EmptySlot::load_5d`].
#[inline(always)]
unsafe fn load_queries<E: 'static, const CHUNKS: usize, const CONSUMERS: usize>(
    slot: &EmptySlot<[QueryTile<E, CHUNKS>; CONSUMERS], BlockScope>,
    map: TensorMapRef<Tile<E, CONSUMER_ROWS, CHUNK, Swizzle128>>,
    work: &TileWork,
    shift: i32,
) {
    let mut consumer = 0;
    while consumer < CONSUMERS as u32 {
        let token = work.query_token + (consumer as usize * CONSUMER_ROWS) as i32;
        let mut chunk = 0;
        while chunk < CHUNKS as u32 {
            let at = [(chunk as usize * CHUNK) as i32, token, work.query_head as i32, work.query_outer, shift];
            // SAFETY: the caller's promise.
            unsafe { slot.load_5d(slot.stage().at(consumer).at(chunk), map, at) };
            chunk += 1;
        }
        consumer += 1;
    }
}

/// Starts the copies of a tile of K or of V, in chunks of 64 columns.
///
/// # Safety
/// As [`EmptySlot::load_5d`].
#[inline(always)]
unsafe fn load_keys<E: 'static, const KEYS: usize, const CHUNKS: usize, K: Source>(
    arguments: &Arguments,
    slot: &EmptySlot<KeyTile<E, KEYS, CHUNKS>, BlockScope>,
    (map, map_of_one): KeyMaps<E, KEYS>,
    place: Sequence,
    keys: Keys,
) {
    let at = |chunk: u32, key: u32| {
        [(chunk as usize * CHUNK) as i32, place.token + key as i32, place.head, place.outer, arguments.key_shift]
    };
    // SAFETY: the caller's promise; every row of the tiles is copied once.
    unsafe {
        match keys {
            Keys::Columns(begin) if K::GATHERS => {
                let mut row = 0;
                while row < KEYS as u32 {
                    no_unroll();
                    let key = arguments.columns.get(begin + row);
                    let mut chunk = 0;
                    while chunk < CHUNKS as u32 {
                        slot.load_5d(slot.stage().at(chunk).row(row), map_of_one, at(chunk, key));
                        chunk += 1;
                    }
                    row = opaque(row + 1);
                }
            }
            Keys::From(first) | Keys::Columns(first) => {
                let mut chunk = 0;
                while chunk < CHUNKS as u32 {
                    slot.load_5d(slot.stage().at(chunk), map, at(chunk, first));
                    chunk += 1;
                }
            }
        }
    }
}
