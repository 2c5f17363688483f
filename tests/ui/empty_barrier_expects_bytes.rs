//! Bytes are announced at a full barrier only.

use hopper_std::sm90::{EmptyBarrier, Shared};

fn main() {
    let empty = unsafe { Shared::<EmptyBarrier>::from_address(0) };
    unsafe { empty.expect(1024) };
}
