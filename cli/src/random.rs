//! Random numbers that a seed repeats on every machine, also when drawn in parallel.

use hopper_sparse::Element;
use hopper_sparse::formats::{Dense, Layout};

/// SplitMix64 (Steele, Lea and Flood, 2014): a counter, mixed.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// Numbers that depend on `seed` alone.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(INCREMENT);
        mix(self.state)
    }

    /// A number under `limit`, or 0 where `limit` is 0. The bias is at most `limit` in 2^64.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(limit)) >> 64) as u64
    }

    /// Puts `items` into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end as u64 + 1) as usize);
        }
    }

    /// Number `index` of the stream `stream`: uniform in [-1, 1).
    pub fn at(stream: u64, index: u64) -> f32 {
        let bits = mix(stream.wrapping_add(index.wrapping_mul(INCREMENT)));
        // The upper 24 bits: each value is a whole number of 2^-23, exact in f32.
        (bits >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// Number `index` of the stream `stream`: nearly normal, with mean 0 and variance 1, and never 0.
    ///
    /// The sum of four uniform numbers, all of one draw: many times cheaper than [`normal_at`], for matrices of 10^8 elements.
    pub fn bell_at(stream: u64, index: u64) -> f32 {
        let bits = mix(stream.wrapping_add(index.wrapping_mul(INCREMENT)));
        let sum: u64 = (0..4).map(|field| bits >> (16 * field) & 0xffff).sum();
        // Odd, from -262,139 to 262,141; the variance of each field, 2^32 / 12, counts four times, and four times for the factor 2.
        let odd = 2 * sum as i64 - 262_139;
        odd as f32 / (65_536.0 * (4.0_f32 / 3.0).sqrt())
    }
}

/// Number `index` of the stream `stream`: normal, with mean 0 and variance 1 (Box and Muller, 1958).
pub fn normal_at(stream: u64, index: u64) -> f32 {
    // In (0, 1], so that the logarithm is finite; the angle in turns.
    let radius = (Random::at(stream, 2 * index) + 1.0) / 2.0 + f32::EPSILON / 4.0;
    let angle = Random::at(stream, 2 * index + 1);
    (-2.0 * radius.ln()).sqrt() * (angle * core::f32::consts::PI).cos()
}

/// A matrix of values spread evenly over [-1, 1), each a function of seed, row and column alone.
pub fn dense<T: Element>(num_rows: usize, num_cols: usize, layout: Layout, seed: u64) -> Dense<T> {
    Dense::from_fn(num_rows, num_cols, layout, |row, col| {
        let position = (row as u64) << 32 | col as u64;
        let bits = mix(seed.wrapping_mul(INCREMENT).wrapping_add(mix(position)));
        T::from_f64((bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0)
    })
}

/// The finalizer of SplitMix64.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fill_the_interval_evenly() {
        let values: Vec<f32> = (0..10_000).map(|index| Random::at(3, index)).collect();
        assert!(values.iter().all(|value| (-1.0..1.0).contains(value)));
        let mean: f32 = values.iter().sum::<f32>() / values.len() as f32;
        let square: f32 = values.iter().map(|value| value * value).sum::<f32>() / values.len() as f32;
        assert!(mean.abs() < 0.03, "{mean}");
        assert!((square - 1.0 / 3.0).abs() < 0.02, "{square}");
    }

    #[test]
    fn normal_values_have_the_moments_of_their_kind() {
        let values: Vec<f64> = (0..20_000).map(|index| f64::from(normal_at(5, index))).collect();
        let moment = |power| values.iter().map(|value| value.powi(power)).sum::<f64>() / values.len() as f64;
        assert!(values.iter().all(|value| value.is_finite()));
        assert!(moment(1).abs() < 0.03, "{}", moment(1));
        assert!((moment(2) - 1.0).abs() < 0.05, "{}", moment(2));
        assert!((moment(4) - 3.0).abs() < 0.3, "{}", moment(4));
    }

    #[test]
    fn bell_values_are_nearly_normal_and_never_zero() {
        let values: Vec<f64> = (0..20_000).map(|index| f64::from(Random::bell_at(7, index))).collect();
        let moment = |power| values.iter().map(|value| value.powi(power)).sum::<f64>() / values.len() as f64;
        assert!(values.iter().all(|value| *value != 0.0 && value.abs() < 3.47));
        assert!(moment(1).abs() < 0.03, "{}", moment(1));
        assert!((moment(2) - 1.0).abs() < 0.05, "{}", moment(2));
        // A normal law has 3, four uniform ones 2.7.
        assert!((moment(4) - 2.7).abs() < 0.2, "{}", moment(4));
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut random = Random::new(1);
        let mut seen = [0_u32; 5];
        for _ in 0..1000 {
            seen[random.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn shuffled_items_are_all_there_and_come_first_equally_often() {
        let mut random = Random::new(2);
        let mut first = [0_u32; 4];
        for _ in 0..1000 {
            let mut items = [0, 1, 2, 3];
            random.shuffle(&mut items);
            first[items[0]] += 1;
            items.sort_unstable();
            assert_eq!(items, [0, 1, 2, 3]);
        }
        assert!(first.iter().all(|count| (190..=310).contains(count)), "{first:?}");
    }

    #[test]
    fn values_depend_on_seed_and_place_but_not_on_layout() {
        let rows = dense::<f64>(50, 40, Layout::RowMajor, 1);
        let cols = dense::<f64>(50, 40, Layout::ColumnMajor, 1);
        let other = dense::<f64>(50, 40, Layout::RowMajor, 2);
        let mut sum = 0.0;
        for row in 0..50 {
            for col in 0..40 {
                let value = rows.get(row, col);
                assert_eq!(value, cols.get(row, col));
                assert_ne!(value, other.get(row, col));
                assert!((-1.0..1.0).contains(&value));
                sum += value;
            }
        }
        // The mean of 2000 such values has a standard deviation of 0.013.
        assert!((sum / 2000.0).abs() < 0.06, "{sum}");
    }
}
