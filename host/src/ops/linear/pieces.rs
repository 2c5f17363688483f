//! Work in equal runs: which block of a launch multiplies which columns of which rows.

use kernels_gpu::linear::Piece;
#[cfg(any(feature = "gpu", feature = "sim"))]
use kernels_gpu::linear::WORDS_PER_PIECE;

/// The pieces of all workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pieces {
    /// By worker.
    pub(crate) pieces: Vec<Piece>,
    /// Where each worker's begin; one more than there are workers.
    pub(crate) offsets: Vec<u32>,
    /// Parts that go into the workspace.
    pub(crate) num_slots: u32,
    /// Row blocks.
    pub(crate) row_blocks: u32,
    /// Units of a row block.
    pub(crate) units: u32,
}

impl Pieces {
    /// Gives each of at most `workers` workers the same number of units, give or take one, in the order of row blocks.
    pub(crate) fn deal(row_blocks: u32, units: u32, workers: u32) -> Self {
        let total = u64::from(row_blocks) * u64::from(units);
        let workers = u64::from(workers).min(total);
        let mut dealt = Self { pieces: Vec::new(), offsets: vec![0], num_slots: 0, row_blocks, units };
        for worker in 0..workers {
            let [mut at, end] = [worker, worker + 1].map(|worker| worker * total / workers);
            while at < end {
                let (row_block, begin) = ((at / u64::from(units)) as u32, (at % u64::from(units)) as u32);
                let until = end.min((u64::from(row_block) + 1) * u64::from(units));
                let length = (until - at) as u32;
                dealt.pieces.push(Piece { row_block, begin, end: begin + length, ..Piece::default() });
                at = until;
            }
            dealt.offsets.push(dealt.pieces.len() as u32);
        }
        dealt.number_parts();
        dealt
    }

    /// Numbers the parts of each row block, and gives those that are several their slots.
    fn number_parts(&mut self) {
        for pieces in self.pieces.chunk_by_mut(|left, right| left.row_block == right.row_block) {
            let num_parts = pieces.len() as u32;
            for (part, piece) in pieces.iter_mut().enumerate() {
                (piece.part, piece.num_parts, piece.first_slot) = (part as u32, num_parts, self.num_slots);
            }
            self.num_slots += if num_parts > 1 { num_parts } else { 0 };
        }
    }

    /// Blocks of the launch for a panel of tokens.
    pub(crate) fn num_workers(&self) -> u32 {
        self.offsets.len() as u32 - 1
    }

    /// Places of a worker in the list.
    #[cfg(any(feature = "gpu", feature = "sim"))]
    pub(crate) fn stride(&self) -> u32 {
        self.offsets.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0)
    }

    /// The list, as the kernel reads it: so many places for each worker, and `None` where it has no piece.
    #[cfg(any(feature = "gpu", feature = "sim"))]
    pub(crate) fn placed(&self) -> Vec<Option<Piece>> {
        let stride = self.stride() as usize;
        let mut places = vec![None; stride * self.num_workers() as usize];
        for (places, ends) in places.chunks_exact_mut(stride.max(1)).zip(self.offsets.windows(2)) {
            let pieces = &self.pieces[ends[0] as usize..ends[1] as usize];
            for (index, (place, piece)) in places.iter_mut().zip(pieces).enumerate() {
                *place = Some(Piece { behind: (pieces.len() - 1 - index) as u32, ..*piece });
            }
        }
        places
    }

    /// The same in words.
    #[cfg(any(feature = "gpu", feature = "sim"))]
    pub(crate) fn to_words(&self) -> Vec<[u32; WORDS_PER_PIECE]> {
        self.placed().iter().map(|piece| piece.unwrap_or_default().to_words()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_the_work_of_one() {
        for (row_blocks, units, workers) in
            [(1, 1, 132), (3, 7, 5), (56, 28, 132), (14, 14, 132), (224, 28, 132), (2, 9, 1)]
        {
            let dealt = Pieces::deal(row_blocks, units, workers);
            let mut seen = vec![0; (row_blocks * units) as usize];
            for piece in &dealt.pieces {
                for unit in piece.begin..piece.end {
                    seen[(piece.row_block * units + unit) as usize] += 1;
                }
            }
            assert!(seen.iter().all(|&times| times == 1), "{row_blocks} x {units} over {workers}");
            let loads = dealt.offsets.windows(2).map(|ends| {
                let pieces = &dealt.pieces[ends[0] as usize..ends[1] as usize];
                pieces.iter().map(|piece| piece.end - piece.begin).sum::<u32>()
            });
            let loads: Vec<u32> = loads.collect();
            assert!(loads.iter().max().unwrap() - loads.iter().min().unwrap() <= 1);
            let split = dealt.pieces.iter().filter(|piece| piece.num_parts > 1).count();
            assert_eq!(split, dealt.num_slots as usize);
        }
    }
}
