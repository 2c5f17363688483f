//! In which order things happen: fixed by a mode and a seed.

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

    /// Every mode with `HOPPER_SIM_SEEDS` seeds each, or `default` where it is not set.
    ///
    /// # Panics
    /// Where the variable is no number: a test that takes it for 3 would say less than it was asked to.
    pub fn all(default: u64) -> impl Iterator<Item = Self> {
        let seeds = std::env::var("HOPPER_SIM_SEEDS").map_or(default, |text| {
            text.parse().unwrap_or_else(|_| panic!("HOPPER_SIM_SEEDS is {text:?}, which is no number of seeds"))
        });
        (0..seeds).flat_map(|seed| Mode::ALL.into_iter().map(move |mode| Self { mode, seed }))
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
