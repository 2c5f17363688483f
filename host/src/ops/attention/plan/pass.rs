//! One launch of a plan.

use core::fmt;

use kernels_gpu::attention::{Configuration, TileWork};

use crate::ops::attention::schedule::{self, Schedule, Unit};

/// What the rows of a pass's tiles are, and where its results go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassKind {
    /// Rows are queries of one head; they go to O.
    Queries,
    /// Rows are the query heads that share a head of keys, of a sequence's one query; they go to O.
    Heads,
    /// As [`Heads`](Self::Heads), but of a part of the keys; they go to a workspace, and parts are combined.
    Parts,
}

/// One launch of a plan: a kernel, and its tiles by worker.
#[derive(Clone, Debug)]
pub struct Pass {
    pub(super) kind: PassKind,
    pub(super) configuration: &'static Configuration,
    pub(super) schedule: Schedule,
    pub(super) entries: KeyEntries,
}

/// The tiles of keys that tiles of O with lists meet; nothing where there are none.
#[derive(Clone, Debug, Default)]
#[cfg_attr(not(any(test, feature = "gpu", feature = "sim")), allow(dead_code, reason = "only a launch reads them"))]
pub(in crate::ops::attention) struct KeyEntries {
    /// Where a tile of keys begins, or, with [`COLUMNS`](kernels_gpu::attention::COLUMNS), where among the columns.
    pub(in crate::ops::attention) blocks: Vec<u32>,
    /// Numbers of single keys.
    pub(in crate::ops::attention) columns: Vec<u32>,
}

/// Workers that a device with `multiprocessors` multiprocessors runs at a time.
fn max_workers(configuration: &Configuration, multiprocessors: u32) -> usize {
    let spec = configuration.spec;
    (multiprocessors.saturating_mul(spec.min_blocks) / spec.cluster).max(1) as usize
}

impl Pass {
    /// Deals the tiles out to the workers that a device with `multiprocessors` multiprocessors runs at a time.
    pub(super) fn new(
        kind: PassKind,
        configuration: &'static Configuration,
        units: Vec<Unit>,
        multiprocessors: u32,
    ) -> Self {
        let schedule = Schedule::new(units, max_workers(configuration, multiprocessors));
        Self { kind, configuration, schedule, entries: KeyEntries::default() }
    }

    /// As [`new`](Self::new), of tiles whose keys are entries of lists.
    pub(in crate::ops::attention) fn of_lists(
        configuration: &'static Configuration,
        tiles: Vec<TileWork>,
        entries: KeyEntries,
        multiprocessors: u32,
    ) -> Self {
        let schedule = Schedule::side_by_side(tiles, max_workers(configuration, multiprocessors));
        Self { kind: PassKind::Queries, configuration, schedule, entries }
    }

    /// What its rows are.
    pub fn kind(&self) -> PassKind {
        self.kind
    }

    /// The kernel.
    pub fn configuration(&self) -> &'static Configuration {
        self.configuration
    }

    /// Workers: blocks of the launch, or clusters of blocks.
    pub fn num_workers(&self) -> u32 {
        self.schedule.num_workers()
    }

    /// Blocks of the launch.
    pub fn grid(&self) -> u32 {
        self.num_workers() * self.configuration.spec.cluster
    }

    /// Tiles of O, or of parts of it.
    pub fn num_tiles(&self) -> usize {
        self.schedule.tiles.len()
    }

    /// Tiles of keys that the tiles meet, all together.
    pub fn num_key_tiles(&self) -> u64 {
        self.schedule.tiles.iter().map(schedule::key_tiles).sum()
    }

    /// The largest share of work over the mean share: 1 is perfect balance.
    pub fn imbalance(&self) -> f64 {
        self.schedule.imbalance()
    }

    /// The tiles, by worker, and where each worker's begin.
    #[cfg_attr(not(any(test, feature = "gpu", feature = "sim")), allow(dead_code, reason = "only a launch reads it"))]
    pub(in crate::ops::attention) fn lists(&self) -> (&[TileWork], &[u32]) {
        (&self.schedule.tiles, &self.schedule.offsets)
    }

    /// The tiles of keys, to which tiles with lists refer.
    #[cfg_attr(not(any(test, feature = "gpu", feature = "sim")), allow(dead_code, reason = "only a launch reads it"))]
    pub(in crate::ops::attention) fn entries(&self) -> &KeyEntries {
        &self.entries
    }
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = match self.kind {
            PassKind::Queries => "rows",
            PassKind::Heads => "heads",
            PassKind::Parts => "heads in parts",
        };
        write!(
            f,
            "{}: {} tiles of {} {rows} on {} workers, {} tiles of {} keys, imbalance {:.2}",
            self.configuration.spec.name,
            self.num_tiles(),
            self.configuration.rows,
            self.num_workers(),
            self.num_key_tiles(),
            self.configuration.keys,
            self.imbalance()
        )
    }
}
