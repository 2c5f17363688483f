//! The rule behind `--format auto`.
//!
//! On a GPU the product is bound by what is moved: the format whose reads of A and B are fewer wins. CSR reads
//! its entry (index and value) and one row of B for each nonzero; BCSR reads a whole block and the block's rows of B for each block.
//! In f32 there is no choice: tensor cores, which multiply the blocks, take bf16 and f16 alone, so f32 is CSR.
//! On the CPU the product is bound by arithmetic on stored elements, zeros included; dense blocks are little
//! faster per element than single entries, so a block must be at least three quarters full.

use hopper_sparse::Dtype;
use hopper_sparse::formats::{BlockShape, FillStatistics};

use crate::table::{bytes, percent};

/// Blocks at least this full are worth it on the CPU.
const CPU_FILL: f64 = 0.75;

/// How A is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Storage {
    /// Compressed sparse rows.
    Csr,
    /// Blocks, and how well they fit.
    Bcsr(BlockShape, FillStatistics),
}

/// A choice and the reason for it, for people; none where somebody asked for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// What was chosen.
    pub storage: Storage,
    /// Why.
    pub reason: Option<String>,
}

/// A block shape, and how well it fits.
pub type Fit = (BlockShape, FillStatistics);

/// What moves when A is multiplied by B on a GPU: bytes of A and B read, each access counted.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// Columns of B.
    pub cols: usize,
    /// The type of A and B.
    pub dtype: Dtype,
}

impl Traffic {
    fn csr_bytes(self, num_entries: u64) -> u64 {
        let element = self.dtype.size_bytes() as u64;
        num_entries.saturating_mul(4 + element + element * self.cols as u64)
    }

    fn bcsr_bytes(self, (shape, statistics): Fit) -> u64 {
        let element = self.dtype.size_bytes() as u64;
        let block = shape.num_elements() as u64 + shape.cols as u64 * self.cols as u64;
        statistics.num_blocks.saturating_mul(4 + element * block)
    }
}

/// Chooses for a GPU.
pub fn for_gpu(traffic: Traffic, num_entries: u64, fits: &[Fit; 8]) -> Choice {
    let (shape, statistics) = least(fits, |&fit| traffic.bcsr_bytes(fit));
    let csr_bytes = traffic.csr_bytes(num_entries);
    let bcsr_bytes = traffic.bcsr_bytes((shape, statistics));
    if bcsr_bytes < csr_bytes {
        Choice {
            storage: Storage::Bcsr(shape, statistics),
            reason: Some(format!("reads {} of A and B; CSR would read {}", bytes(bcsr_bytes), bytes(csr_bytes))),
        }
    } else {
        Choice {
            storage: Storage::Csr,
            reason: Some(format!(
                "reads {} of A and B; the best blocks, {shape}, would read {}",
                bytes(csr_bytes),
                bytes(bcsr_bytes)
            )),
        }
    }
}

/// The blocks that a GPU reads the fewest bytes for.
pub fn least_traffic(traffic: Traffic, fits: &[Fit; 8]) -> Choice {
    let (shape, statistics) = least(fits, |&fit| traffic.bcsr_bytes(fit));
    Choice { storage: Storage::Bcsr(shape, statistics), reason: Some("these blocks read the fewest bytes".to_owned()) }
}

/// Chooses for the CPU.
pub fn for_cpu(fits: &[Fit; 8]) -> Choice {
    let (shape, statistics) = least(fits, stored_elements);
    let full = percent(statistics.fill);
    if statistics.fill >= CPU_FILL {
        let reason = format!("on a CPU blocks pay where they are at least {:.0} % full", CPU_FILL * 100.0);
        Choice { storage: Storage::Bcsr(shape, statistics), reason: Some(reason) }
    } else {
        let reason =
            format!("blocks would be {full} full at best ({shape}); on a CPU they pay from {:.0} %", CPU_FILL * 100.0);
        Choice { storage: Storage::Csr, reason: Some(reason) }
    }
}

/// The blocks that store the fewest elements.
pub fn fullest(fits: &[Fit; 8]) -> Choice {
    let (shape, statistics) = least(fits, stored_elements);
    Choice {
        storage: Storage::Bcsr(shape, statistics),
        reason: Some("these blocks store the fewest elements".to_owned()),
    }
}

fn stored_elements(&(shape, statistics): &Fit) -> u64 {
    statistics.num_blocks.saturating_mul(shape.num_elements() as u64)
}

/// The shape of the least cost; of equals the largest, which has the fewest blocks to look up.
fn least(fits: &[Fit; 8], cost: impl Fn(&Fit) -> u64) -> Fit {
    let [first, rest @ ..] = fits;
    let key = |fit: &Fit| (cost(fit), core::cmp::Reverse(fit.0.num_elements()));
    rest.iter().fold(*first, |best, fit| if key(fit) < key(&best) { *fit } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAFFIC: Traffic = Traffic { cols: 128, dtype: Dtype::Bf16 };
    const LARGEST: BlockShape = BlockShape { rows: 128, cols: 128 };

    /// Every shape, where all its blocks together hold `num_entries` and each is `fill` full.
    fn fits(num_entries: u64, fill: f64) -> [Fit; 8] {
        BlockShape::ALL.map(|shape| {
            let num_blocks = (num_entries as f64 / fill / shape.num_elements() as f64).ceil() as u64;
            (shape, FillStatistics { num_blocks, num_entries, fill, block_density: 0.1 })
        })
    }

    #[test]
    fn full_blocks_are_chosen_everywhere_and_the_largest_of_equals() {
        let fits = fits(16_384 * 10, 1.0);
        for choice in [for_cpu(&fits), for_gpu(TRAFFIC, 16_384 * 10, &fits)] {
            assert_eq!(choice.storage, Storage::Bcsr(LARGEST, fits[7].1), "{:?}", choice.reason);
        }
    }

    #[test]
    fn scattered_entries_stay_entries() {
        // One entry a block.
        let fits = BlockShape::ALL.map(|shape| {
            let fill = 1.0 / shape.num_elements() as f64;
            (shape, FillStatistics { num_blocks: 1000, num_entries: 1000, fill, block_density: 0.1 })
        });
        for choice in [for_cpu(&fits), for_gpu(TRAFFIC, 1000, &fits)] {
            assert_eq!(choice.storage, Storage::Csr, "{:?}", choice.reason);
        }
    }

    #[test]
    fn blocks_that_are_mostly_holes_pay_on_a_gpu_only() {
        let fits = fits(16_384 * 10, 0.1);
        assert_eq!(for_cpu(&fits).storage, Storage::Csr);
        assert_eq!(for_gpu(TRAFFIC, 16_384 * 10, &fits).storage, Storage::Bcsr(LARGEST, fits[7].1));
    }

    #[test]
    fn an_empty_matrix_is_served() {
        let nothing = FillStatistics { num_blocks: 0, num_entries: 0, fill: 0.0, block_density: 0.0 };
        let fits = BlockShape::ALL.map(|shape| (shape, nothing));
        assert_eq!(for_cpu(&fits).storage, Storage::Csr);
        assert_eq!(for_gpu(TRAFFIC, 0, &fits).storage, Storage::Csr);
        assert_eq!(fullest(&fits).storage, Storage::Bcsr(LARGEST, nothing));
    }
}
