//! Whether the simulator does what a GPU does: instructions whose operands lie in ways of their own (fragments, swizzles,
//! descriptors, sparse metadata, boxes), carried out by both on the same operands, give the same bits.

#[path = "agreement/cases.rs"]
mod cases;
#[cfg(feature = "gpu")]
#[path = "agreement/device.rs"]
mod device;
#[cfg(feature = "gpu")]
#[path = "suite/gpu.rs"]
mod gpu;
#[path = "agreement/simulator.rs"]
mod simulator;

use cases::{Case, Runner};
use hopper_sim::{Mode, Schedule};
use simulator::Simulated;

/// The cases in which both differ, in sentences.
fn disagreements(cases: &[Case], left: &dyn Runner, right: &dyn Runner) -> Vec<String> {
    let differ = |case: &Case| {
        let (left, right) = (left.run(case), right.run(case));
        assert_eq!(left.len(), right.len(), "{}", case.name);
        let different: Vec<usize> = (0..left.len()).filter(|&index| left[index] != right[index]).collect();
        let first = *different.first()?;
        Some(format!(
            "{}: {} of {} words differ, first word {first}: {:#010x} and {:#010x}",
            case.name,
            different.len(),
            left.len(),
            left[first],
            right[first]
        ))
    };
    cases.iter().filter_map(differ).collect()
}

#[test]
fn the_schedule_does_not_change_what_a_probe_gives() {
    let cases = cases::all();
    let fair = Simulated(Schedule::new(Mode::Fair, 0));
    for (case, mode) in cases.iter().zip(Mode::ALL.into_iter().cycle()) {
        let other = Simulated(Schedule::new(mode, 1));
        let found = disagreements(core::slice::from_ref(case), &fair, &other);
        assert!(found.is_empty(), "{mode:?}: {found:?}");
    }
}

#[test]
#[cfg(feature = "gpu")]
fn the_simulator_does_what_a_device_does() {
    let Some(device) = gpu::device_or_skip("the_simulator_does_what_a_device_does") else { return };
    let cases = cases::all();
    let simulated = Simulated(Schedule::new(Mode::Fair, 0));
    let found = disagreements(&cases, &simulated, &device::OnDevice::new(device));
    assert!(found.is_empty(), "{} of {} cases differ:\n{}", found.len(), cases.len(), found.join("\n"));
}
