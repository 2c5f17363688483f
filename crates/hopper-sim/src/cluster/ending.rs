//! What a thread, and a cluster, must not leave behind.

use hopper_std::sim::At;

use super::copies::Work;
use super::mbarriers::name_of;
use super::{Cluster, State, WARP};
use crate::finding::FindingKind;
use crate::shared::TaskId;

impl Cluster<'_> {
    /// What a thread that ends leaves behind.
    pub(crate) fn check_end(&self, state: &mut State, thread: usize) {
        let bulk = &state.threads[thread].bulk;
        let waited_for: Vec<TaskId> = bulk.open.iter().chain(bulk.committed.iter().flatten()).copied().collect();
        for task in waited_for {
            if let Some(task) = state.tasks.get(&task).filter(|task| matches!(task.work, Work::Store { .. })) {
                let (at, details) = (task.at, "the thread ends before this copy has read its shared memory".to_owned());
                self.fault_of(state, thread, FindingKind::Unfinished, Some(at), details);
            }
        }
        let warp = &state.warps[thread / WARP].products;
        let pending = warp.open.iter().chain(warp.committed.iter().flatten());
        let left = pending.filter_map(|task| state.products.get(task)).next().map(|product| product.at);
        if let Some(at) = left {
            let details = "the thread ends before it has waited for this product".to_owned();
            self.fault_of(state, thread, FindingKind::Unfinished, Some(at), details);
        }
    }

    /// What a cluster that ends leaves behind.
    pub(crate) fn check_cluster_end(&self, state: &mut State) {
        let tasks: Vec<(usize, At)> = state
            .tasks
            .values()
            .filter(|task| matches!(task.work, Work::Load { .. }))
            .map(|task| (task.thread, task.at))
            .collect();
        for (thread, at) in tasks {
            let details = "the cluster ends before this copy has arrived".to_owned();
            self.fault_of(state, thread, FindingKind::Unfinished, Some(at), details);
        }
        self.check_resizes(state);
        while let Some((&task, _)) = state.tasks.first_key_value() {
            self.carry_out_copy(state, task);
        }
        let untaken: Vec<(usize, At)> =
            state.accumulators.values().map(|accumulator| (accumulator.group, accumulator.at)).collect();
        for (group, at) in untaken {
            let details =
                "the registers of this product's accumulator were overwritten before its wait, or nobody has taken \
                           its sums"
                    .to_owned();
            self.fault_of(state, self.group_threads(group).start, FindingKind::AccumulatorInFlight, Some(at), details);
        }
        let mut unmet: Vec<(usize, u32, i64)> = state
            .mbarriers
            .iter()
            .filter(|(_, barrier)| barrier.tx != 0)
            .map(|(key, b)| (key.0, key.1, b.tx))
            .collect();
        unmet.sort_unstable();
        for (rank, address, bytes) in unmet {
            let details = match bytes {
                0.. => format!("{} still expects {bytes} bytes at the end", name_of((rank, address))),
                _ => format!("{} got {} bytes that it was not told to expect", name_of((rank, address)), -bytes),
            };
            self.fault_of(state, rank * self.block_threads(), FindingKind::TransactionBytes, None, details);
        }
    }
}
