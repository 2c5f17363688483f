//! A block has 227 KiB of shared memory. Seven stages of 32 KiB and their barriers fit, eight do not.

use hopper_std::sm90::{PipelineBarriers, SharedMemory, Swizzle128, Tile};

#[repr(C, align(1024))]
struct Smem<const STAGES: usize> {
    stages: [[Tile<u16, 128, 64, Swizzle128>; 2]; STAGES],
    barriers: PipelineBarriers<STAGES>,
}

const SEVEN: usize = SharedMemory::<Smem<7>>::BYTES;
const EIGHT: usize = SharedMemory::<Smem<8>>::BYTES;

fn main() {
    let _ = (SEVEN, EIGHT);
}
