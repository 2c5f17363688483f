//! Tiles of a persistent kernel, dealt out to its workers before the launch.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// The tiles of every worker.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(any(test, feature = "gpu", feature = "sim")),
    allow(dead_code, reason = "only a launch reads the offsets")
)]
pub(crate) struct Dealt<Tile> {
    /// By worker.
    pub(crate) tiles: Vec<Tile>,
    /// Where each worker's tiles begin; one more than there are workers.
    pub(crate) offsets: Vec<u32>,
    /// The largest load and the sum of all.
    loads: (u64, u64),
}

impl<Tile: Copy> Dealt<Tile> {
    /// Gives each tile, in order, to the one of at most `max_workers` workers that would be free first.
    pub(crate) fn in_order(order: &[Tile], max_workers: usize, cost: impl Fn(&Tile) -> u64) -> Self {
        let workers = max_workers.min(order.len()).max(1);
        let mut shares: Vec<Vec<Tile>> = vec![Vec::new(); workers];
        let mut free: BinaryHeap<Reverse<(u64, usize)>> = (0..workers).map(|worker| Reverse((0, worker))).collect();
        for tile in order {
            if let Some(Reverse((load, worker))) = free.pop() {
                shares[worker].push(*tile);
                free.push(Reverse((load + cost(tile), worker)));
            }
        }
        let loads = free.iter().fold((0, 0), |(largest, sum), Reverse((load, _))| (largest.max(*load), sum + *load));
        let mut offsets = vec![0];
        let mut tiles = Vec::with_capacity(order.len());
        for share in shares {
            tiles.extend(share);
            offsets.push(tiles.len() as u32);
        }
        Self { tiles, offsets, loads }
    }

    /// Workers that have tiles.
    pub(crate) fn num_workers(&self) -> u32 {
        self.offsets.len() as u32 - 1
    }

    /// The largest share of work over the mean share.
    pub(crate) fn imbalance(&self) -> f64 {
        let (largest, sum) = self.loads;
        if sum == 0 { 1.0 } else { largest as f64 * f64::from(self.num_workers()) / sum as f64 }
    }
}
