//! Tiles whose rows are queries, and coordinates.

use core::ops::Range;

use kernels_gpu::attention::{Configuration, TileWork};

use crate::ops::attention::schedule::Unit;
use crate::ops::attention::{Attention, Sequences};

impl Attention {
    /// Tiles of a sequence whose rows are its queries, `rows` a tile.
    pub(super) fn num_query_tiles(&self, rows: usize, sequence: usize) -> u64 {
        (self.queries.len_of(sequence).div_ceil(rows) as u64).saturating_mul(self.num_query_heads as u64)
    }

    /// A sequence's tiles, by head of keys, by the extents of the maps' token axes.
    pub(super) fn add_query_tiles(
        &self,
        configuration: &Configuration,
        extents: [usize; 2],
        sequence: usize,
        units: &mut Vec<Unit>,
    ) {
        let group = self.num_query_heads / self.num_key_heads;
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

    /// The tile of a head of a sequence that begins at `row`, by the extents of the maps' token axes.
    ///
    /// All numbers fit, since [`check_sizes`](Self::check) has passed.
    fn tile(
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
        let tiles = key_tiles(first..end, num_keys, configuration.keys);
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

/// The tiles of `keys` keys that hold the keys that are seen, of `num_keys`.
///
/// A tile of O meets at least one. Behind the sequence's end there are zeros, whatever the keys are.
pub(super) fn key_tiles(seen: Range<usize>, num_keys: usize, keys: usize) -> Range<usize> {
    match seen.start < seen.end {
        true => seen.start / keys..seen.end.div_ceil(keys),
        false => num_keys.div_ceil(keys)..num_keys.div_ceil(keys) + 1,
    }
}

/// Token and outer coordinate of token `at` of a sequence, in the maps that `launch` makes: out of bounds from the sequence's
/// end on.
///
/// The token axis of packed sequences has as many tokens as the longest sequence (`extent`), and the outer one as many places
/// as there are tokens and one: there, `(extent - len + at, start + len)` is the token at `start + at`.
pub(super) fn coordinates(sequences: &Sequences, extent: usize, sequence: usize, at: usize) -> (i32, i32) {
    let outer = match sequences {
        Sequences::Equal { .. } => sequence,
        Sequences::Packed { offsets } => offsets[sequence + 1],
    };
    // Where there is no token at all, the axis still has one.
    ((extent - sequences.len_of(sequence) + at) as i32, outer as i32)
}

/// The extent of the token axis of the maps.
pub(in crate::ops::attention) fn token_extent(sequences: &Sequences) -> usize {
    sequences.longest().max(1)
}
