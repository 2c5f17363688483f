//! What a slot holds is not read once the producer may fill it again.

use hopper_std::sm90::{BlockScope, FullSlot};

fn consume(slot: FullSlot<u64, BlockScope>) -> u32 {
    slot.release();
    slot.stage().address()
}

fn main() {
    let _: fn(FullSlot<u64, BlockScope>) -> u32 = consume;
}
