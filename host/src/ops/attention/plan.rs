//! Which kernel, which tiles, by which workers.

use core::fmt;

use kernels_gpu::attention::{CONFIGURATIONS, Configuration, Dtype as KernelDtype, Serves, TileWork};

use super::schedule::{self, Schedule, Unit};
use super::{Attention, AttentionCount, AttentionError, Sequences, Window};
use crate::element::Dtype;

/// The most tiles: a kernel numbers the three entries of each.
pub(super) const MAX_TILES: u64 = u32::MAX as u64 / 3;

/// What was chosen for a problem.
#[derive(Clone, Debug)]
pub struct AttentionPlan {
    problem: Attention,
    configuration: &'static Configuration,
    schedule: Schedule,
    entries: KeyEntries,
}

/// The tiles of keys that tiles of O with lists meet; nothing where there are none.
#[derive(Clone, Debug, Default)]
#[cfg_attr(not(any(test, feature = "gpu", feature = "sim")), allow(dead_code, reason = "only a launch reads them"))]
pub(super) struct KeyEntries {
    /// Where a tile of keys begins, or, with [`COLUMNS`](kernels_gpu::attention::COLUMNS), where among the columns.
    pub(super) blocks: Vec<u32>,
    /// Numbers of single keys.
    pub(super) columns: Vec<u32>,
}

impl Attention {
    /// Chooses kernel and tiles for a device with `multiprocessors` multiprocessors.
    ///
    /// # Errors
    /// As [`check`](Self::check); [`AttentionError::NoKernel`] and [`AttentionError::TooMany`] with the reason.
    pub fn plan(&self, multiprocessors: u32) -> Result<AttentionPlan, AttentionError> {
        self.plan_among(CONFIGURATIONS, multiprocessors)
    }

    /// The kernels that can serve the problem, whether or not [`plan`](Self::plan) would choose them.
    pub fn kernels(&self) -> impl Iterator<Item = &'static Configuration> {
        CONFIGURATIONS.iter().filter(|configuration| self.can_use(configuration))
    }

    /// As [`plan`](Self::plan), by one of the given kernels.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn plan_among(
        &self,
        configurations: &'static [Configuration],
        multiprocessors: u32,
    ) -> Result<AttentionPlan, AttentionError> {
        self.check()?;
        let configuration = configurations
            .iter()
            .filter(|configuration| self.can_use(configuration))
            // The least padding; then by what a row sees. Nothing that depends on a batch or on lengths.
            .min_by_key(|configuration| (configuration.head_dim, self.preference(configuration.serves)))
            .ok_or(AttentionError::NoKernel { head_dim: self.head_dim, dtype: self.dtype })?;
        let num_tiles = self.num_tiles(configuration.rows);
        if num_tiles > MAX_TILES {
            return Err(AttentionError::TooMany { what: AttentionCount::Tiles, found: num_tiles, most: MAX_TILES });
        }
        let spec = configuration.spec;
        let workers = (multiprocessors.saturating_mul(spec.min_blocks) / spec.cluster).max(1);
        let units = self.units(configuration);
        let schedule = Schedule::new(units, workers as usize);
        Ok(AttentionPlan::of_parts(self.clone(), configuration, schedule, KeyEntries::default()))
    }

    fn can_use(&self, configuration: &Configuration) -> bool {
        kernel_dtype(self.dtype) == Some(configuration.dtype)
            && self.head_dim <= configuration.head_dim
            && configuration.serves != Serves::Blocks
    }

    /// Smaller is better.
    fn preference(&self, serves: Serves) -> u32 {
        match (serves, self.window == Window::FULL) {
            (Serves::Full, true) | (Serves::Masked, false) => 0,
            (Serves::Either, _) => 1,
            (Serves::Full | Serves::Masked, _) => 2,
            // A batch may have sequences of many rows, and a sequence's kernel must not depend on others'.
            (Serves::FewRows | Serves::Blocks, _) => 3,
        }
    }

    /// Tiles of O with `rows` rows.
    pub(super) fn num_tiles(&self, rows: usize) -> u64 {
        let of_sequence = |sequence| self.queries.len_of(sequence).div_ceil(rows) as u64;
        let sum: u64 = match self.queries {
            Sequences::Equal { batch, len } => (batch as u64).saturating_mul(len.div_ceil(rows) as u64),
            Sequences::Packed { .. } => (0..self.queries.num_sequences()).map(of_sequence).sum(),
        };
        sum.saturating_mul(self.num_query_heads as u64)
    }

    /// The tiles, by sequence and head of keys.
    fn units(&self, configuration: &Configuration) -> Vec<Unit> {
        let group = self.num_query_heads / self.num_key_heads;
        let extents = [token_extent(&self.queries), token_extent(&self.keys)];
        let mut units = Vec::new();
        for sequence in 0..self.queries.num_sequences() {
            let bytes = 2 * self.keys.len_of(sequence) as u64 * (self.head_dim * self.dtype.size_bytes()) as u64;
            for key_head in 0..self.num_key_heads {
                let heads = key_head * group..(key_head + 1) * group;
                let rows = (0..self.queries.len_of(sequence)).step_by(configuration.rows);
                let tiles: Vec<TileWork> = heads
                    .flat_map(|head| rows.clone().map(move |row| (head, row)))
                    .map(|(head, row)| self.tile(configuration, extents, sequence, head, row))
                    .collect();
                if !tiles.is_empty() {
                    units.push(Unit { tiles, bytes });
                }
            }
        }
        units
    }

    /// The tile of a head of a sequence that begins at `row`, by the extents of the maps' token axes.
    ///
    /// All numbers fit, since [`check_sizes`](Self::check) has passed.
    pub(super) fn tile(
        &self,
        configuration: &Configuration,
        [query_extent, key_extent]: [usize; 2],
        sequence: usize,
        head: usize,
        row: usize,
    ) -> TileWork {
        let (num_queries, num_keys) = (self.queries.len_of(sequence), self.keys.len_of(sequence));
        let last_row = (row + configuration.rows).min(num_queries) - 1;
        // From row to row, neither bound of what is seen moves backwards.
        let first = self.window.keys_of(row, num_queries, num_keys).start;
        let end = self.window.keys_of(last_row, num_queries, num_keys).end;
        let tiles = match first < end {
            true => first / configuration.keys..end.div_ceil(configuration.keys),
            // A tile meets at least one tile of keys. Behind the sequence's end there are zeros, whatever the keys are.
            false => num_keys.div_ceil(configuration.keys)..num_keys.div_ceil(configuration.keys) + 1,
        };
        let (query_token, query_outer) = coordinates(&self.queries, query_extent, sequence, row);
        let (key_token, key_outer) = coordinates(&self.keys, key_extent, sequence, 0);
        TileWork {
            query_token,
            query_outer,
            query_head: head as u32,
            key_head: self.key_head_of(head) as u32,
            key_token,
            key_outer,
            first_tile: tiles.start as u32,
            end_tile: tiles.end as u32,
            // Between -Lq and Lk.
            diagonal: (row as i64 + num_keys as i64 - num_queries as i64) as i32,
            num_rows: (last_row + 1 - row) as u32,
            num_keys: num_keys as u32,
            lse_index: self.lse_index(sequence, head, row) as u32,
        }
    }
}

/// Token and outer coordinate of token `at` of a sequence, in the maps that `launch` makes: out of bounds from the sequence's
/// end on.
///
/// The token axis of packed sequences has as many tokens as the longest sequence (`extent`), and the outer one as many places
/// as there are tokens and one: there, `(extent - len + at, start + len)` is the token at `start + at`.
fn coordinates(sequences: &Sequences, extent: usize, sequence: usize, at: usize) -> (i32, i32) {
    let outer = match sequences {
        Sequences::Equal { .. } => sequence,
        Sequences::Packed { offsets } => offsets[sequence + 1],
    };
    // Where there is no token at all, the axis still has one.
    ((extent - sequences.len_of(sequence) + at) as i32, outer as i32)
}

/// The extent of the token axis of the maps.
pub(super) fn token_extent(sequences: &Sequences) -> usize {
    sequences.longest().max(1)
}

pub(super) const fn kernel_dtype(dtype: Dtype) -> Option<KernelDtype> {
    match dtype {
        Dtype::Bf16 => Some(KernelDtype::Bf16),
        Dtype::F16 => Some(KernelDtype::F16),
        Dtype::F32 | Dtype::F64 => None,
    }
}

impl AttentionPlan {
    /// What was chosen.
    pub(super) fn of_parts(
        problem: Attention,
        configuration: &'static Configuration,
        schedule: Schedule,
        entries: KeyEntries,
    ) -> Self {
        Self { problem, configuration, schedule, entries }
    }

    /// The problem.
    pub fn problem(&self) -> &Attention {
        &self.problem
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

    /// Tiles of O.
    pub fn num_tiles(&self) -> usize {
        self.schedule.tiles.len()
    }

    /// Tiles of keys that tiles of O meet, all together.
    pub fn num_key_tiles(&self) -> u64 {
        self.schedule.tiles.iter().map(schedule::key_tiles).sum()
    }

    /// The largest share of work over the mean share: 1 is perfect balance.
    pub fn imbalance(&self) -> f64 {
        self.schedule.imbalance()
    }

    /// The tiles, by worker, and where each worker's begin.
    #[cfg_attr(not(any(test, feature = "gpu", feature = "sim")), allow(dead_code, reason = "only a launch reads it"))]
    pub(super) fn lists(&self) -> (&[TileWork], &[u32]) {
        (&self.schedule.tiles, &self.schedule.offsets)
    }

    /// The lists of tiles of keys, to which tiles with lists refer.
    #[cfg_attr(not(any(test, feature = "gpu", feature = "sim")), allow(dead_code, reason = "only a launch reads it"))]
    pub(super) fn entries(&self) -> &KeyEntries {
        &self.entries
    }
}

impl fmt::Display for AttentionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} tiles of {} rows on {} workers, {} tiles of {} keys, imbalance {:.2}",
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

#[cfg(test)]
mod tests;
