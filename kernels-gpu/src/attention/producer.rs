//! The producer: one thread that keeps Q, K and V coming, across tiles.

use hopper_std::hint::opaque;
use hopper_std::sm90::{BlockScope, EmptySlot, Producer, Shared, Swizzle128, TensorMapRef, Tile, TileShape};
use hopper_std::thread;

use super::config::{Arguments, CHUNK, CONSUMER_ROWS, KeyTile, QueryTile, TileWork};

/// The tensor maps.
pub(super) struct Maps<E, const KEYS: usize> {
    pub(super) q: TensorMapRef<Tile<E, CONSUMER_ROWS, CHUNK, Swizzle128>>,
    pub(super) o: TensorMapRef<Tile<E, CONSUMER_ROWS, CHUNK, Swizzle128>>,
    pub(super) k: TensorMapRef<Tile<E, KEYS, CHUNK, Swizzle128>>,
    pub(super) v: TensorMapRef<Tile<E, KEYS, CHUNK, Swizzle128>>,
}

/// Fills the ring in the order in which the consumers read: Q, K0, K1, V0, K2, V1, .., V(last), from the last tile of keys
/// to the first. Thread.
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
    while index < last {
        // SAFETY: a worker's tiles are in the list.
        let work = unsafe { arguments.tile(index) };
        let mut key = work.end_tile;
        // SAFETY: each tile is part of its slot's stage and filled once.
        unsafe {
            load_queries(&queries.acquire(), maps.q, &work);
            if key > work.first_tile {
                key -= 1;
                load_keys(&ring.acquire(), maps.k, &work, key);
                while key > work.first_tile {
                    load_keys(&ring.acquire(), maps.k, &work, key - 1);
                    load_keys(&ring.acquire(), maps.v, &work, key);
                    key = opaque(key - 1);
                }
                load_keys(&ring.acquire(), maps.v, &work, key);
            }
        }
        index += 1;
    }
}

/// Starts the copies of the rows of Q.
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
        // SAFETY: the caller's promise.
        unsafe {
            load_chunks(slot, slot.stage().at(consumer), map, [token, work.query_head as i32, work.query_outer]);
        }
        consumer += 1;
    }
}

/// Starts the copies of tile `tile` of K or of V.
///
/// # Safety
/// As [`EmptySlot::load_4d`].
#[inline(always)]
unsafe fn load_keys<E: 'static, const KEYS: usize, const CHUNKS: usize>(
    slot: &EmptySlot<KeyTile<E, KEYS, CHUNKS>, BlockScope>,
    map: TensorMapRef<Tile<E, KEYS, CHUNK, Swizzle128>>,
    work: &TileWork,
    tile: u32,
) {
    let token = work.key_token + (tile as usize * KEYS) as i32;
    // SAFETY: the caller's promise.
    unsafe { load_chunks(slot, slot.stage(), map, [token, work.key_head as i32, work.key_outer]) }
}

/// Starts the copies of the rows from `at` (token, head, outer) on, in chunks of 64 columns.
///
/// # Safety
/// As [`EmptySlot::load_4d`].
#[inline(always)]
unsafe fn load_chunks<T: TileShape, Stage, const CHUNKS: usize>(
    slot: &EmptySlot<Stage, BlockScope>,
    tiles: Shared<[T; CHUNKS]>,
    map: TensorMapRef<T>,
    [token, head, outer]: [i32; 3],
) {
    let mut chunk = 0;
    while chunk < CHUNKS as u32 {
        let at = [(chunk as usize * CHUNK) as i32, token, head, outer];
        // SAFETY: the caller's promise.
        unsafe { slot.load_4d(tiles.at(chunk), map, at) };
        chunk += 1;
    }
}
