//! A slot is given back once.

use hopper_std::sm90::{BlockScope, FullSlot};

fn consume(slot: FullSlot<u64, BlockScope>) {
    slot.release();
    slot.release();
}

fn main() {
    let _: fn(FullSlot<u64, BlockScope>) = consume;
}
