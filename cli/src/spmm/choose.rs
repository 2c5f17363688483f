//! The rule behind `--format auto`.
//!
//! On a GPU the product is bound by what is moved: the format whose reads of A and B are fewer wins. CSR reads
//! its entry (index and value) and one row of B for each nonzero; BCSR reads a whole block and the block's rows of B for each block.
//! On the CPU the product is bound by arithmetic on stored elements, zeros included; dense blocks run a few times
//! faster per element than single entries, so a block must be at least a quarter full.

use hopper_sparse::Dtype;
use hopper_sparse::formats::{BlockShape, FillStatistics};

use crate::table::{bytes, percent};

/// Blocks at least this full are worth it on the CPU.
const CPU_FILL: f64 = 0.25;

/// How A is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Storage {
    /// Compressed sparse rows.
    Csr,
    /// Blocks, and how well they fit.
    Bcsr(BlockShape, FillStatistics),
}

/// A choice and the reason for it, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// What was chosen.
    pub storage: Storage,
    /// Why.
    pub reason: String,
}

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

    fn bcsr_bytes(self, shape: BlockShape, num_blocks: u64) -> u64 {
        let element = self.dtype.size_bytes() as u64;
        let block = (shape.rows * shape.cols) as u64 + shape.cols as u64 * self.cols as u64;
        num_blocks.saturating_mul(4 + element * block)
    }
}

/// Chooses for a GPU; `fits` holds the offered block shapes.
pub fn for_gpu(traffic: Traffic, num_entries: u64, fits: &[(BlockShape, FillStatistics)]) -> Choice {
    let csr_bytes = traffic.csr_bytes(num_entries);
    let best = best_for_gpu(traffic, fits);
    match best {
        Some((shape, statistics)) if traffic.bcsr_bytes(shape, statistics.num_blocks) < csr_bytes => Choice {
            storage: Storage::Bcsr(shape, statistics),
            reason: format!(
                "it reads {} of A and B, CSR {}",
                bytes(traffic.bcsr_bytes(shape, statistics.num_blocks)),
                bytes(csr_bytes)
            ),
        },
        Some((shape, statistics)) => Choice {
            storage: Storage::Csr,
            reason: format!(
                "it reads {} of A and B, the best blocks ({shape}, {} full) {}",
                bytes(csr_bytes),
                percent(statistics.fill),
                bytes(traffic.bcsr_bytes(shape, statistics.num_blocks))
            ),
        },
        None => Choice { storage: Storage::Csr, reason: "no block size is offered".to_owned() },
    }
}

/// The block shape with the least traffic.
pub fn best_for_gpu(traffic: Traffic, fits: &[(BlockShape, FillStatistics)]) -> Option<(BlockShape, FillStatistics)> {
    fits.iter().copied().min_by_key(|&(shape, statistics)| traffic.bcsr_bytes(shape, statistics.num_blocks))
}

/// Chooses for the CPU.
pub fn for_cpu(fits: &[(BlockShape, FillStatistics)]) -> Choice {
    match fullest(fits) {
        Some((shape, statistics)) if statistics.fill >= CPU_FILL => Choice {
            storage: Storage::Bcsr(shape, statistics),
            reason: format!("blocks are at least {} full", percent(CPU_FILL)),
        },
        Some((shape, statistics)) => Choice {
            storage: Storage::Csr,
            reason: format!(
                "the fullest blocks ({shape}) are {} full, under {}",
                percent(statistics.fill),
                percent(CPU_FILL)
            ),
        },
        None => Choice { storage: Storage::Csr, reason: "no block size is offered".to_owned() },
    }
}

/// The shape that stores the fewest elements; of equals the largest, which has the least overhead.
pub fn fullest(fits: &[(BlockShape, FillStatistics)]) -> Option<(BlockShape, FillStatistics)> {
    fits.iter().copied().min_by_key(|&(shape, statistics)| {
        let area = (shape.rows * shape.cols) as u64;
        (statistics.num_blocks.saturating_mul(area), core::cmp::Reverse(area))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: BlockShape = BlockShape { rows: 64, cols: 16 };
    const LARGE: BlockShape = BlockShape { rows: 128, cols: 128 };

    fn fit(shape: BlockShape, num_blocks: u64, num_entries: u64) -> (BlockShape, FillStatistics) {
        let fill = num_entries as f64 / (num_blocks * (shape.rows * shape.cols) as u64) as f64;
        (shape, FillStatistics { num_blocks, num_entries, fill, block_density: 0.1 })
    }

    #[test]
    fn full_blocks_are_chosen_everywhere() {
        let fits = [fit(SMALL, 160, 163_840), fit(LARGE, 10, 163_840)];
        let traffic = Traffic { cols: 128, dtype: Dtype::Bf16 };
        for choice in [for_cpu(&fits), for_gpu(traffic, 163_840, &fits)] {
            assert_eq!(choice.storage, Storage::Bcsr(LARGE, fits[1].1), "{}", choice.reason);
        }
    }

    #[test]
    fn scattered_entries_stay_entries() {
        let fits = [fit(SMALL, 1000, 1000), fit(LARGE, 1000, 1000)];
        let traffic = Traffic { cols: 128, dtype: Dtype::Bf16 };
        for choice in [for_cpu(&fits), for_gpu(traffic, 1000, &fits)] {
            assert_eq!(choice.storage, Storage::Csr, "{}", choice.reason);
        }
    }

    #[test]
    fn half_empty_blocks_pay_on_a_gpu_only() {
        // 10 % of each block.
        let fits = [fit(LARGE, 100, 163_840)];
        let traffic = Traffic { cols: 128, dtype: Dtype::Bf16 };
        assert_eq!(for_cpu(&fits).storage, Storage::Csr);
        assert_eq!(for_gpu(traffic, 163_840, &fits).storage, Storage::Bcsr(LARGE, fits[0].1));
    }

    #[test]
    fn an_empty_matrix_is_served() {
        let fits = [(SMALL, FillStatistics { num_blocks: 0, num_entries: 0, fill: 0.0, block_density: 0.0 })];
        assert_eq!(for_cpu(&fits).storage, Storage::Csr);
        assert_eq!(for_gpu(Traffic { cols: 1, dtype: Dtype::F16 }, 0, &fits).storage, Storage::Csr);
    }
}
