//! In which order things happen: fixed by a mode and a seed.

use std::ops::Range;

/// How the simulator chooses among what may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Warps in turn; asynchronous work in its order, a little later.
    Fair,
    /// Anything that may happen, with equal chances.
    Random,
    /// Asynchronous work only when no thread can go on.
    Late,
    /// Asynchronous work as soon as it is issued.
    Early,
    /// One warp group, chosen by the seed, goes on only when nobody else can.
    Starve,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Fair, Self::Random, Self::Late, Self::Early, Self::Starve];
}

/// A mode and a seed: the same schedule gives the same run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// The mode.
    pub mode: Mode,
    /// The seed.
    pub seed: u64,
}

impl Schedule {
    /// A schedule.
    pub const fn new(mode: Mode, seed: u64) -> Self {
        Self { mode, seed }
    }

    /// Every mode with each seed of `HOPPER_SIM_SEEDS`: a count `n`, or a range `first..end` (so that machines can share
    /// the work); the seeds under `default` where it is not set.
    ///
    /// # Panics
    /// If the variable says neither.
    pub fn all(default: u64) -> impl Iterator<Item = Self> + Clone {
        let seeds = match std::env::var("HOPPER_SIM_SEEDS") {
            Ok(text) => seeds(&text).unwrap_or_else(|| panic!("HOPPER_SIM_SEEDS is `{text}`, not `n` or `first..end`")),
            Err(_) => 0..default,
        };
        seeds.flat_map(|seed| Mode::ALL.into_iter().map(move |mode| Self { mode, seed }))
    }
}

fn seeds(text: &str) -> Option<Range<u64>> {
    match text.split_once("..") {
        Some((first, end)) => Some(first.parse().ok()?..end.parse().ok()?),
        None => Some(0..text.parse().ok()?),
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number under `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::seeds;

    #[test]
    fn seeds_are_a_count_or_a_range() {
        assert_eq!(seeds("3"), Some(0..3));
        assert_eq!(seeds("20..25"), Some(20..25));
        for text in ["", "x", "1..", "..2", "1..x", "-1"] {
            assert_eq!(seeds(text), None, "{text}");
        }
    }
}
