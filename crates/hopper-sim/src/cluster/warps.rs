//! Meetings of a warp or a warp group: instructions that all of its threads execute together.

use hopper_std::sim::{At, MmaLeft};

use super::{Cluster, GROUP, State, Status, WARP, Wait};
use crate::finding::FindingKind;

/// What a lane brings to a meeting, and takes from it.
pub(crate) type Words = [u32; 5];

/// A warp's meeting.
#[derive(Default)]
pub(crate) struct Meeting {
    /// The instruction, and where the first lane executed it.
    pub(crate) first: Option<(&'static str, At)>,
    pub(crate) arrived: u32,
    values: [Words; WARP],
    results: [Words; WARP],
}

/// What a thread brings to a product of its warp group.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    pub(crate) d: *mut f32,
    pub(crate) a: MmaLeft,
    pub(crate) b: u64,
    pub(crate) scale_d: u32,
    pub(crate) metadata: u32,
}

/// A warp group's meeting.
#[derive(Default)]
pub(crate) struct GroupMeeting {
    pub(crate) first: Option<(&'static str, At)>,
    pub(crate) shares: Vec<(usize, Share)>,
}

/// Whether two lanes are at one instruction.
fn same(first: (&'static str, At), second: (&'static str, At)) -> bool {
    // PERF: one place nearly always has one address; only then are the names of files not compared.
    first.0 == second.0 && (core::ptr::eq(first.1, second.1) || first.1 == second.1)
}

impl Cluster<'_> {
    /// Meets the other lanes of the warp; the last to come computes what each takes away.
    pub(crate) fn meet(
        &self,
        at: At,
        name: &'static str,
        value: Words,
        complete: impl FnOnce(&mut State, &[Words; WARP]) -> [Words; WARP],
    ) -> Words {
        self.step(at);
        let thread = self.current.get();
        let (warp, lane) = (thread / WARP, thread % WARP);
        let done = {
            let mut state = self.state.borrow_mut();
            let meeting = &mut state.warps[warp].meeting;
            let first = *meeting.first.get_or_insert((name, at));
            if !same(first, (name, at)) {
                let details = format!(
                    "{name}, while other lanes of the warp are at {} ({}): all must execute the same instruction",
                    first.0, first.1
                );
                drop(state);
                self.fatal(FindingKind::Divergence, at, details);
            }
            meeting.values[lane] = value;
            meeting.arrived |= 1 << lane;
            meeting.arrived == u32::MAX
        };
        if !done {
            self.wait(Wait::Warp, at);
        } else {
            let mut state = self.state.borrow_mut();
            let values = state.warps[warp].meeting.values;
            let results = complete(&mut state, &values);
            let meeting = &mut state.warps[warp].meeting;
            (meeting.results, meeting.arrived, meeting.first) = (results, 0, None);
            state.progress += 1;
            for other in warp * WARP..(warp + 1) * WARP {
                if matches!(state.threads[other].status, Status::Waiting(Wait::Warp, _)) {
                    state.set_status(other, Status::Ready);
                }
            }
            let stopped = state.stopped;
            drop(state);
            if stopped {
                self.stop();
            }
        }
        self.state.borrow().warps[warp].meeting.results[lane]
    }

    /// A meeting from which nobody takes anything.
    pub(crate) fn meet_for(&self, at: At, name: &'static str, complete: impl FnOnce(&mut State)) {
        self.meet(at, name, [0; 5], |state, _| {
            complete(state);
            [[0; 5]; WARP]
        });
    }

    /// Meets the other threads of the warp group; the last to come issues the product.
    pub(crate) fn meet_group(
        &self,
        at: At,
        name: &'static str,
        share: Share,
        complete: impl FnOnce(&mut State, usize, &[Share]),
    ) {
        self.step(at);
        let thread = self.current.get();
        let group = self.group_of(thread);
        let done = {
            let mut state = self.state.borrow_mut();
            let meeting = &mut state.groups[group];
            let first = *meeting.first.get_or_insert((name, at));
            if !same(first, (name, at)) {
                let details = format!(
                    "{name}, while other threads of the warp group are at {} ({}): all must execute the same instruction",
                    first.0, first.1
                );
                drop(state);
                self.fatal(FindingKind::Divergence, at, details);
            }
            meeting.shares.push((thread, share));
            meeting.shares.len() == GROUP
        };
        if !done {
            self.wait(Wait::Group, at);
            return;
        }
        let mut state = self.state.borrow_mut();
        let mut shares = core::mem::take(&mut state.groups[group].shares);
        state.groups[group].first = None;
        shares.sort_by_key(|(thread, _)| *thread);
        let shares: Vec<Share> = shares.into_iter().map(|(_, share)| share).collect();
        complete(&mut state, group, &shares);
        state.progress += 1;
        for other in self.group_threads(group) {
            if matches!(state.threads[other].status, Status::Waiting(Wait::Group, _)) {
                state.set_status(other, Status::Ready);
            }
        }
        let stopped = state.stopped;
        drop(state);
        if stopped {
            self.stop();
        }
    }
}
