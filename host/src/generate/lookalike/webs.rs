//! Pages and their links.

use super::super::random::Stream;
use super::super::{by_rows, purpose};
use super::Size;
use super::scatter::Scatter;
use super::zipf::Zipf;
use crate::formats::CsrPattern;

/// Draws of a row's missing links before they may lead anywhere.
const ROUNDS: usize = 8;

/// A directed graph of pages. The lengths of rows fall as the inverse square root of their rank, which is a power law of
/// exponent 3. A row's links lead to its own host, whose first pages are linked to most, or anywhere, by a power law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Webs {
    /// Pages of a host; they are numbered one after the other.
    pub host: u32,
    /// The share of links that stay on the host.
    pub local: f64,
    /// Of the power law of the other links: see [`Zipf`].
    pub steepness: u32,
}

impl Webs {
    pub fn pattern(&self, size: Size, seed: u64) -> CsrPattern {
        let num_pages = size.num_rows as u64;
        let lengths = Lengths::new(size);
        let scatter = Scatter::new(num_pages);
        let popular = Zipf::new(num_pages, self.steepness, 1.0);
        by_rows(size.num_rows, size.num_rows, |row, columns| {
            let row = row as u64;
            let length = lengths.at(scatter.place(row)).min(num_pages) as usize;
            let mut stream = Stream::new(seed, purpose::LINKS, row);
            let first = row - row % u64::from(self.host);
            let pages = u64::from(self.host).min(num_pages - first);
            let mut links: Vec<u32> = Vec::with_capacity(length);
            for round in 0.. {
                while links.len() < length {
                    links.push(if round >= ROUNDS {
                        stream.below(num_pages)
                    } else if stream.unit() < self.local {
                        first + stream.below(pages).min(stream.below(pages))
                    } else {
                        // From the other end: the page with the most links is not also the most popular one.
                        num_pages - 1 - scatter.place(popular.rank(stream.unit()))
                    } as u32);
                }
                links.sort_unstable();
                links.dedup();
                if links.len() == length {
                    break;
                }
            }
            columns.extend(links);
        })
    }
}

/// Lengths that fall with the rank r as 1 / sqrt(1 + r / c), c such that they add up to the number of entries.
struct Lengths {
    longest: f64,
    c: f64,
}

impl Lengths {
    fn new(size: Size) -> Self {
        let mut lengths = Self { longest: f64::from(size.longest_row), c: 1.0 };
        let (mut low, mut high) = (1e-9, 1e12);
        for _ in 0..200 {
            lengths.c = f64::sqrt(low * high);
            let total = lengths.longest + lengths.before(size.num_rows as u64) - lengths.before(1);
            if total < size.num_entries as f64 {
                low = lengths.c;
            } else {
                high = lengths.c;
            }
        }
        lengths
    }

    /// The entries of all ranks before `rank`, up to a constant.
    fn before(&self, rank: u64) -> f64 {
        2.0 * self.c * self.longest * (1.0 + (rank as f64 - 0.5) / self.c).sqrt()
    }

    fn at(&self, rank: u64) -> u64 {
        match rank {
            0 => self.longest as u64,
            // What the fractions add up to is spread over the ranks.
            _ => self.before(rank + 1).floor() as u64 - self.before(rank).floor() as u64,
        }
    }
}
