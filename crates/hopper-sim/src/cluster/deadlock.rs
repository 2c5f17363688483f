//! Why nobody can go on.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::mbarriers::name_of;
use super::{Cluster, ClusterBarrier, State, Status, WARP, Wait};
use crate::finding::FindingKind;

impl Cluster<'_> {
    /// Names the reason, in the order in which one reason would hide another.
    pub(crate) fn explain_deadlock(&self, state: &mut State) {
        let waiting: Vec<(usize, Wait)> = state
            .threads
            .iter()
            .enumerate()
            .filter_map(|(thread, known)| match known.status {
                Status::Waiting(wait, _) => Some((thread, wait)),
                _ => None,
            })
            .collect();
        let Some(&(first, _)) = waiting.first() else { return };
        let find = |wanted: &dyn Fn(Wait) -> bool| waiting.iter().find(|(_, wait)| wanted(*wait)).copied();
        if let Some((thread, _)) = find(&|wait| matches!(wait, Wait::Registers(_))) {
            let details = self.register_demand(state, self.rank_of(thread));
            return self.report(state, thread, FindingKind::RegisterOversubscription, details);
        }
        let starved = waiting.iter().find_map(|&(thread, wait)| match wait {
            Wait::Mbarrier(rank, address, _) => {
                let barrier = state.mbarriers.get(&(rank, address))?;
                (barrier.pending == 0 && barrier.tx > 0).then_some((thread, rank, address, barrier.tx))
            }
            _ => None,
        });
        if let Some((thread, rank, address, bytes)) = starved {
            let details = format!(
                "{} has its arrivals but expects {bytes} bytes more than any copy brings",
                name_of((rank, address))
            );
            return self.report(state, thread, FindingKind::TransactionBytes, details);
        }
        if let Some((thread, details)) = self.divergence(state) {
            return self.report(state, thread, FindingKind::Divergence, details);
        }
        let details = self.who_waits(state, &waiting);
        self.report(state, first, FindingKind::Deadlock, details);
    }

    fn report(&self, state: &mut State, thread: usize, kind: FindingKind, details: String) {
        let at = match state.threads[thread].status {
            Status::Waiting(_, at) => Some(at),
            _ => None,
        };
        self.fault_of(state, thread, kind, at, details);
    }

    /// A warp or warp group of which some threads wait for the others, which are elsewhere.
    fn divergence(&self, state: &State) -> Option<(usize, String)> {
        let elsewhere = |threads: core::ops::Range<usize>, together: Wait| {
            let mut places = BTreeMap::new();
            let mut waiter = None;
            for thread in threads {
                let place = match state.threads[thread].status {
                    Status::Waiting(wait, _) if wait == together => {
                        waiter.get_or_insert(thread);
                        continue;
                    }
                    Status::Waiting(_, at) => at.to_string(),
                    Status::Ready => continue,
                    Status::Ended => "the end of the kernel".to_owned(),
                };
                places.entry(place).or_insert_with(Vec::new).push(thread % self.block_threads());
            }
            waiter.zip((!places.is_empty()).then_some(places))
        };
        let words = |places: BTreeMap<String, Vec<usize>>, name: &str, of: &str| {
            let mut details = format!("{name} waits for all threads of its {of}, but");
            for (place, threads) in places {
                let _ = write!(details, " threads {} are at {place};", ranges(&threads));
            }
            details.trim_end_matches(';').to_owned()
        };
        for warp in 0..state.warps.len() {
            if let Some((name, _)) = state.warps[warp].meeting.first
                && let Some((thread, places)) = elsewhere(warp * WARP..(warp + 1) * WARP, Wait::Warp)
            {
                return Some((thread, words(places, name, "warp")));
            }
        }
        for group in 0..state.groups.len() {
            if let Some((name, _)) = state.groups[group].first
                && let Some((thread, places)) = elsewhere(self.group_threads(group), Wait::Group)
            {
                return Some((thread, words(places, name, "warp group")));
            }
        }
        None
    }

    /// Each wait, with the threads that wait and what is missing.
    fn who_waits(&self, state: &State, waiting: &[(usize, Wait)]) -> String {
        let mut waits: BTreeMap<(usize, String), Vec<usize>> = BTreeMap::new();
        let threads = state.threads.iter().filter(|thread| thread.status != Status::Ended);
        for &(thread, wait) in waiting {
            let rank = self.rank_of(thread);
            let at = match state.threads[thread].status {
                Status::Waiting(_, at) => format!(" at {at}"),
                _ => String::new(),
            };
            let what = match wait {
                Wait::Barrier(id) => {
                    let barrier = &state.blocks[rank].barriers[id as usize];
                    let needed = self.needed(state, rank, id);
                    format!("barrier {id}, where {} of {needed} threads have arrived", barrier.arrived.len())
                }
                Wait::Mbarrier(of, address, parity) => match state.mbarriers.get(&(of, address)) {
                    Some(barrier) => format!(
                        "phase parity {parity} of {} ({} phases complete; {} of {} arrivals and {} bytes are outstanding)",
                        name_of((of, address)),
                        barrier.phase,
                        barrier.pending,
                        barrier.count,
                        barrier.tx
                    ),
                    None => format!("{}, which is no more", name_of((of, address))),
                },
                Wait::Cluster => format!(
                    "the cluster's barrier, where {} of {} threads have arrived",
                    threads.clone().filter(|thread| thread.cluster_barrier == ClusterBarrier::Arrived).count(),
                    threads.clone().count()
                ),
                Wait::Registers(count) => format!("{count} registers a thread"),
                Wait::Warp => "the rest of the warp".to_owned(),
                Wait::Group => "the rest of the warp group".to_owned(),
                Wait::Anything => "whatever it polls".to_owned(),
            };
            waits.entry((rank, format!("{what},{at}"))).or_default().push(thread % self.block_threads());
        }
        let mut details = String::from("nobody can go on:");
        for ((rank, what), threads) in waits {
            let _ = write!(details, " block {rank} threads {} wait for {what};", ranges(&threads));
        }
        details.trim_end_matches(';').to_owned()
    }
}

/// Numbers in words: `0-31, 64`.
fn ranges(numbers: &[usize]) -> String {
    let mut text = String::new();
    let mut index = 0;
    while index < numbers.len() {
        let first = numbers[index];
        while index + 1 < numbers.len() && numbers[index + 1] == numbers[index] + 1 {
            index += 1;
        }
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = match numbers[index] {
            last if last == first => write!(text, "{separator}{first}"),
            last => write!(text, "{separator}{first}-{last}"),
        };
        index += 1;
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn ranges_of_numbers() {
        assert_eq!(super::ranges(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
    }
}
