//! Nodes on a lattice, coupled with others near them: finite elements, grids and roads.

use super::super::random::Stream;
use super::super::{by_rows, purpose};
use super::{Diagonal, Size};
use crate::formats::CsrPattern;

/// Nodes that couple further than the others, where parts of a body meet or roads cross.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Junctions {
    /// One node in so many, at random.
    pub every: u32,
    /// The squared distance to which they couple.
    pub reach: u32,
}

/// A body of finite elements, or a grid.
///
/// The nodes fill a box, numbered along x, then y, then z: the band that an order by Cuthill and McKee gives a long body.
/// All unknowns of two coupled nodes are coupled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mesh {
    /// Unknowns of a node.
    pub unknowns: u32,
    /// Nodes along x and y; z takes as many as are left. [`Mesh::FLAT`] as the second makes a surface.
    pub sides: [u32; 2],
    /// Nodes up to this squared distance are coupled.
    pub full: u32,
    /// Of the pairs further apart, up to this squared distance, as many are coupled as bring the matrix to its number
    /// of entries.
    pub partial: u32,
    /// Where parts meet.
    pub junctions: Option<Junctions>,
}

impl Mesh {
    /// A side that never ends.
    pub const FLAT: u32 = u32::MAX;

    pub fn pattern(&self, size: Size, seed: u64) -> CsrPattern {
        let share = |distance| match distance {
            _ if distance <= self.full => Share::All,
            _ if distance <= self.partial => Share::Rest,
            _ => Share::None,
        };
        let lattice = Lattice::new(size, self.unknowns, self.sides, self.junctions, Diagonal::Stored, seed);
        lattice.pattern(self.partial, |[x, y, z]| share((x * x + y * y + z * z) as u32))
    }
}

/// A network of roads: crossings on a surface, most of which lie on a road along x, with roads across it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Roads {
    /// Crossings along x.
    pub side: u32,
    /// The share of neighbours along x that a road connects; across it, as many as bring the matrix to its number of
    /// entries.
    pub along: f64,
    /// The larger crossings.
    pub junctions: Junctions,
}

impl Roads {
    pub fn pattern(&self, size: Size, seed: u64) -> CsrPattern {
        let sides = [self.side, Mesh::FLAT];
        let lattice = Lattice::new(size, 1, sides, Some(self.junctions), Diagonal::Absent, seed);
        lattice.pattern(1, |step| match step {
            [-1 | 1, 0, 0] => Share::Part(self.along),
            [0, -1 | 1, 0] => Share::Rest,
            _ => Share::None,
        })
    }
}

/// Which pairs of nodes at one offset are coupled, whether or not they are junctions.
#[derive(Clone, Copy)]
enum Share {
    All,
    Part(f64),
    Rest,
    None,
}

/// An offset between nodes.
struct Offset {
    step: [i64; 3],
    /// Its part in the numbering.
    distance: i64,
    /// The share of pairs that are coupled anyway.
    share: f64,
    joins: bool,
}

struct Lattice {
    size: Size,
    num_nodes: i64,
    unknowns: usize,
    sides: [i64; 2],
    junctions: Option<Junctions>,
    diagonal: Diagonal,
    seed: u64,
}

impl Lattice {
    fn new(
        size: Size,
        unknowns: u32,
        sides: [u32; 2],
        junctions: Option<Junctions>,
        diagonal: Diagonal,
        seed: u64,
    ) -> Self {
        let unknowns = unknowns as usize;
        let num_nodes = size.num_rows.div_ceil(unknowns) as i64;
        Self { size, num_nodes, unknowns, sides: sides.map(i64::from), junctions, diagonal, seed }
    }

    /// Couples nodes up to squared distance `reach` by their share, and junctions besides.
    fn pattern(&self, reach: u32, share: impl Fn([i64; 3]) -> Share) -> CsrPattern {
        let offsets = self.offsets(reach, share);
        let (num_rows, unknowns) = (self.size.num_rows, self.unknowns);
        by_rows(num_rows, num_rows, |row, columns| {
            let node = (row / unknowns) as i64;
            let place = self.place(node);
            for offset in &offsets {
                if let Some(other) = self.neighbour(node, place, offset)
                    && self.is_coupled(node, other, offset)
                {
                    let first = other as usize * unknowns;
                    columns.extend((first..(first + unknowns).min(num_rows)).map(|column| column as u32));
                }
            }
        })
    }

    /// The offsets to nodes that may be coupled, by the numbers of those nodes, ascending.
    fn offsets(&self, reach: u32, share: impl Fn([i64; 3]) -> Share) -> Vec<Offset> {
        let joined = self.junctions.map_or(0, |junctions| junctions.reach);
        let furthest = i64::from(reach.max(joined));
        let steps = || -furthest.isqrt()..=furthest.isqrt();
        let all = steps().flat_map(|z| steps().flat_map(move |y| steps().map(move |x| [x, y, z])));
        let met = self.junctions.map_or(0.0, |junctions| 1.0 - (1.0 - 1.0 / f64::from(junctions.every)).powi(2));
        let mut offsets = Vec::new();
        // Pairs of nodes that are wanted in all, and what they would be with none or all of the rest.
        let wanted = self.size.num_entries as f64 / (self.unknowns * self.unknowns) as f64;
        let (mut least, mut rest) = (0.0, 0.0);
        for step in all {
            let [x, y, z] = step;
            let squared = x * x + y * y + z * z;
            let distance = x + self.sides[0] * (y + self.sides[1] * z);
            let joins = squared > 0 && squared <= i64::from(joined);
            let count = self.count(step, distance);
            let base = match share(step) {
                _ if squared == 0 && self.diagonal == Diagonal::Absent => continue,
                _ if squared == 0 => 1.0,
                Share::All => 1.0,
                Share::Part(part) => part,
                Share::Rest => -1.0,
                Share::None if joins => 0.0,
                Share::None => continue,
            };
            let met = if joins { met } else { 0.0 };
            least += count * (met + (1.0 - met) * base.max(0.0));
            rest += if base < 0.0 { count * (1.0 - met) } else { 0.0 };
            offsets.push(Offset { step, distance, share: base, joins });
        }
        let share_of_rest = if rest > 0.0 { ((wanted - least) / rest).clamp(0.0, 1.0) } else { 0.0 };
        for offset in offsets.iter_mut().filter(|offset| offset.share < 0.0) {
            offset.share = share_of_rest;
        }
        offsets
    }

    fn place(&self, node: i64) -> [i64; 2] {
        [node % self.sides[0], node / self.sides[0] % self.sides[1]]
    }

    /// How many nodes have a neighbour at this offset.
    fn count(&self, step: [i64; 3], distance: i64) -> f64 {
        let ([x, y, _], distance) = if distance < 0 { (step.map(|way| -way), -distance) } else { (step, distance) };
        let [width, height] = self.sides;
        let (in_x, in_y) = (0.max(-x)..width - 0.max(x), 0.max(-y)..height - 0.max(y));
        let length = |range: &core::ops::Range<i64>, end: i64| 0.max(range.end.min(end) - range.start);
        // Nodes before the first whose neighbour would be past the last: layers, lines of the next layer, nodes of the
        // next line.
        let nodes = 0.max(self.num_nodes - distance);
        let (layers, left) = (nodes / (width * height), nodes % (width * height));
        let (lines, left) = (left / width, left % width);
        let in_line = length(&in_x, width);
        let mut count = (layers * length(&in_y, height) + length(&in_y, lines)) * in_line;
        if in_y.contains(&lines) {
            count += length(&in_x, left);
        }
        count as f64
    }

    fn neighbour(&self, node: i64, [x, y]: [i64; 2], offset: &Offset) -> Option<i64> {
        let other = node + offset.distance;
        let inside = (0..self.sides[0]).contains(&(x + offset.step[0]))
            && (0..self.sides[1]).contains(&(y + offset.step[1]))
            && (0..self.num_nodes).contains(&other);
        inside.then_some(other)
    }

    fn is_coupled(&self, node: i64, other: i64, offset: &Offset) -> bool {
        let by_chance = || {
            let pair = (node.min(other) as u64) << 32 | node.max(other) as u64;
            Stream::new(self.seed, purpose::COUPLINGS, pair).unit() < offset.share
        };
        offset.share >= 1.0
            || offset.share > 0.0 && by_chance()
            || offset.joins && (self.is_junction(node) || self.is_junction(other))
    }

    fn is_junction(&self, node: i64) -> bool {
        self.junctions.is_some_and(|junctions| {
            Stream::new(self.seed, purpose::JUNCTIONS, node as u64).below(junctions.every.into()) == 0
        })
    }
}
