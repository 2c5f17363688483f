//! An accumulator is not read while products are in flight.

use hopper_std::sm90::{Accumulator, BlockScope, FullSlot};

fn consume(slot: FullSlot<u64, BlockScope>) -> f32 {
    let mut accumulator = Accumulator::<64>::zeroed();
    let mut pending = accumulator.begin();
    unsafe { pending.multiply(slot, |_, _| {}) };
    let early = accumulator.read()[0];
    unsafe { pending.wait() };
    early
}

fn main() {
    let _: fn(FullSlot<u64, BlockScope>) -> f32 = consume;
}
