//! Nobody takes a half of a ring whose barriers other threads cannot see yet.

use hopper_std::sm90::{BlockScope, Uninit};

fn start(ring: Uninit<u64, 4, BlockScope>) {
    let _ = unsafe { ring.consumer() };
}

fn main() {
    let _: fn(Uninit<u64, 4, BlockScope>) = start;
}
