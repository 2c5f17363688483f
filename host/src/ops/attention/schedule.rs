//! Which worker computes which tiles, in which order: fixed before the launch.

use core::cmp::Reverse;

use kernels_gpu::attention::TileWork;

use crate::ops::dealt::Dealt;

/// What a tile costs beside its keys, in tiles of keys: an estimate that only has to rank tiles.
const TILE_COST: u64 = 2;

/// K and V of the heads that are worked on at a time, in bytes: about half of an H200's L2.
const SECTION_BYTES: u64 = 32 << 20;

/// How uneven a schedule may be for its neighbours' sake.
const UNEVEN: f64 = 1.2;

/// The tiles that read one head of K and V.
pub(super) struct Unit {
    /// At least one, in the order in which they would best follow one another.
    pub(super) tiles: Vec<TileWork>,
    /// Of K and V.
    pub(super) bytes: u64,
}

/// The tiles of every worker.
pub(super) type Schedule = Dealt<TileWork>;

/// Tiles of keys that a tile meets.
pub(super) fn key_tiles(tile: &TileWork) -> u64 {
    u64::from(tile.end_tile - tile.first_tile)
}

fn cost(tile: &TileWork) -> u64 {
    key_tiles(tile) + TILE_COST
}

impl Schedule {
    /// Deals the tiles out to at most `max_workers` workers, each to the one that would be free first.
    ///
    /// Heads are taken in sections whose keys and values stay in L2 together, those of the longest sequences first; in a
    /// section, the longest tiles first. Tiles of equal length stay in the order of their heads.
    pub(super) fn new(mut units: Vec<Unit>, max_workers: usize) -> Self {
        units.sort_by_cached_key(|unit| Reverse(unit.tiles.iter().map(cost).max()));
        let mut order: Vec<TileWork> = Vec::with_capacity(units.iter().map(|unit| unit.tiles.len()).sum());
        let (mut start, mut bytes) = (0, 0);
        for unit in units {
            if bytes + unit.bytes > SECTION_BYTES {
                order[start..].sort_by_key(|tile| Reverse(cost(tile)));
                (start, bytes) = (order.len(), 0);
            }
            bytes += unit.bytes;
            order.extend(unit.tiles);
        }
        order[start..].sort_by_key(|tile| Reverse(cost(tile)));
        Self::in_order(&order, max_workers, cost)
    }

    /// Deals the tiles out in their order, each to the worker that would be free first, so that neighbours are worked on at
    /// the same time: blocks of queries beside each other read many of the same keys.
    ///
    /// PERF: 64 x 64 blocks, 64 a block of queries, on an H200: 434 TFLOP/s, and 314 where each worker has neighbours one
    /// after the other.
    pub(super) fn side_by_side(mut tiles: Vec<TileWork>, max_workers: usize) -> Self {
        let neighbours = Self::in_order(&tiles, max_workers, cost);
        if neighbours.imbalance() <= UNEVEN {
            return neighbours;
        }
        tiles.sort_by_key(|tile| Reverse(cost(tile)));
        let longest_first = Self::in_order(&tiles, max_workers, cost);
        if neighbours.imbalance() > UNEVEN * longest_first.imbalance() { longest_first } else { neighbours }
    }
}
