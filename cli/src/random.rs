//! Seeded values for B and C.

use hopper_sparse::Element;
use hopper_sparse::formats::{Dense, Layout};

/// A matrix of values spread evenly over [-1, 1), each a function of seed, row and column alone.
pub fn dense<T: Element>(num_rows: usize, num_cols: usize, layout: Layout, seed: u64) -> Dense<T> {
    Dense::from_fn(num_rows, num_cols, layout, |row, col| {
        let position = (row as u64) << 32 | col as u64;
        let bits = mix(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(mix(position)));
        T::from_f64((bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0)
    })
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

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
