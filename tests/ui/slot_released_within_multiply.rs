//! Within the call that issues the products their slot is lent, not given.

use hopper_std::sm90::{Accumulator, BlockScope, FullSlot};

fn consume(slot: FullSlot<u64, BlockScope>) {
    let mut accumulator = Accumulator::<64>::zeroed();
    let mut pending = accumulator.begin();
    unsafe { pending.multiply(slot, |_, slot| slot.release()) };
    unsafe { pending.wait() };
}

fn main() {
    let _: fn(FullSlot<u64, BlockScope>) = consume;
}
