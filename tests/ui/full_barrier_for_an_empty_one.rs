//! A full barrier does not stand in for an empty one.

use hopper_std::sm90::{EmptyBarrier, FullBarrier, Phase, Shared};

fn wait_for_release(empty: Shared<EmptyBarrier>) {
    unsafe { empty.wait(Phase::FIRST) };
}

fn main() {
    let full = unsafe { Shared::<FullBarrier>::from_address(0) };
    wait_for_release(full);
}
