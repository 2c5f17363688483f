//! Which worker computes which tiles of C, in which order: fixed before the launch.
//!
//! A persistent kernel could take its next tile from a counter in memory. A list made by the host is as well balanced,
//! needs no counter to reset between launches that may overlap, and puts the tiles where they help one another: panel
//! by panel, so that the part of B which all row blocks read stays in L2.

use core::cmp::Reverse;

use kernels_gpu::bcsr::TileWork;

use crate::ops::dealt::Dealt;

/// What storing a tile costs, in stages: an estimate that only has to rank tiles.
const STORE_STAGES: u64 = 2;

/// Tiles longer than this many times the mean come first of all.
const GIANT: u64 = 4;

/// The last tiles, this many for each worker, are dealt out largest first, whatever their panel.
const TAIL_TILES: usize = 3;

/// The tiles of every worker.
pub(super) type Schedule = Dealt<TileWork>;

impl Schedule {
    /// Deals out `num_panels` panels of the row blocks whose stages begin at `stages` to at most `max_workers` workers.
    ///
    /// Panels are taken in groups of `group`; within a group each row block meets all panels before the next row block
    /// does, so that A is read from memory once for each group, and B's panels of one group stay in L2.
    pub(super) fn new(stages: &[u32], num_panels: u32, group: u32, max_workers: u32) -> Self {
        let num_row_blocks = stages.len() - 1;
        let mut rows: Vec<u32> = (0..num_row_blocks as u32).collect();
        let length = |row: u32| stages[row as usize + 1] - stages[row as usize];
        rows.sort_by_key(|&row| Reverse(length(row)));
        let tile = |row: u32, panel| TileWork {
            row_block: row,
            panel,
            begin: stages[row as usize],
            end: stages[row as usize + 1],
        };
        let mut order = Vec::with_capacity(num_row_blocks * num_panels as usize);
        for first in (0..num_panels).step_by(group.max(1) as usize) {
            let panels = first..num_panels.min(first + group.max(1));
            order.extend(rows.iter().flat_map(|&row| panels.clone().map(move |panel| tile(row, panel))));
        }

        let workers = (max_workers as usize).min(order.len()).max(1);
        let length = |tile: &TileWork| u64::from(tile.end - tile.begin);
        let mean = order.iter().map(length).sum::<u64>() / order.len().max(1) as u64;
        let (mut order, rest): (Vec<_>, Vec<_>) = order.into_iter().partition(|tile| length(tile) > GIANT * mean);
        order.sort_by_key(|tile| Reverse(length(tile)));
        let num_giants = order.len();
        order.extend(rest);
        let start = order.len() - (TAIL_TILES * workers).min(order.len() - num_giants);
        order[start..].sort_by_key(|tile| Reverse(length(tile)));
        Self::in_order(&order, workers, |tile| length(tile) + STORE_STAGES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tile_is_dealt_once() {
        let stages = [0, 5, 5, 6, 30, 31];
        let schedule = Schedule::new(&stages, 7, 3, 4);
        assert_eq!(schedule.tiles.len(), 35);
        assert_eq!(schedule.offsets.first(), Some(&0));
        assert_eq!(schedule.offsets.last(), Some(&35));
        assert!(schedule.offsets.is_sorted());
        let mut seen: Vec<_> = schedule.tiles.iter().map(|tile| (tile.panel, tile.row_block)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 35);
        for tile in &schedule.tiles {
            assert_eq!((tile.begin, tile.end), (stages[tile.row_block as usize], stages[tile.row_block as usize + 1]));
        }
    }

    #[test]
    fn long_rows_do_not_end_up_last() {
        // 64 row blocks, one of them eight times as long.
        let mut stages = vec![0];
        for row in 0..64 {
            stages.push(stages[row] + if row == 40 { 80 } else { 10 });
        }
        let schedule = Schedule::new(&stages, 16, 4, 132);
        assert!(schedule.imbalance() < 1.15, "imbalance {}", schedule.imbalance());
    }

    #[test]
    fn fewer_tiles_than_workers() {
        let schedule = Schedule::new(&[0, 1, 2], 1, 1, 132);
        assert_eq!(schedule.num_workers(), 2);
        assert_eq!(Schedule::new(&[0], 3, 1, 132).tiles.len(), 0);
        assert_eq!(Schedule::new(&[0, 4], 0, 1, 132).tiles.len(), 0);
    }
}
