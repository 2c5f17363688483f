//! The parts of a predicted time.

use core::fmt;

use super::constants::{Constant, LAUNCH, Origin};

/// What a launch can be bound by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// A and B from device memory.
    Memory,
    /// Rows of B from the caches, and A where it is read more than once.
    Gather,
    /// Instructions, or products of the tensor cores.
    Arithmetic,
    /// The longest row, window or block row on its one multiprocessor, or the copies that one multiprocessor begins.
    Chain,
}

impl Bound {
    /// For programs: `memory`, `gather`, `arithmetic` or `chain`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Gather => "gather",
            Self::Arithmetic => "arithmetic",
            Self::Chain => "chain",
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Gather => "fetching rows of B",
            Self::Arithmetic => "arithmetic",
            Self::Chain => "the longest chain on one multiprocessor",
        })
    }
}

/// A part of a time, and where the number behind it comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Seconds.
    pub seconds: f64,
    /// Of the constant.
    pub origin: Origin,
}

impl Part {
    /// Nothing.
    pub(super) const NONE: Self = Self { seconds: 0.0, origin: LAUNCH.origin };

    /// So many times a constant of seconds.
    pub(super) fn times(count: f64, constant: Constant) -> Self {
        Self { seconds: count * constant.value, origin: constant.origin }
    }

    /// So much at a constant rate.
    pub(super) fn at(amount: f64, rate: Constant) -> Self {
        Self { seconds: amount / rate.value, origin: rate.origin }
    }

    /// A constant share of it: measured where both are.
    pub(super) fn share(self, share: Constant) -> Self {
        let origin = if self.origin.is_measured() { share.origin } else { self.origin };
        Self { seconds: self.seconds * share.value, origin }
    }

    /// Both, one after the other: measured where both are.
    pub(super) fn and(self, other: Self) -> Self {
        let is_certain = self.origin.is_measured() || self.seconds == 0.0;
        let origin = if is_certain && other.seconds > 0.0 { other.origin } else { self.origin };
        Self { seconds: self.seconds + other.seconds, origin }
    }

    /// The longer of two.
    pub(super) fn max(self, other: Self) -> Self {
        if other.seconds > self.seconds { other } else { self }
    }
}

/// The time of a launch: what always adds up, and the longest of what overlaps.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Launches.
    pub launch: Part,
    /// What is launched besides: parts that are added up, a copy of B that is aligned.
    pub more_launches: Part,
    /// What nothing hides: with blocks C to memory; with CSR, none of whose parts overlap, all but the longest.
    pub store: Part,
    /// What overlaps.
    pub overlapping: [(Bound, Part); 4],
}

impl Cost {
    /// What the launch is bound by, and for how long.
    pub fn bound(&self) -> (Bound, Part) {
        let [first, rest @ ..] = self.overlapping;
        rest.into_iter().fold(first, |most, one| if one.1.seconds > most.1.seconds { one } else { most })
    }

    /// Seconds in all.
    pub fn seconds(&self) -> f64 {
        let bound = self.bound().1.seconds;
        self.launch.seconds + self.more_launches.seconds + self.store.seconds + bound
    }

    /// Whether records of the kernels as they are support every part that counts.
    pub fn is_measured(&self) -> bool {
        let parts = [self.launch, self.more_launches, self.store, self.bound().1];
        parts.iter().all(|part| part.seconds == 0.0 || part.origin.is_measured())
    }
}
