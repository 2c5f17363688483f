//! Random numbers that depend on a seed and a position alone, so that threads need not share anything.

use rayon::prelude::*;

/// The finalizer of SplitMix64: a bijection of 64 bits in which each input bit stirs all output bits.
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
pub(super) const fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The increment of SplitMix64: the odd number nearest to 2^64 over the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A SplitMix64 sequence.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    state: u64,
}

impl Stream {
    /// The sequence number `index` of a seed. `purpose` keeps what is drawn for one use apart from other uses.
    pub(super) const fn new(seed: u64, purpose: u64, index: u64) -> Self {
        Self { state: mix(mix(mix(seed.wrapping_add(GOLDEN)) ^ purpose).wrapping_add(GOLDEN) ^ index) }
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A number under `bound`. The bias is under `bound` / 2^64.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() as u128 * bound as u128) >> 64) as u64
    }

    /// A multiple of 2^-53 in [0, 1), each equally likely.
    pub(super) const fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A multiple of 2^-23 in [-1, 1), each equally likely.
    pub(super) const fn signed_unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// Draws each use once per this many positions.
const POSITIONS_PER_STREAM: u64 = 4096;

/// `count` different numbers under `total`, ascending; every choice of them is equally likely. `count` is at most
/// `total`.
pub(super) fn distinct(seed: u64, purpose: u64, total: u64, count: u64) -> Vec<u64> {
    debug_assert!(count <= total);
    if count > total / 2 {
        return complement(&distinct(seed, purpose, total, total - count), total);
    }
    let mut chosen: Vec<u64> = Vec::new();
    let mut round = 0;
    while (chosen.len() as u64) < count {
        // At most half of all numbers are taken, so each round finds at least about half of what is missing.
        let missing = count - chosen.len() as u64;
        chosen.par_extend((0..missing.div_ceil(POSITIONS_PER_STREAM)).into_par_iter().flat_map_iter(|chunk| {
            let mut stream = Stream::new(seed, mix(purpose) ^ round, chunk);
            let length = POSITIONS_PER_STREAM.min(missing - chunk * POSITIONS_PER_STREAM);
            (0..length).map(move |_| stream.below(total))
        }));
        chosen.par_sort_unstable();
        chosen.dedup();
        round += 1;
    }
    chosen
}

/// The numbers under `total` that `holes`, ascending, lacks.
fn complement(holes: &[u64], total: u64) -> Vec<u64> {
    let mut numbers = Vec::with_capacity((total - holes.len() as u64) as usize);
    let mut next = 0;
    for &hole in holes {
        numbers.extend(next..hole);
        next = hole + 1;
    }
    numbers.extend(next..total);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_numbers_are_as_many_as_asked_for() {
        for (total, count) in [(0, 0), (1, 1), (10, 0), (10, 5), (10, 9), (10, 10), (100_000, 30_000), (u64::MAX, 9000)]
        {
            let chosen = distinct(1, 2, total, count);
            assert_eq!(chosen.len() as u64, count);
            assert!(chosen.is_sorted_by(|a, b| a < b) && chosen.iter().all(|&number| number < total));
        }
    }

    #[test]
    fn numbers_are_spread_evenly() {
        let mut counts = [0_u32; 8];
        for seed in 0..2000 {
            for number in distinct(seed, 0, 8, 3) {
                counts[number as usize] += 1;
            }
        }
        // 750 each; the standard deviation is about 22.
        assert!(counts.iter().all(|&count| (640..860).contains(&count)), "{counts:?}");
    }

    #[test]
    fn values_fill_the_interval() {
        let mut stream = Stream::new(7, 0, 0);
        let values: Vec<f32> = (0..100_000).map(|_| stream.signed_unit()).collect();
        assert!(values.iter().all(|value| (-1.0..1.0).contains(value)));
        let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / 1e5;
        let square = values.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.01 && (square - 1.0 / 3.0).abs() < 0.01, "{mean} {square}");
    }
}
