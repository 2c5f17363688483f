//! The split of registers among warp groups.

use hopper_std::sim::At;

use super::{Cluster, State, Status, WARP, Wait};
use crate::finding::FindingKind;

/// Which way `setmaxnreg` goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resize {
    /// Gives registers up.
    Dec,
    /// Takes more.
    Inc,
}

impl Resize {
    const fn name(self) -> &'static str {
        match self {
            Self::Dec => "setmaxnreg.dec",
            Self::Inc => "setmaxnreg.inc",
        }
    }
}

impl Cluster<'_> {
    /// `setmaxnreg`, by a whole warp.
    pub(crate) fn setmaxnreg(&self, at: At, resize: Resize, count: u32) {
        if !(24..=256).contains(&count) || !count.is_multiple_of(8) {
            self.fatal(
                FindingKind::BadOperand,
                at,
                format!("{count} registers: a multiple of 8 from 24 to 256 is wanted"),
            );
        }
        let (warp, rank) = (self.current.get() / WARP, self.rank());
        self.meet_for(at, resize.name(), |state| self.check_resize(state, at, (resize, count)));
        loop {
            let mut state = self.state.borrow_mut();
            let had = state.warps[warp].registers;
            let more = (i64::from(count) - i64::from(had)) * WARP as i64;
            let wrong = match resize {
                Resize::Dec => more > 0,
                Resize::Inc => more < 0,
            };
            if wrong {
                drop(state);
                self.fatal(FindingKind::BadOperand, at, format!("{} to {count} registers from {had}", resize.name()));
            }
            if state.blocks[rank].free_registers >= more {
                state.blocks[rank].free_registers -= more;
                state.warps[warp].registers = count;
                state.wake(|wait| matches!(wait, Wait::Registers(_)));
                return;
            }
            drop(state);
            self.wait(Wait::Registers(count), at);
        }
    }

    /// The warps of a warp group must execute the same `setmaxnreg` in the same order. PTX ISA 9.7.19.5.
    fn check_resize(&self, state: &mut State, at: At, own: (Resize, u32)) {
        let thread = self.current.get();
        let index = state.warps[thread / WARP].num_resizes;
        state.warps[thread / WARP].num_resizes += 1;
        let resizes = &mut state.resizes[self.group_of(thread)];
        match resizes.get(index) {
            None => resizes.push((own, at)),
            Some(&(first, _)) if first == own => {}
            Some(&((resize, count), first)) => {
                let details = format!(
                    "{} to {} registers, while another warp of the warp group executes {} to {count} at {first}",
                    own.0.name(),
                    own.1,
                    resize.name()
                );
                self.fault(state, FindingKind::Divergence, at, details);
            }
        }
    }

    /// Whether the warps of each warp group have executed each `setmaxnreg`.
    pub(crate) fn check_resizes(&self, state: &mut State) {
        for group in 0..state.groups.len() {
            for first in self.group_threads(group).step_by(WARP) {
                let Some(&((resize, _), at)) = state.resizes[group].get(state.warps[first / WARP].num_resizes) else {
                    continue;
                };
                let details = format!("{} of a warp group, but not of this warp of it", resize.name());
                self.fault_of(state, first, FindingKind::Divergence, Some(at), details);
            }
        }
    }

    /// In words, who wants how many registers.
    pub(crate) fn register_demand(&self, state: &State, rank: usize) -> String {
        let warps = self.block_threads() / WARP;
        let demand: u32 = (rank * warps..(rank + 1) * warps)
            .map(|warp| match state.threads[warp * WARP].status {
                Status::Waiting(Wait::Registers(count), _) => count * WARP as u32,
                _ => state.warps[warp].registers * WARP as u32,
            })
            .sum();
        let launched = self.spec.launch_registers() * self.block_threads() as u32;
        format!(
            "the block's warps want {demand} registers together, it was launched with {launched}: they wait forever"
        )
    }
}
