//! Devices of the simulator, one launch after the other.

use std::cell::Cell;

use hopper_sparse::sim::{Mode, Schedule, Simulated};

use super::operands::Random;

/// The schedule of the next launch; the one after it has the next mode.
pub struct Schedules(Cell<Schedule>);

impl Schedules {
    /// From `first` on.
    pub fn from(first: Schedule) -> Self {
        Self(Cell::new(first))
    }

    /// All modes in turn, from a fresh seed on.
    pub fn any() -> Self {
        Self::from(Schedule::new(Mode::Fair, Random::fresh().next()))
    }

    /// A device of the next schedule.
    pub fn device(&self) -> Simulated {
        let schedule = self.0.get();
        let next = Mode::ALL.iter().position(|mode| *mode == schedule.mode).map_or(0, |mode| mode + 1);
        self.0.set(Schedule::new(Mode::ALL[next % Mode::ALL.len()], schedule.seed.wrapping_add(1)));
        Simulated::new(schedule)
    }
}
