//! A producer does not wait for the data that it brings.

use hopper_std::sm90::{BlockScope, Producer};

fn read(mut ring: Producer<u64, 4, BlockScope>) {
    let _ = ring.wait();
}

fn main() {
    let _: fn(Producer<u64, 4, BlockScope>) = read;
}
