//! The producer: one thread that keeps Q, K and V coming, across tiles.

use hopper_std::hint::opaque;
use hopper_std::sm90::{BlockScope, EmptySlot, Producer, Swizzle128, TensorMapRef, Tile};
use hopper_std::thread;

use super::config::{Arguments, CHUNK, CONSUMER_ROWS, KeyTile, QueryTile, Source, TileWork};

/// The tensor maps.
pub(super) struct Maps<E, const KEYS: usize> {
    pub(super) q: TensorMapRef<Tile<E, CONSUMER_ROWS, CHUNK, Swizzle128>>,
    pub(super) o: TensorMapRef<Tile<E, CONSUMER_ROWS, CHUNK, Swizzle128>>,
    pub(super) k: TensorMapRef<Tile<E, KEYS, CHUNK, Swizzle128>>,
    pub(super) v: TensorMapRef<Tile<E, KEYS, CHUNK, Swizzle128>>,
}

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
        let place = Keys::of(&work);
        // SAFETY: each tile is part of its slot's stage and filled once.
        unsafe { load_queries(&queries.acquire(), maps.q, &work) };
        let mut position = work.end_tile;
        while position > work.first_tile {
            position = opaque(position - 1);
            // SAFETY: as above.
            unsafe {
                let tile = K::tile(arguments, position);
                load_keys(&ring.acquire(), maps.k, place, tile);
                if let Some((place, tile)) = behind.replace((place, tile)) {
                    load_keys(&ring.acquire(), maps.v, place, tile);
                }
            }
        }
        index += 1;
        if QUERY_STAGES == 1 || index == last {
            if let Some((place, tile)) = behind.take() {
                // SAFETY: as above.
                unsafe { load_keys(&ring.acquire(), maps.v, place, tile) };
            }
        }
    }
}

/// Where a sequence's keys are in the maps of K and V.
#[derive(Clone, Copy)]
struct Keys {
    token: i32,
    head: i32,
    outer: i32,
}

impl Keys {
    #[inline(always)]
    const fn of(work: &TileWork) -> Self {
        Self { token: work.key_token, head: work.key_head as i32, outer: work.key_outer }
    }
}

/// Starts the copies of this block's rows of Q.
///
/// # Safety
/// As [`EmptySlot::load_4d`].
#[inline(always)]
unsafe fn load_queries<E: 'static, const CHUNKS: usize, const CONSUMERS: usize>(
    slot: &EmptySlot<[QueryTile<E, CHUNKS>; CONSUMERS], BlockScope>,
    map: TensorMapRef<Tile<E, CONSUMER_ROWS, CHUNK, Swizzle128>>,
    work: &TileWork,
) {
    let mut consumer = 0;
    while consumer < CONSUMERS as u32 {
        let token = work.query_token + (consumer as usize * CONSUMER_ROWS) as i32;
        let mut chunk = 0;
        while chunk < CHUNKS as u32 {
            let at = [(chunk as usize * CHUNK) as i32, token, work.query_head as i32, work.query_outer];
            // SAFETY: the caller's promise.
            unsafe { slot.load_4d(slot.stage().at(consumer).at(chunk), map, at) };
            chunk += 1;
        }
        consumer += 1;
    }
}

/// Starts the copies of tile `tile` of K or of V, in chunks of 64 columns.
///
/// # Safety
/// As [`EmptySlot::load_4d`].
#[inline(always)]
unsafe fn load_keys<E: 'static, const KEYS: usize, const CHUNKS: usize>(
    slot: &EmptySlot<KeyTile<E, KEYS, CHUNKS>, BlockScope>,
    map: TensorMapRef<Tile<E, KEYS, CHUNK, Swizzle128>>,
    place: Keys,
    tile: u32,
) {
    let token = place.token + (tile as usize * KEYS) as i32;
    let mut chunk = 0;
    while chunk < CHUNKS as u32 {
        let at = [(chunk as usize * CHUNK) as i32, token, place.head, place.outer];
        // SAFETY: the caller's promise.
        unsafe { slot.load_4d(slot.stage().at(chunk), map, at) };
        chunk += 1;
    }
}
