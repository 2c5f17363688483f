//! Launches: the grid's clusters, side by side.

use hopper_std::KernelSpec;
use hopper_std::spec::MAX_SHARED_BYTES;
use rayon::prelude::*;

use crate::cluster::Cluster;
use crate::finding::{Finding, FindingKind, Report};
use crate::memory::Memory;
use crate::schedule::Schedule;

/// An address in a [`Memory`], to be handed to the threads of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Address<T>(*mut T);

// SAFETY: an address is a number; what lies there is read and written by the simulator alone, with atomic operations.
unsafe impl<T> Send for Address<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Address<T> {}

impl<T> Address<T> {
    /// Of a pointer.
    pub const fn new(pointer: *mut T) -> Self {
        Self(pointer)
    }

    /// The pointer.
    pub const fn get(self) -> *mut T {
        self.0
    }
}

/// Runs every thread of a grid of `grid` blocks through `kernel`, which calls the kernel with its arguments.
///
/// The same schedule gives the same run. Clusters run in parallel: as on a device, what they share they share without order.
pub fn launch(
    spec: &KernelSpec,
    grid: [u32; 3],
    memory: &Memory,
    schedule: Schedule,
    kernel: impl Fn() + Sync,
) -> Report {
    if let Some(finding) = refuse(spec, grid) {
        return Report { findings: vec![finding], ..Report::default() };
    }
    let clusters = [grid[0] / spec.cluster, grid[1], grid[2]];
    let num_clusters: u64 = clusters.iter().map(|&count| u64::from(count)).product();
    let reports: Vec<Report> = (0..num_clusters)
        .into_par_iter()
        .map(|index| {
            let x = (index % u64::from(clusters[0])) as u32 * spec.cluster;
            let rest = index / u64::from(clusters[0]);
            let origin = [x, (rest % u64::from(clusters[1])) as u32, (rest / u64::from(clusters[1])) as u32];
            Cluster::new(spec, grid, origin, memory, schedule).run(&kernel)
        })
        .collect();
    let mut all = Report::default();
    for report in reports {
        let known = |new: &Finding| all.findings.iter().any(|old| (old.kind, old.at) == (new.kind, new.at));
        let new: Vec<Finding> = report.findings.into_iter().filter(|finding| !known(finding)).collect();
        all.findings.extend(new);
        all.bank_conflicts += report.bank_conflicts;
        all.num_instructions += report.num_instructions;
    }
    all
}

/// Why a device would not launch this.
fn refuse(spec: &KernelSpec, grid: [u32; 3]) -> Option<Finding> {
    let finding = |kind, details| {
        Some(Finding { kind, kernel: spec.name, block: [0; 3], thread: None, at: None, details })
    };
    if spec.shared_bytes > MAX_SHARED_BYTES {
        let details = format!("{} bytes of shared memory, but a block has at most {MAX_SHARED_BYTES}", spec.shared_bytes);
        return finding(FindingKind::SharedMemory, details);
    }
    if spec.threads == 0 || spec.threads > 1024 || !spec.threads.is_multiple_of(32) {
        return finding(FindingKind::BadOperand, format!("a block of {} threads", spec.threads));
    }
    if spec.cluster == 0 || spec.cluster > 8 || !grid[0].is_multiple_of(spec.cluster) || grid.contains(&0) {
        return finding(FindingKind::BadOperand, format!("a grid of {grid:?} blocks in clusters of {}", spec.cluster));
    }
    None
}
