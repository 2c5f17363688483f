//! Which worker computes which tiles, in which order, and which windows are split: fixed before the launch.

use core::cmp::Reverse;

use kernels_gpu::wcsr::{CONFIGURATIONS, Configuration, MOST_PANELS, STORED, SplitWork, TileWork};

use crate::ops::dealt::Dealt;

/// What storing a tile costs, in panels of V: an estimate that only has to rank tiles.
const STORE_PANELS: u64 = 4;

/// As [`STORE_PANELS`], of a tile of a narrow window: it is an eighth as large, or less.
const STORE_PANELS_NARROW: u64 = 1;

/// A part has at least so many panels (256 columns): storing and adding up the sums of a shorter one costs more than it spreads.
const LEAST_PART: u64 = 16;

/// Entries of the list for each worker, at least, before narrow windows share one: fewer could not be dealt out evenly.
const ENTRIES_PER_WORKER: u64 = 4;

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
    /// A window is split where it is wider than a worker's share of all panels, into parts as equal as whole stages allow; narrow
    /// windows that follow one another share an entry. Panels of B come one after the other: what all windows read of one
    /// stays in L2. Within one the longest come first.
    pub(super) fn new(offsets: &[u64], panels_of_b: u32, multiprocessors: u32, kernel: &Configuration) -> Self {
        let workers = (multiprocessors * kernel.blocks).max(1);
        let stage = kernel.stage_panels as u64;
        let most = part_panels(offsets, (multiprocessors * most_blocks(kernel)).max(1), stage);
        let store_panels = if kernel.most_windows == 1 { STORE_PANELS } else { STORE_PANELS_NARROW };
        let cost = |tile: &TileWork| u64::from(tile.end - tile.begin) + store_panels * u64::from(tile.windows);
        let all = offsets.last().unwrap_or(&0) + store_panels * offsets.len() as u64;
        let share = all * u64::from(panels_of_b) / (u64::from(workers) * ENTRIES_PER_WORKER);
        let mut entries = entries(offsets, kernel.most_windows, |tile| cost(tile) <= share);
        entries.sort_by_key(|tile| Reverse(tile.end - tile.begin));

        let (mut order, mut splits, mut num_slots) = (Vec::new(), Vec::new(), 0);
        for panel in 0..panels_of_b {
            for entry in &entries {
                let (first, last) = (u64::from(entry.begin), u64::from(entry.end));
                let parts = if entry.windows == 1 { (last - first).div_ceil(most).max(1) } else { 1 };
                if parts == 1 {
                    order.push(TileWork { panel, ..*entry });
                    continue;
                }
                let length = (last - first).div_ceil(parts).next_multiple_of(stage);
                let count = (last - first).div_ceil(length) as u32;
                splits.push(SplitWork { window: entry.window, panel, first: num_slots, count });
                for (begin, slot) in (first..last).step_by(length as usize).zip(num_slots..) {
                    let end = last.min(begin + length);
                    order.push(TileWork { panel, begin: begin as u32, end: end as u32, slot, ..*entry });
                }
                num_slots += count;
            }
        }
        Self { dealt: Dealt::in_order(&order, workers as usize, cost), splits, num_slots }
    }
}

/// Windows in entries of up to `most_windows`, as long as one `may_be`; of panel 0 of B.
fn entries(offsets: &[u64], most_windows: u32, may_be: impl Fn(&TileWork) -> bool) -> Vec<TileWork> {
    let mut entries: Vec<TileWork> = Vec::new();
    for (window, ends) in (0..).zip(offsets.windows(2)) {
        let (begin, end) = (ends[0] as u32, ends[1] as u32);
        if let Some(last) = entries.last_mut()
            && let Some(longer) = with_next(last, end, most_windows).filter(&may_be)
        {
            *last = longer;
            continue;
        }
        let widths = u64::from((end - begin).min(MOST_PANELS));
        entries.push(TileWork { window, panel: 0, begin, end, slot: STORED, windows: 1, widths });
    }
    entries
}

/// The entry with one window more, which ends at panel `end`, where there is room for it.
fn with_next(entry: &TileWork, end: u32, most_windows: u32) -> Option<TileWork> {
    let width = end - entry.end;
    // The first window's width was not needed while it was alone.
    let fits = width <= MOST_PANELS && (entry.windows > 1 || entry.end - entry.begin <= MOST_PANELS);
    (fits && entry.windows < most_windows).then(|| {
        let widths = entry.widths | u64::from(width) << (8 * entry.windows);
        TileWork { end, windows: entry.windows + 1, widths, ..*entry }
    })
}

/// The most blocks that a multiprocessor has of any kernel for such windows: how they are split must not depend on which serves N.
fn most_blocks(kernel: &Configuration) -> u32 {
    let same = |other: &&Configuration| (other.window_rows, other.group) == (kernel.window_rows, kernel.group);
    CONFIGURATIONS.iter().filter(same).map(|other| other.blocks).max().unwrap_or(kernel.blocks)
}

/// The most panels of a part: a worker's share of all of A, in whole stages.
fn part_panels(offsets: &[u64], workers: u32, stage: u64) -> u64 {
    let all = offsets.last().copied().unwrap_or(0);
    all.div_ceil(u64::from(workers)).max(LEAST_PART).next_multiple_of(stage)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(widths: &[u64]) -> Vec<u64> {
        let ends = widths.iter().scan(0, |end, width| {
            *end += width;
            Some(*end)
        });
        core::iter::once(0).chain(ends).collect()
    }

    fn schedule(widths: &[u64], panels_of_b: u32, multiprocessors: u32) -> Schedule {
        Schedule::new(&offsets(widths), panels_of_b, multiprocessors, &CONFIGURATIONS[0])
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

    /// Every window is in one entry for each panel of B, or in the parts of a split, with the panels that are its own.
    #[test]
    fn narrow_windows_share_entries() {
        let kernel = CONFIGURATIONS.iter().find(|kernel| kernel.window_rows == 8).expect("a kernel for narrow windows");
        // Empty ones, one too wide for a byte, and one that is split.
        let widths: Vec<u64> = (0..600)
            .map(|window| match window {
                77 => 300,
                401 => 4000,
                _ => window * 7 % 11,
            })
            .collect();
        let offsets = offsets(&widths);
        let schedule = Schedule::new(&offsets, 3, 2, kernel);
        let mut seen = vec![[0; 3]; widths.len()];
        for tile in &schedule.dealt.tiles {
            let mut begin = tile.begin;
            for at in 0..tile.windows {
                let window = (tile.window + at) as usize;
                let width =
                    if tile.windows == 1 { tile.end - tile.begin } else { (tile.widths >> (8 * at)) as u32 & 0xff };
                if tile.slot == STORED {
                    assert_eq!((u64::from(begin), u64::from(width)), (offsets[window], widths[window]));
                } else {
                    assert_eq!((tile.windows, window), (1, 401));
                }
                seen[window][tile.panel as usize] += width;
                begin += width;
            }
            assert_eq!(begin, tile.end);
            assert!(tile.windows <= kernel.most_windows);
        }
        assert!(seen.iter().zip(&widths).all(|(seen, &width)| seen.iter().all(|&seen| u64::from(seen) == width)));
        let windows: u32 =
            schedule.dealt.tiles.iter().filter(|tile| tile.slot == STORED).map(|tile| tile.windows).sum();
        assert_eq!((windows, schedule.splits.len()), (3 * 599, 3));
        assert!(schedule.dealt.tiles.len() < 3 * 599 / 4, "{} entries", schedule.dealt.tiles.len());
        assert!(schedule.dealt.imbalance() < 1.1, "{}", schedule.dealt.imbalance());
    }

    #[test]
    fn few_narrow_windows_have_entries_of_their_own() {
        let kernel =
            CONFIGURATIONS.iter().find(|kernel| kernel.window_rows == 16).expect("a kernel for narrow windows");
        let schedule = Schedule::new(&offsets(&[3; 100]), 1, 132, kernel);
        assert_eq!(schedule.dealt.num_workers(), 100);
    }
}
