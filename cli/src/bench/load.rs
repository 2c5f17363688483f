//! What the card does between samples, and how long samples are.

use std::time::Duration;

use super::contest::Process;

/// What the card does between samples: a card at its power limit takes a lower clock under lasting load than after a rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Load {
    /// Samples follow one another, after the card has settled: what a program gets that does nothing else.
    #[default]
    Lasting,
    /// Each sample is short and comes after a rest of 0.3 s: what a program gets that leaves the card time to cool.
    Rested,
}

/// How long samples are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Launches before each, not timed: at least as many,
    pub lead: usize,
    /// and for at least as long.
    pub lead_us: f64,
    /// A sample takes at least this long,
    pub least_us: f64,
    /// or this many launches.
    pub most_launches: usize,
}

/// Samples where all compute in this process. An event resolves about half a microsecond, and the two events of a sample with the
/// start of its first launch take some 7 us on an H200, which is to be no part of what a launch takes.
const ALONE: Sizes = Sizes { lead: 0, lead_us: 0.0, least_us: 1000.0, most_launches: 64 };
/// Samples where processes share the device. Between two samples the device changes hands: the first launch after that
/// finds neither its code nor its address translations in the caches, and a pause of some tenths of a millisecond behind it.
/// In such pauses the card cools, and short samples find a clock that no lasting load sees: so they are long, and begin under
/// load.
const SHARED: Sizes = Sizes { lead: 2, lead_us: 20_000.0, least_us: 40_000.0, most_launches: 4096 };
/// Samples after a rest: launches that find code and address translations in the caches again, then a few milliseconds. How soon a
/// card's clock falls was not measured.
const RESTED: Sizes = Sizes { lead: 2, lead_us: 0.0, least_us: 5_000.0, most_launches: 4096 };

impl Load {
    /// The name used on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lasting => "lasting",
            Self::Rested => "rested",
        }
    }

    /// How long samples are of those who compute in these processes.
    pub(super) fn sizes(self, mut processes: impl Iterator<Item = Process>) -> Sizes {
        match self {
            Self::Rested => RESTED,
            Self::Lasting if processes.any(|process| process == Process::Own) => SHARED,
            Self::Lasting => ALONE,
        }
    }

    /// How long rounds are run before the first sample counts.
    ///
    /// NOTE: a card at its power limit takes a few tenths of a second to find its clock. Without this, the first rounds run at a
    /// clock that no lasting load sees: spreads of 10 to 20 % on an H200.
    pub(super) fn settling(self) -> Duration {
        match self {
            Self::Lasting => Duration::from_millis(700),
            Self::Rested => Duration::ZERO,
        }
    }

    /// How long nobody computes before a sample.
    pub(super) fn rest(self) -> Duration {
        match self {
            Self::Lasting => Duration::ZERO,
            Self::Rested => Duration::from_millis(300),
        }
    }
}
