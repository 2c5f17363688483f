//! What a set of samples says: the middle, the best and the spread.

/// A summary of at least one sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The middle sample, or the mean of the two middle ones, in the unit of the samples.
    pub median: f64,
    /// The smallest sample.
    pub min: f64,
    /// The largest sample.
    pub max: f64,
    /// The distance between the first and the third quartile, in percent of the median.
    pub spread_percent: f64,
    /// How many samples there were.
    pub num_samples: usize,
}

impl Summary {
    /// Summarises `samples`, in any order; `None` where there is none or one is not a number.
    pub fn of(samples: &[f64]) -> Option<Self> {
        if samples.is_empty() || samples.iter().any(|sample| sample.is_nan()) {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = quantile(&sorted, 0.5);
        let range = quantile(&sorted, 0.75) - quantile(&sorted, 0.25);
        let spread_percent = if median == 0.0 { 0.0 } else { 100.0 * range / median };
        let (min, max) = (sorted[0], sorted[sorted.len() - 1]);
        Some(Self { median, min, max, spread_percent, num_samples: sorted.len() })
    }
}

/// The value below which a part `fraction` of `sorted` lies, between two samples by straight line; at least one sample,
/// ascending.
pub fn quantile(sorted: &[f64], fraction: f64) -> f64 {
    let position = fraction * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = position.ceil() as usize;
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

/// The geometric mean of positive numbers; `None` where there is none.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|&value| value <= 0.0 || value.is_nan()) {
        return None;
    }
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    Some((sum / values.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_of_samples_lies_between_the_middle_two() {
        let summary = Summary::of(&[4.0, 1.0, 3.0, 2.0]).expect("four samples");
        assert_eq!(summary.median, 2.5);
        assert_eq!((summary.min, summary.max), (1.0, 4.0));
        assert_eq!(summary.num_samples, 4);
        // Quartiles 1.75 and 3.25.
        assert!((summary.spread_percent - 60.0).abs() < 1e-12);
    }

    #[test]
    fn one_sample_has_no_spread() {
        let summary = Summary::of(&[7.0]).expect("one sample");
        assert_eq!((summary.median, summary.min, summary.spread_percent), (7.0, 7.0, 0.0));
    }

    #[test]
    fn one_outlier_moves_neither_median_nor_spread() {
        let calm = Summary::of(&[10.0, 10.0, 10.0, 10.0, 10.0]).expect("samples");
        let outlier = Summary::of(&[10.0, 10.0, 10.0, 10.0, 900.0]).expect("samples");
        assert_eq!(calm.median, outlier.median);
        assert_eq!(calm.spread_percent, outlier.spread_percent);
    }

    #[test]
    fn nothing_and_nan_have_no_summary() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn the_geometric_mean_of_a_ratio_and_its_inverse_is_one() {
        let mean = geometric_mean(&[4.0, 0.25]).expect("two values");
        assert!((mean - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
    }
}
