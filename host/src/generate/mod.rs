//! Generated matrices: the same specification and seed give the same matrix, on any number of threads.
//!
//! Values are multiples of 2^-23, uniform in [-1, 1).

mod lookalike;
mod random;
mod spec;

pub use lookalike::{Lookalike, LookalikeKind};
pub use spec::{Generator, GeneratorError, GeneratorSpec};

use rayon::prelude::*;

use crate::formats::{BlockShape, Csr, CsrPattern};
use random::{Stream, distinct};

/// What random numbers are drawn for.
mod purpose {
    pub(super) const VALUES: u64 = 1;
    pub(super) const EDGES: u64 = 2;
    pub(super) const BLOCKS: u64 = 3;
    pub(super) const ELEMENTS: u64 = 4;
    pub(super) const COUPLINGS: u64 = 5;
    pub(super) const JUNCTIONS: u64 = 6;
    pub(super) const LINKS: u64 = 7;
}

/// Rows that one task generates.
const ROWS_PER_TASK: usize = 1024;

/// Unknowns of a node in [`fem`]: displacements along three axes.
const DOFS: usize = 3;

/// A stiffness matrix as three-dimensional finite elements give it: the nodes of a cubic grid, numbered along one axis
/// after the other, three unknowns a node, and a dense 3 x 3 block for each of a node's up to 27 neighbours. Pattern and
/// values are symmetric. Inner rows have 81 entries.
pub fn fem(num_rows: u32, seed: u64) -> Csr<f32> {
    let num_rows = num_rows as usize;
    let side = (1..).find(|side: &usize| side.pow(3) * DOFS >= num_rows).unwrap_or(1);
    let pattern = by_rows(num_rows, num_rows, |row, columns| {
        let node = row / DOFS;
        let [x, y, z] = [node % side, node / side % side, node / (side * side)];
        let around = |place: usize| place.saturating_sub(1)..(place + 2).min(side);
        for z in around(z) {
            for y in around(y) {
                let line = (z * side + y) * side;
                let unknowns = (line + around(x).start) * DOFS..(line + around(x).end) * DOFS;
                // The last layer of the grid may be cut off.
                columns.extend((unknowns.start..unknowns.end.min(num_rows)).map(|column| column as u32));
            }
        }
    });
    with_values(pattern, symmetric_position, seed)
}

/// The adjacency matrix of a power-law graph: R-MAT with 2^`scale` nodes and `edges_per_row` draws a node, whose
/// quadrant probabilities are 0.57, 0.19, 0.19 and 0.05. An edge drawn twice is one entry.
///
/// Source: Chakrabarti, Zhan and Faloutsos, "R-MAT: a recursive model for graph mining", SDM 2004; the probabilities
/// are those of the Graph500 benchmark.
///
/// `scale` is at most 31.
pub fn rmat(scale: u32, edges_per_row: u32, seed: u64) -> Csr<f32> {
    let size = 1_usize << scale.min(31);
    let mut edges: Vec<u64> = (0..size as u64)
        .into_par_iter()
        .flat_map_iter(|index| {
            let mut stream = Stream::new(seed, purpose::EDGES, index);
            (0..edges_per_row).map(move |_| rmat_edge(scale.min(31), &mut stream))
        })
        .collect();
    edges.par_sort_unstable();
    edges.dedup();
    let pattern = from_positions(size, size, &edges, |edge| ((edge >> 32) as usize, edge as u32));
    with_values(pattern, position, seed)
}

/// One edge: its row in the upper half, its column in the lower.
fn rmat_edge(scale: u32, stream: &mut Stream) -> u64 {
    let (mut row, mut col) = (0_u64, 0_u64);
    for _ in 0..scale {
        let percent = stream.below(100);
        let (down, right) = match percent {
            0..57 => (0, 0),
            57..76 => (0, 1),
            76..95 => (1, 0),
            _ => (1, 1),
        };
        (row, col) = (row << 1 | down, col << 1 | right);
    }
    row << 32 | col
}

/// A full band: every entry at most `half_bandwidth` off the diagonal.
pub fn banded(num_rows: u32, half_bandwidth: u32, seed: u64) -> Csr<f32> {
    let size = num_rows as usize;
    let pattern = by_rows(size, size, |row, columns| {
        let end = (row + half_bandwidth as usize + 1).min(size);
        columns.extend((row.saturating_sub(half_bandwidth as usize)..end).map(|column| column as u32));
    });
    with_values(pattern, position, seed)
}

/// Dense blocks at random places: of all blocks of shape `block`, exactly `density` (rounded to whole blocks; 0 to 1),
/// every choice equally likely. Blocks at the border are cut off there.
pub fn blocks(num_rows: u32, num_cols: u32, block: BlockShape, density: f64, seed: u64) -> Csr<f32> {
    let (num_rows, num_cols) = (num_rows as usize, num_cols as usize);
    let (block_rows, block_cols) = (num_rows.div_ceil(block.rows), num_cols.div_ceil(block.cols));
    let chosen = choose(seed, purpose::BLOCKS, block_rows as u64 * block_cols as u64, density);
    let width = block_cols.max(1) as u64;
    let place = |number: u64| ((number / width) as usize, (number % width) as u32);
    let coarse = from_positions(block_rows, block_cols, &chosen, place);
    let pattern = by_rows(num_rows, num_cols, |row, columns| {
        let block_row = row / block.rows;
        let begin = coarse.row_offsets()[block_row] as usize;
        let end = coarse.row_offsets()[block_row + 1] as usize;
        for &block_col in &coarse.col_indices()[begin..end] {
            let first = block_col as usize * block.cols;
            columns.extend((first..(first + block.cols).min(num_cols)).map(|column| column as u32));
        }
    });
    with_values(pattern, position, seed)
}

/// Single entries at random places: exactly `density` of all elements (rounded to whole elements; 0 to 1), every
/// choice equally likely.
pub fn uniform(num_rows: u32, num_cols: u32, density: f64, seed: u64) -> Csr<f32> {
    let chosen = choose(seed, purpose::ELEMENTS, u64::from(num_rows) * u64::from(num_cols), density);
    let width = u64::from(num_cols.max(1));
    let place = |number: u64| ((number / width) as usize, (number % width) as u32);
    let pattern = from_positions(num_rows as usize, num_cols as usize, &chosen, place);
    with_values(pattern, position, seed)
}

/// A share of the numbers under `total`.
fn choose(seed: u64, purpose: u64, total: u64, density: f64) -> Vec<u64> {
    let count = (total as f64 * density.clamp(0.0, 1.0)).round() as u64;
    distinct(seed, purpose, total, count.min(total))
}

/// The number that an element's value is drawn by.
fn position(row: usize, col: usize) -> u64 {
    (row as u64) << 32 | col as u64
}

/// The same for an element and its mirror image.
fn symmetric_position(row: usize, col: usize) -> u64 {
    position(row.min(col), row.max(col))
}

/// A pattern whose rows are listed one by one, ascending.
fn by_rows(num_rows: usize, num_cols: usize, list: impl Fn(usize, &mut Vec<u32>) + Sync) -> CsrPattern {
    let tasks: Vec<(Vec<u64>, Vec<u32>)> = (0..num_rows.div_ceil(ROWS_PER_TASK))
        .into_par_iter()
        .map(|task| {
            let (mut ends, mut columns) = (Vec::new(), Vec::new());
            for row in task * ROWS_PER_TASK..((task + 1) * ROWS_PER_TASK).min(num_rows) {
                list(row, &mut columns);
                ends.push(columns.len() as u64);
            }
            (ends, columns)
        })
        .collect();
    let mut row_offsets = Vec::with_capacity(num_rows + 1);
    row_offsets.push(0);
    let mut col_indices = Vec::with_capacity(tasks.iter().map(|(_, columns)| columns.len()).sum());
    for (ends, columns) in tasks {
        let base = col_indices.len() as u64;
        row_offsets.extend(ends.iter().map(|end| base + end));
        col_indices.extend(columns);
    }
    CsrPattern::from_checked(num_rows, num_cols, row_offsets, col_indices)
}

/// A pattern from ascending positions, each of which `place` takes apart into row and column.
fn from_positions(
    num_rows: usize,
    num_cols: usize,
    positions: &[u64],
    place: impl Fn(u64) -> (usize, u32) + Sync,
) -> CsrPattern {
    let mut row_offsets = vec![0; num_rows + 1];
    for &position in positions {
        row_offsets[place(position).0 + 1] += 1;
    }
    crate::formats::accumulate(&mut row_offsets);
    let col_indices = positions.par_iter().map(|&position| place(position).1).collect();
    CsrPattern::from_checked(num_rows, num_cols, row_offsets, col_indices)
}

/// Draws the value of each entry by the number that `key` makes of its place.
fn with_values(pattern: CsrPattern, key: impl Fn(usize, usize) -> u64 + Sync, seed: u64) -> Csr<f32> {
    let value = |row: usize, col: u32| Stream::new(seed, purpose::VALUES, key(row, col as usize)).signed_unit();
    let offsets = pattern.row_offsets();
    let values = (0..pattern.num_rows())
        .into_par_iter()
        .flat_map_iter(|row| {
            let columns = &pattern.col_indices()[offsets[row] as usize..offsets[row + 1] as usize];
            columns.iter().map(move |&col| value(row, col))
        })
        .collect();
    Csr::from_checked(pattern, values)
}
