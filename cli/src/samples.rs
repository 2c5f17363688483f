//! Repeated launches, and what their times say.

use std::num::NonZeroUsize;

use crate::error::Result;
use crate::progress;
use crate::statistics::quantile;

/// Where nobody says how often to launch: this often,
const DEFAULT_REPEAT: usize = 20;
/// or until this many seconds have passed,
const DEFAULT_SECONDS: f64 = 5.0;
/// but never less often than this.
const LEAST_REPEAT: usize = 3;

/// The times of some launches, in seconds, ascending; at least one.
#[derive(Clone, Debug)]
pub struct Samples {
    sorted: Vec<f64>,
}

impl Samples {
    /// Launches once without counting it, then `repeat` times, or as often as a few seconds allow. `launch` says how many
    /// seconds it took.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn take(repeat: Option<NonZeroUsize>, mut launch: impl FnMut() -> Result<f64>) -> Result<Self> {
        let most = repeat.map_or(DEFAULT_REPEAT, NonZeroUsize::get);
        let bar = progress::bar("timing", most as u64);
        launch()?;
        let mut sorted = Vec::with_capacity(most);
        let mut total = 0.0;
        while sorted.len() < most {
            if repeat.is_none() && total > DEFAULT_SECONDS && sorted.len() >= LEAST_REPEAT {
                break;
            }
            let seconds = launch()?;
            total += seconds;
            sorted.push(seconds);
            bar.inc(1);
        }
        bar.finish_and_clear();
        sorted.sort_by(f64::total_cmp);
        Ok(Self { sorted })
    }

    /// How many launches were timed.
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// The middle time, or the mean of the middle two.
    pub fn median(&self) -> f64 {
        quantile(&self.sorted, 0.5)
    }

    /// The shortest time.
    pub fn fastest(&self) -> f64 {
        self.sorted[0]
    }

    /// The longest time.
    pub fn slowest(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_launch_does_not_count() {
        let mut launches = 0;
        let samples = Samples::take(NonZeroUsize::new(4), || {
            launches += 1;
            Ok(f64::from(launches))
        })
        .unwrap();
        assert_eq!((launches, samples.count()), (5, 4));
        assert_eq!((samples.fastest(), samples.median(), samples.slowest()), (2.0, 3.5, 5.0));
    }

    #[test]
    fn slow_work_is_repeated_less_unless_asked() {
        assert_eq!(Samples::take(None, || Ok(100.0)).unwrap().count(), LEAST_REPEAT);
        assert_eq!(Samples::take(None, || Ok(1e-9)).unwrap().count(), DEFAULT_REPEAT);
    }
}
