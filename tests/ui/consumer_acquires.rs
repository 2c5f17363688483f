//! A consumer does not acquire slots to fill.

use hopper_std::sm90::{BlockScope, Consumer};

fn fill(mut ring: Consumer<u64, 4, BlockScope>) {
    let _ = ring.acquire();
}

fn main() {
    let _: fn(Consumer<u64, 4, BlockScope>) = fill;
}
