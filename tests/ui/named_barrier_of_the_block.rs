//! Barrier 0 is the block's: `sync_threads` uses it.

use hopper_std::sm90::NamedBarrier;

hopper_std::named_barriers! {
    enum Meet {
        Store = 0: 256,
    }
}

fn main() {
    let _ = Meet::Store.id();
}
