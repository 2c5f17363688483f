//! The rule behind `--format auto` where a CPU multiplies, or a file is written.
//!
//! On the CPU the product is bound by arithmetic on stored elements, zeros included; dense blocks are little
//! faster per element than single entries, so a block must be at least three quarters full. What a GPU multiplies is chosen by
//! prediction, as `recommend` does.

use hopper_sparse::formats::{BlockShape, FillStatistics};

use crate::table::percent;

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

    const LARGEST: BlockShape = BlockShape { rows: 128, cols: 128 };

    /// Every shape, where all its blocks together hold `num_entries` and each is `fill` full.
    fn fits(num_entries: u64, fill: f64) -> [Fit; 8] {
        BlockShape::ALL.map(|shape| {
            let num_blocks = (num_entries as f64 / fill / shape.num_elements() as f64).ceil() as u64;
            (shape, FillStatistics { num_blocks, num_entries, fill, block_density: 0.1 })
        })
    }

    #[test]
    fn full_blocks_are_chosen_and_the_largest_of_equals() {
        let fits = fits(16_384 * 10, 1.0);
        let choice = for_cpu(&fits);
        assert_eq!(choice.storage, Storage::Bcsr(LARGEST, fits[7].1), "{:?}", choice.reason);
    }

    #[test]
    fn scattered_entries_and_blocks_that_are_mostly_holes_stay_entries() {
        for fill in [0.001, 0.1, 0.7] {
            assert_eq!(for_cpu(&fits(16_384 * 10, fill)).storage, Storage::Csr, "{fill}");
        }
    }

    #[test]
    fn an_empty_matrix_is_served() {
        let nothing = FillStatistics { num_blocks: 0, num_entries: 0, fill: 0.0, block_density: 0.0 };
        let fits = BlockShape::ALL.map(|shape| (shape, nothing));
        assert_eq!(for_cpu(&fits).storage, Storage::Csr);
        assert_eq!(fullest(&fits).storage, Storage::Bcsr(LARGEST, nothing));
    }
}
