//! Two barriers of a kernel do not share an id.

use hopper_std::sm90::NamedBarrier;

hopper_std::named_barriers! {
    enum Meet {
        Softmax = 1: 128,
        Store = 1: 256,
    }
}

fn main() {
    let _ = [Meet::Softmax, Meet::Store].map(NamedBarrier::id);
}
