//! Which kernels, which tiles, by which workers.

mod one_query;
mod pass;
mod tiles;

use core::{fmt, ptr};

use kernels_gpu::attention::{CONFIGURATIONS, Configuration, Dtype as KernelDtype, Serves};

use super::{Attention, AttentionCount, AttentionError, Sequences, Window};
use crate::element::Dtype;
use one_query::HeadTiles;

pub(super) use one_query::Combination;
#[cfg(any(feature = "gpu", feature = "sim"))]
pub(super) use one_query::CombinedRow;
pub use one_query::{OneQuery, Whole};
pub(super) use pass::KeyEntries;
pub use pass::{Pass, PassKind};

/// The most tiles: a kernel numbers the three entries of each.
const MAX_TILES: u64 = u32::MAX as u64 / 3;

/// The most rows of a workspace: a kernel numbers them, and those behind the last tile's end.
const MAX_PARTIAL_ROWS: u64 = u32::MAX as u64 - 1024;

/// Rows of a causal or sliding window that see at most so many keys are served by small tiles: large ones waste more at the
/// window's edges than they save in reading K and V less often. Measured for D = 128, causal: docs/performance/attention.md.
const FEW_KEYS: usize = 4096;

/// Which of the kernels for rows of queries a sequence is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// The usual one.
    LargeTiles,
    /// One of [`Serves::Masked`], where there is one.
    SmallTiles,
}

impl Wish {
    /// Smaller is better.
    fn rank(self, serves: Serves) -> u32 {
        match (serves, self) {
            (Serves::Masked, Self::SmallTiles) => 0,
            (Serves::Either, _) => 1,
            (Serves::Masked, Self::LargeTiles) => 2,
            // A batch may have sequences of many rows, and a sequence's kernel must not depend on others'.
            (Serves::FewRows | Serves::Blocks, _) => 3,
        }
    }
}

/// What was chosen for a problem: launches, one behind the other.
#[derive(Clone, Debug)]
pub struct AttentionPlan {
    problem: Attention,
    passes: Vec<Pass>,
    combination: Option<Combination>,
}

impl Attention {
    /// Chooses kernels and tiles for a device with `multiprocessors` multiprocessors.
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

    /// As [`plan`](Self::plan), by some of the given kernels.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn plan_among(
        &self,
        configurations: &'static [Configuration],
        multiprocessors: u32,
    ) -> Result<AttentionPlan, AttentionError> {
        self.plan_with(configurations, multiprocessors, OneQuery::default())
    }

    /// As [`plan_among`](Self::plan_among), with other parts: tests reach all cases by few keys.
    #[doc(hidden)]
    pub fn plan_with(
        &self,
        configurations: &'static [Configuration],
        multiprocessors: u32,
        options: OneQuery,
    ) -> Result<AttentionPlan, AttentionError> {
        self.check()?;
        let usable = || configurations.iter().filter(|configuration| self.can_use(configuration));
        let kernel_for = |wish: Wish| {
            usable()
                // The least padding; then by what the rows of the sequence see. Nothing that depends on a batch.
                .min_by_key(|configuration| (configuration.head_dim, wish.rank(configuration.serves)))
                .ok_or(AttentionError::NoKernel { head_dim: self.head_dim, dtype: self.dtype })
        };
        let (large_tiles, small_tiles) = (kernel_for(Wish::LargeTiles)?, kernel_for(Wish::SmallTiles)?);
        let kernel_of = |sequence| match self.wish(sequence) {
            Wish::LargeTiles => large_tiles,
            Wish::SmallTiles => small_tiles,
        };
        let heads = usable()
            .filter(|configuration| configuration.serves == Serves::FewRows)
            .min_by_key(|configuration| configuration.head_dim)
            .and_then(|configuration| HeadTiles::new(self, configuration, options));
        // By its own length alone.
        let heads_of = |sequence| heads.as_ref().filter(|_| self.queries.len_of(sequence) == 1);
        self.check_counts(|sequence| match heads_of(sequence) {
            Some(heads) => (heads.num_tiles(sequence), heads.num_partial_rows(sequence)),
            None => (self.num_query_tiles(kernel_of(sequence).rows, sequence), 0),
        })?;

        let [mut in_large_tiles, mut in_small_tiles, mut by_heads, mut by_parts] = [const { Vec::new() }; 4];
        let mut combination = heads.as_ref().map(HeadTiles::combination);
        for sequence in 0..self.queries.num_sequences() {
            match heads_of(sequence).map(|heads| (heads, heads.kind(sequence))) {
                Some((heads, PassKind::Parts)) => heads.add(sequence, &mut by_parts, combination.as_mut()),
                Some((heads, _)) => heads.add(sequence, &mut by_heads, None),
                None => {
                    let kernel = kernel_of(sequence);
                    let is_large = ptr::eq(kernel, large_tiles);
                    let units = if is_large { &mut in_large_tiles } else { &mut in_small_tiles };
                    self.add_query_tiles(kernel, sequence, units);
                }
            }
        }
        let of_heads = heads.as_ref().map_or(large_tiles, HeadTiles::configuration);
        let passes = [
            (PassKind::Queries, large_tiles, in_large_tiles),
            (PassKind::Queries, small_tiles, in_small_tiles),
            (PassKind::Heads, of_heads, by_heads),
            (PassKind::Parts, of_heads, by_parts),
        ];
        let passes = passes
            .into_iter()
            .filter(|(.., units)| !units.is_empty())
            .map(|(kind, kernel, units)| Pass::new(kind, kernel, units, multiprocessors));
        Ok(AttentionPlan {
            problem: self.clone(),
            passes: passes.collect(),
            combination: combination.filter(|combination| !combination.rows.is_empty()),
        })
    }

    fn can_use(&self, configuration: &Configuration) -> bool {
        kernel_dtype(self.dtype) == Some(configuration.dtype)
            && self.head_dim <= configuration.head_dim
            && configuration.serves != Serves::Blocks
    }

    /// By a sequence's own keys and the window.
    fn wish(&self, sequence: usize) -> Wish {
        let most_seen = self.window.most_keys_of_a_row().unwrap_or(usize::MAX).min(self.keys.len_of(sequence));
        if self.window == Window::FULL || most_seen > FEW_KEYS { Wish::LargeTiles } else { Wish::SmallTiles }
    }

    /// Whether the tiles and the rows of the workspace, of all sequences together, can be numbered.
    pub(super) fn check_counts(&self, of_sequence: impl Fn(usize) -> (u64, u64)) -> Result<(), AttentionError> {
        let (tiles, rows) = match (&self.queries, &self.keys) {
            (Sequences::Equal { batch: 1.., .. }, Sequences::Equal { batch, .. }) => {
                let (tiles, rows) = of_sequence(0);
                (tiles.saturating_mul(*batch as u64), rows.saturating_mul(*batch as u64))
            }
            _ => (0..self.queries.num_sequences()).map(of_sequence).fold((0, 0), |sums: (u64, u64), (tiles, rows)| {
                (sums.0.saturating_add(tiles), sums.1.saturating_add(rows))
            }),
        };
        for (what, found, most) in
            [(AttentionCount::Tiles, tiles, MAX_TILES), (AttentionCount::PartialRows, rows, MAX_PARTIAL_ROWS)]
        {
            if found > most {
                return Err(AttentionError::TooMany { what, found, most });
            }
        }
        Ok(())
    }
}

pub(super) const fn kernel_dtype(dtype: Dtype) -> Option<KernelDtype> {
    match dtype {
        Dtype::Bf16 => Some(KernelDtype::Bf16),
        Dtype::F16 => Some(KernelDtype::F16),
        Dtype::F32 | Dtype::F64 => None,
    }
}

impl AttentionPlan {
    /// One launch, unless it is of no tile.
    pub(super) fn of_pass(problem: Attention, pass: Pass) -> Self {
        let passes = if pass.num_tiles() == 0 { Vec::new() } else { vec![pass] };
        Self { problem, passes, combination: None }
    }

    /// The problem.
    pub fn problem(&self) -> &Attention {
        &self.problem
    }

    /// The launches, each with tiles. Where some are of [`PassKind::Parts`], one more combines the parts.
    pub fn passes(&self) -> &[Pass] {
        &self.passes
    }

    /// Tiles of all passes.
    pub fn num_tiles(&self) -> usize {
        self.passes.iter().map(Pass::num_tiles).sum()
    }

    /// Tiles of keys that tiles meet, all together.
    pub fn num_key_tiles(&self) -> u64 {
        self.passes.iter().map(Pass::num_key_tiles).sum()
    }

    /// Bytes of the workspace that a launch takes.
    pub fn num_workspace_bytes(&self) -> u64 {
        // A row of O in f32, and a log-sum-exp.
        self.combination.as_ref().map_or(0, |parts| parts.num_partial_rows as u64 * (parts.width as u64 + 1) * 4)
    }

    /// What the parts make, where there are parts.
    #[cfg_attr(not(any(test, feature = "gpu", feature = "sim")), allow(dead_code, reason = "only a launch reads it"))]
    pub(super) fn combination(&self) -> Option<&Combination> {
        self.combination.as_ref()
    }
}

impl fmt::Display for AttentionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.passes.is_empty() {
            return f.write_str("nothing to do");
        }
        for (index, pass) in self.passes.iter().enumerate() {
            write!(f, "{}{pass}", if index == 0 { "" } else { "; " })?;
        }
        match &self.combination {
            Some(parts) => {
                write!(f, "; {}: {} rows of {} parts", parts.kernel.spec.name, parts.rows.len(), parts.num_partial_rows)
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod one_query_tests;
#[cfg(test)]
mod tests;
