//! Tiles whose rows are queries, and coordinates.

use core::ops::Range;

use kernels_gpu::attention::{Configuration, SHIFT, TileWork};

use crate::ops::attention::schedule::Unit;
use crate::ops::attention::{Attention, Sequences};

impl Attention {
    /// Tiles of a sequence whose rows are its queries, `rows` a tile.
    pub(in crate::ops::attention) fn num_query_tiles(&self, rows: usize, sequence: usize) -> u64 {
        (self.queries.len_of(sequence).div_ceil(rows) as u64).saturating_mul(self.num_query_heads as u64)
    }

    /// A sequence's tiles, by head of keys.
    pub(super) fn add_query_tiles(&self, configuration: &Configuration, sequence: usize, units: &mut Vec<Unit>) {
        let group = self.num_query_heads / self.num_key_heads;
        let bytes = 2 * self.keys.len_of(sequence) as u64 * (self.head_dim * self.dtype.size_bytes()) as u64;
        for key_head in 0..self.num_key_heads {
            let heads = key_head * group..(key_head + 1) * group;
            let rows = (0..self.queries.len_of(sequence)).step_by(configuration.rows);
            let tiles: Vec<TileWork> = heads
                .flat_map(|head| rows.clone().map(move |row| (head, row)))
                .map(|(head, row)| self.tile(configuration, sequence, head, row))
                .collect();
            if !tiles.is_empty() {
                units.push(Unit { tiles, bytes });
            }
        }
    }

    /// The tile of a head of a sequence that begins at `row`.
    ///
    /// All numbers fit, since [`check_sizes`](Self::check) has passed.
    pub(in crate::ops::attention) fn tile(
        &self,
        configuration: &Configuration,
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
        let (query_token, query_outer) = coordinates(&self.queries, sequence, row);
        let (key_token, key_outer) = coordinates(&self.keys, sequence, 0);
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

/// Token and outer coordinate of token `at` of a sequence, in the maps that `launch` makes, as [`TileWork`] says: out of bounds
/// from the sequence's end on.
pub(super) fn coordinates(sequences: &Sequences, sequence: usize, at: usize) -> (i32, i32) {
    match sequences {
        // Where there is no token, the map's axis has one all the same, which is not meant.
        Sequences::Equal { len, .. } => ((at + usize::from(*len == 0)) as i32, sequence as i32),
        Sequences::Packed { offsets } => {
            (SHIFT - sequences.len_of(sequence) as i32 + at as i32, offsets[sequence + 1] as i32)
        }
        // A launch makes the outer one, from the sequence.
        Sequences::WithRoom { lengths, .. } => (SHIFT - lengths[sequence] as i32 + at as i32, sequence as i32),
    }
}
