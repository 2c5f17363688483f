//! Which worker computes which tiles, in which order, and which windows are split: fixed before the launch.

use core::cmp::Reverse;

use kernels_gpu::wcsr::{Configuration, STORED, SplitWork, TileWork};

use crate::ops::dealt::Dealt;

/// What storing a tile costs, in panels of V: an estimate that only has to rank tiles.
const STORE_PANELS: u64 = 4;

/// A part has at least so many panels (256 columns): storing and adding up the sums of a shorter one costs more than it spreads.
const LEAST_PART: u64 = 16;

/// The tiles of every worker, and what is added up after them.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    /// Tiles.
    pub(super) dealt: Dealt<TileWork>,
    /// Tiles of C whose windows were split.
    pub(super) splits: Vec<SplitWork>,
    /// Tiles of sums in the workspace.
    pub(super) num_slots: u32,
}

impl Schedule {
    /// Deals out `panels_of_b` panels of B of the windows whose panels of V begin at `offsets`.
    ///
    /// A window is split where it is wider than a worker's share of all panels, into parts as equal as whole stages allow.
    /// Panels of B come one after the other: what all windows read of one stays in L2. Within one the longest come first.
    pub(super) fn new(offsets: &[u64], panels_of_b: u32, multiprocessors: u32, kernel: &Configuration) -> Self {
        let workers = (multiprocessors * kernel.blocks).max(1);
        let stage = kernel.stage_panels as u64;
        let most = part_panels(offsets, workers, stage);
        let mut windows: Vec<(u32, u64)> =
            offsets.windows(2).zip(0..).map(|(ends, window)| (window, ends[1] - ends[0])).collect();
        windows.sort_by_key(|&(_, width)| Reverse(width));

        let (mut order, mut splits, mut num_slots) = (Vec::new(), Vec::new(), 0);
        for panel in 0..panels_of_b {
            for &(window, width) in &windows {
                let parts = width.div_ceil(most).max(1);
                let length = width.div_ceil(parts).next_multiple_of(stage).max(stage);
                let (first, last) = (offsets[window as usize], offsets[window as usize + 1]);
                if parts > 1 {
                    let count = width.div_ceil(length) as u32;
                    splits.push(SplitWork { window, panel, first: num_slots, count });
                }
                let mut begin = first;
                loop {
                    let end = last.min(begin + length);
                    let slot = if parts > 1 { num_slots } else { STORED };
                    num_slots += u32::from(parts > 1);
                    order.push(TileWork { window, panel, begin: begin as u32, end: end as u32, slot });
                    begin = end;
                    if begin == last {
                        break;
                    }
                }
            }
        }
        let cost = |tile: &TileWork| u64::from(tile.end - tile.begin) + STORE_PANELS;
        Self { dealt: Dealt::in_order(&order, workers as usize, cost), splits, num_slots }
    }
}

/// The most panels of a part: a worker's share of all of A, in whole stages.
fn part_panels(offsets: &[u64], workers: u32, stage: u64) -> u64 {
    let all = offsets.last().copied().unwrap_or(0);
    all.div_ceil(u64::from(workers)).max(LEAST_PART).next_multiple_of(stage)
}

#[cfg(test)]
mod tests {
    use kernels_gpu::wcsr::CONFIGURATIONS;

    use super::*;

    fn schedule(widths: &[u64], panels_of_b: u32, multiprocessors: u32) -> Schedule {
        let offsets: Vec<u64> = core::iter::once(0)
            .chain(widths.iter().scan(0, |end, width| {
                *end += width;
                Some(*end)
            }))
            .collect();
        Schedule::new(&offsets, panels_of_b, multiprocessors, &CONFIGURATIONS[0])
    }

    /// Every panel of every window is in one tile for each panel of B, in order, and slots are used once.
    fn is_whole(widths: &[u64], panels_of_b: u32, multiprocessors: u32) -> Schedule {
        let schedule = schedule(widths, panels_of_b, multiprocessors);
        let mut first = 0;
        for (window, width) in widths.iter().enumerate() {
            for panel in 0..panels_of_b {
                let mut tiles = schedule.dealt.tiles.to_vec();
                tiles.retain(|tile| (tile.window as usize, tile.panel) == (window, panel));
                tiles.sort_by_key(|tile| tile.begin);
                assert_eq!(u64::from(tiles[0].begin), first);
                assert_eq!(u64::from(tiles[tiles.len() - 1].end), first + width);
                assert!(tiles.windows(2).all(|pair| pair[0].end == pair[1].begin), "no gap");
                let split =
                    schedule.splits.iter().find(|split| (split.window as usize, split.panel) == (window, panel));
                match split {
                    None => assert_eq!((tiles.len(), tiles[0].slot), (1, STORED)),
                    Some(split) => {
                        let slots: Vec<_> = tiles.iter().map(|tile| tile.slot).collect();
                        assert_eq!(slots, (split.first..split.first + split.count).collect::<Vec<_>>());
                        assert!(slots.len() > 1, "a split of one part");
                    }
                }
            }
            first += width;
        }
        schedule
    }

    #[test]
    fn windows_are_whole() {
        assert_eq!(is_whole(&[3, 0, 5, 1], 2, 1).splits.len(), 0);
        assert_eq!(is_whole(&[], 2, 132).num_slots, 0);
        assert_eq!(is_whole(&[0], 1, 132).dealt.tiles.len(), 1);
    }

    #[test]
    fn a_window_wider_than_a_share_is_split() {
        let mut widths = vec![10; 50];
        widths[17] = 1000;
        let schedule = is_whole(&widths, 3, 4);
        assert_eq!(schedule.splits.len(), 3);
        assert!(schedule.dealt.imbalance() < 1.2, "{}", schedule.dealt.imbalance());
        // One window that is all of the matrix.
        let schedule = is_whole(&[4000], 1, 132);
        assert!(schedule.dealt.num_workers() > 200, "{}", schedule.dealt.num_workers());
    }

    #[test]
    fn how_a_window_is_split_does_not_depend_on_b() {
        let widths = [100, 3, 900, 41];
        let ends = |panels_of_b| {
            let mut tiles = schedule(&widths, panels_of_b, 8).dealt.tiles;
            tiles.retain(|tile| tile.panel == 0);
            tiles.sort_by_key(|tile| tile.begin);
            tiles.into_iter().map(|tile| tile.end).collect::<Vec<_>>()
        };
        assert_eq!(ends(1), ends(7));
    }
}
