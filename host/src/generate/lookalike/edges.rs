//! Undirected graphs drawn edge by edge: social networks, circuits and Kronecker graphs.

use rayon::prelude::*;

use super::super::random::Stream;
use super::super::{from_positions, purpose, rmat_edge};
use super::scatter::Scatter;
use super::zipf::Zipf;
use super::{Diagonal, Size};
use crate::formats::CsrPattern;

/// Draws of one stream.
const DRAWS_PER_STREAM: u64 = 4096;
/// Rounds after which whatever edges are still missing are left out.
const MAX_ROUNDS: u64 = 64;

/// A graph whose nodes attract edges by a power law, and have neighbours nearby besides.
///
/// Source of the first part: Chung and Lu, "Connected components in random graphs with given expected degree sequences",
/// 2002.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Edges {
    /// Of the power law: see [`Zipf`].
    pub steepness: u32,
    /// The share of edges to a node nearby, whatever it attracts,
    pub local: f64,
    /// that is at most so far away.
    pub span: u32,
    /// Whether each node has an entry of its own.
    pub diagonal: Diagonal,
}

impl Edges {
    pub fn pattern(&self, size: Size, seed: u64) -> CsrPattern {
        let num_nodes = size.num_rows as u64;
        let own = if self.diagonal == Diagonal::Stored { num_nodes } else { 0 };
        let num_edges = size.num_entries.saturating_sub(own) / 2;
        let far = num_edges as f64 * (1.0 - self.local);
        let nearby = 2.0 * num_edges as f64 * self.local / num_nodes as f64;
        let longest = f64::from(size.longest_row) - nearby - if own > 0 { 1.0 } else { 0.0 };
        let weights = Zipf::with_largest(num_nodes, self.steepness, far, longest);
        let scatter = Scatter::new(num_nodes);
        let span = u64::from(self.span).min(num_nodes - 1);
        let pairs = distinct_pairs(seed, num_edges, |stream| {
            if stream.unit() < self.local {
                let low = stream.below(num_nodes - span);
                return pair(low, low + 1 + stream.below(span));
            }
            let mut draw = || scatter.place(weights.rank(stream.unit()));
            pair(draw(), draw())
        });
        symmetric(size.num_rows, &pairs, self.diagonal)
    }
}

/// A Kronecker graph as Graph500 draws it, with its nodes in random order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kronecker {
    /// The binary logarithm of the number of nodes.
    pub scale: u32,
}

impl Kronecker {
    pub fn pattern(&self, num_entries: u64, seed: u64) -> CsrPattern {
        let num_nodes = 1 << self.scale;
        let scatter = Scatter::new(num_nodes);
        let pairs = distinct_pairs(seed, num_entries / 2, |stream| {
            let edge = rmat_edge(self.scale, stream);
            pair(scatter.place(edge >> 32), scatter.place(edge & 0xffff_ffff))
        });
        symmetric(num_nodes as usize, &pairs, Diagonal::Absent)
    }
}

/// The lower node in the upper half; `None` where both are the same.
fn pair(left: u64, right: u64) -> Option<u64> {
    (left != right).then_some(left.min(right) << 32 | left.max(right))
}

/// About `count` different edges, ascending: at most one in a thousand is missing, unless there are hardly as many.
fn distinct_pairs(seed: u64, count: u64, draw: impl Fn(&mut Stream) -> Option<u64> + Sync) -> Vec<u64> {
    let mut pairs: Vec<u64> = Vec::new();
    for round in 0..MAX_ROUNDS {
        let missing = count - pairs.len() as u64;
        if missing * 1000 <= count {
            break;
        }
        pairs.par_extend((0..missing.div_ceil(DRAWS_PER_STREAM)).into_par_iter().flat_map_iter(|chunk| {
            let mut stream = Stream::new(seed, purpose::LINKS ^ round << 8, chunk);
            let length = DRAWS_PER_STREAM.min(missing - chunk * DRAWS_PER_STREAM);
            let draw = &draw;
            (0..length).filter_map(move |_| draw(&mut stream))
        }));
        pairs.par_sort_unstable();
        pairs.dedup();
    }
    pairs
}

/// Both entries of each edge, and the diagonal where it is stored.
fn symmetric(num_nodes: usize, pairs: &[u64], diagonal: Diagonal) -> CsrPattern {
    let own = if diagonal == Diagonal::Stored { num_nodes as u64 } else { 0 };
    let mut positions: Vec<u64> = Vec::with_capacity(2 * pairs.len() + own as usize);
    positions.extend_from_slice(pairs);
    positions.par_extend(pairs.par_iter().map(|&pair| pair.rotate_left(32)));
    positions.par_extend((0..own).into_par_iter().map(|node| node << 32 | node));
    positions.par_sort_unstable();
    from_positions(num_nodes, num_nodes, &positions, |position| ((position >> 32) as usize, position as u32))
}
