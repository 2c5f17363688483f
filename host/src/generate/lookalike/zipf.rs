//! Power laws that are drawn from by multiplication alone, so that every machine draws the same.

/// Ranks 0, 1, 2, ... with weights that fall as (rank + c)^-s, s = 1 - 1 / `steepness`.
///
/// Where they are the expected degrees of a graph, the degrees follow a power law of exponent 1 + 1 / s: 3 for a steepness
/// of 2, 2.5 for 3, 2.33 for 4 and 2.25 for 5.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zipf {
    num_ranks: u64,
    steepness: u32,
    /// The `steepness`-th root of c.
    start: f64,
    /// That of the number of ranks and c.
    end: f64,
}

impl Zipf {
    pub fn new(num_ranks: u64, steepness: u32, start: f64) -> Self {
        let end = root(num_ranks as f64 + power(start, steepness), steepness);
        Self { num_ranks, steepness, start, end }
    }

    /// The law under which, of `num_edges` edges whose ends are drawn from it, rank 0 has about `largest` different ones.
    /// The steepest, if none has as many.
    pub fn with_largest(num_ranks: u64, steepness: u32, num_edges: f64, largest: f64) -> Self {
        let (mut low, mut high) = (0.0, 4.0 * root(num_ranks as f64, steepness));
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            if Self::new(num_ranks, steepness, middle).expected_degree(num_edges) > largest {
                low = middle;
            } else {
                high = middle;
            }
        }
        // Rounded far above the last place: the roots may differ there from machine to machine.
        Self::new(num_ranks, steepness, (high * 65536.0).round() / 65536.0)
    }

    /// Different neighbours of rank 0 among `num_edges` edges.
    fn expected_degree(&self, num_edges: f64) -> f64 {
        let draws = 2.0 * num_edges * self.mass(0.0, 1.0);
        let (mut begin, mut degree) = (0.0, 0.0);
        while begin < self.num_ranks as f64 {
            let end = (begin * 1.25 + 1.0).floor().min(self.num_ranks as f64);
            let ranks = end - begin;
            degree += ranks * -(-draws * self.mass(begin, end) / ranks).exp_m1();
            begin = end;
        }
        degree
    }

    /// The probability of a rank from `begin` to `end`.
    fn mass(&self, begin: f64, end: f64) -> f64 {
        let shift = power(self.start, self.steepness);
        let at = |rank: f64| root(rank + shift, self.steepness);
        (at(end) - at(begin)) / (self.end - self.start)
    }

    /// The rank that `uniform`, from 0 to 1, falls on.
    pub fn rank(&self, uniform: f64) -> u64 {
        let at = self.start + uniform * (self.end - self.start);
        let rank = power(at, self.steepness) - power(self.start, self.steepness);
        (rank as u64).min(self.num_ranks - 1)
    }
}

fn power(base: f64, exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}

fn root(radicand: f64, degree: u32) -> f64 {
    radicand.powf(1.0 / f64::from(degree))
}
