//! Matrices of optimisation: the conditions of a constrained minimum, programs with long constraints, power flows.

use super::super::random::Stream;
use super::super::{by_rows, purpose};
use super::Size;
use crate::formats::CsrPattern;

/// The conditions of a minimum whose constraint is a differential equation on a cube, controlled at its faces.
///
/// Unknowns: states on the cube's cells, controls on those of its six faces, and multipliers on the cells again. A state
/// is coupled with itself and with the multipliers of the up to 27 cells around it; a control with itself and with the
/// multipliers of the up to 9 cells around its own; a multiplier with itself besides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kkt {
    /// Cells along an edge of the cube.
    pub side: u32,
}

impl Kkt {
    pub fn num_rows(&self) -> usize {
        let side = self.side as usize;
        2 * side.pow(3) + 6 * side.pow(2)
    }

    pub fn pattern(&self) -> CsrPattern {
        let side = self.side as usize;
        let (cells, face) = (side.pow(3), side.pow(2));
        let multipliers = cells + 6 * face;
        by_rows(self.num_rows(), self.num_rows(), |row, columns| {
            if row < cells {
                columns.push(row as u32);
                self.around_cell(row, multipliers, columns);
            } else if row < multipliers {
                columns.push(row as u32);
                let (number, place) = ((row - cells) / face, (row - cells) % face);
                for near in self.around(place % side, place / side) {
                    columns.push((multipliers + self.cell_at_face(number, near)) as u32);
                }
            } else {
                let cell = row - multipliers;
                self.around_cell(cell, 0, columns);
                let at = [cell % side, cell / side % side, cell / face];
                for number in 0..6 {
                    let axis = number / 2;
                    if at[axis] == if number % 2 == 0 { 0 } else { side - 1 } {
                        let [low, high] = [[1, 2], [0, 2], [0, 1]][axis];
                        let controls = cells + number * face;
                        columns.extend(self.around(at[low], at[high]).map(|[x, y]| (controls + y * side + x) as u32));
                    }
                }
                columns.push(row as u32);
            }
        })
    }

    /// The cell of place `[x, y]` of a face.
    fn cell_at_face(&self, number: usize, [x, y]: [usize; 2]) -> usize {
        let side = self.side as usize;
        let end = if number.is_multiple_of(2) { 0 } else { side - 1 };
        let [x, y, z] = [[end, x, y], [x, end, y], [x, y, end]][number / 2];
        (z * side + y) * side + x
    }

    /// Places around one of a square, by their numbers.
    fn around(&self, x: usize, y: usize) -> impl Iterator<Item = [usize; 2]> {
        let near = move |place: usize| place.saturating_sub(1)..(place + 2).min(self.side as usize);
        near(y).flat_map(move |y| near(x).map(move |x| [x, y]))
    }

    fn around_cell(&self, cell: usize, first: usize, columns: &mut Vec<u32>) {
        let side = self.side as usize;
        let z = cell / (side * side);
        for layer in z.saturating_sub(1)..(z + 2).min(side) {
            let places = self.around(cell % side, cell / side % side);
            columns.extend(places.map(|[x, y]| (first + (layer * side + y) * side + x) as u32));
        }
    }
}

/// Dense blocks along the diagonal, each sparsely coupled with the next, and a few rows and columns, the last ones, that
/// reach far. The k-th of these has the longest row's length over sqrt(k).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Arrow {
    /// Rows that reach far.
    pub hubs: u32,
    /// Rows of a block.
    pub block: u32,
}

impl Arrow {
    pub fn pattern(&self, size: Size, seed: u64) -> CsrPattern {
        let (num_rows, hubs, block) = (size.num_rows, self.hubs as usize, self.block as usize);
        let body = num_rows - hubs;
        let reach: Vec<u64> = (1..=hubs).map(|k| (f64::from(size.longest_row) / (k as f64).sqrt()) as u64).collect();
        let is_reached = |hub: usize, row: usize| {
            let draw = Stream::new(seed, purpose::JUNCTIONS, (hub as u64) << 32 | row as u64).below(body as u64);
            draw < reach[hub]
        };
        // Of two blocks one after the other, the share of entries that bring the matrix to their number.
        let in_blocks: usize = (0..body).step_by(block).map(|first| block.min(body - first).pow(2)).sum();
        let between = 2 * block * body.saturating_sub(block);
        let in_hubs = 2 * reach.iter().sum::<u64>() + (hubs * hubs) as u64;
        let share = (size.num_entries as f64 - in_hubs as f64 - in_blocks as f64) / between as f64;
        let is_coupled = |row: usize, col: usize| {
            row / block == col / block || {
                let pair = (row.min(col) as u64) << 32 | row.max(col) as u64;
                Stream::new(seed, purpose::COUPLINGS, pair).unit() < share
            }
        };
        by_rows(num_rows, num_rows, |row, columns| {
            if row < body {
                let first = (row / block).saturating_sub(1) * block;
                let near = first..((row / block + 2) * block).min(body);
                columns.extend(near.filter(|&col| is_coupled(row, col)).map(|col| col as u32));
                let far = (0..hubs).filter(|&hub| is_reached(hub, row));
                columns.extend(far.map(|hub| (body + hub) as u32));
            } else {
                let reached = (0..body).filter(|&col| is_reached(row - body, col));
                columns.extend(reached.chain(body..num_rows).map(|col| col as u32));
            }
        })
    }
}

/// Strips of rows, the first of which are long and share their columns, while the others have a few entries about the
/// diagonal. A strip's columns are two runs, one of which lies about its own rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Strips {
    /// Rows of a strip.
    pub height: u32,
    /// The least length of a long row over the greatest.
    pub least: f64,
}

/// Entries on either side of the diagonal in a strip's short rows.
const SHORT: usize = 3;

impl Strips {
    pub fn pattern(&self, size: Size, seed: u64) -> CsrPattern {
        let (num_rows, height) = (size.num_rows, self.height as usize);
        let longest = (size.longest_row as usize).min(num_rows) as u64;
        let least = (longest as f64 * self.least) as u64;
        let width =
            |strip: usize| least + Stream::new(seed, purpose::JUNCTIONS, strip as u64).below(longest - least + 1);
        let strips = num_rows.div_ceil(height);
        let mean = (0..strips).map(width).sum::<u64>() as f64 / strips as f64;
        let short = (2 * SHORT + 1) as f64;
        let share = (size.num_entries as f64 / num_rows as f64 - short) / (mean - short);
        by_rows(num_rows, num_rows, |row, columns| {
            let strip = row / height;
            // What the fractions of rows add up to is spread over the strips.
            let long_before = |row: usize| (share * row.min(num_rows) as f64) as usize;
            let num_long = long_before((strip + 1) * height) - long_before(strip * height);
            if row % height >= num_long {
                let near = row.saturating_sub(SHORT)..(row + SHORT + 1).min(num_rows);
                columns.extend(near.map(|col| col as u32));
                return;
            }
            let width = width(strip) as usize;
            // Both runs end inside the matrix, and do not meet.
            let room = num_rows - width;
            let own = (strip * height).min(room);
            let other = Stream::new(seed, purpose::LINKS, strip as u64).below(room as u64 + 1) as usize;
            let (first, second) = (own.min(other), own.max(other) + width / 2);
            columns.extend((first..first + width / 2).chain(second..second + width.div_ceil(2)).map(|col| col as u32));
        })
    }
}
