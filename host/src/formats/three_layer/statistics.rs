//! What became of a matrix' nonzeros, and what they take.

use core::fmt;

/// The nonzeros of a [`ThreeLayer`](super::ThreeLayer) matrix by layer, and its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreeLayerStatistics {
    /// Elements of the matrix, zeros included.
    pub num_elements: u64,
    /// Nonzeros of the first layer: at most two of each group of four.
    pub num_first: u64,
    /// Nonzeros that are in free slots of the first layer.
    pub num_surplus: u64,
    /// Zeros in free slots that break distances too long for four bits.
    pub num_dummies: u64,
    /// Nonzeros that found no slot.
    pub num_residual: u64,
    /// Bytes of the tiles: values, metadata, headers and distances.
    pub tile_bytes: u64,
    /// Bytes of the residual, its offsets and the tiles' offsets.
    pub other_bytes: u64,
}

impl ThreeLayerStatistics {
    /// All nonzeros.
    pub fn num_nonzeros(&self) -> u64 {
        self.num_first + self.num_surplus + self.num_residual
    }

    /// The share of elements that are zero; 0 of an empty matrix.
    pub fn sparsity(&self) -> f64 {
        share(self.num_elements - self.num_nonzeros(), self.num_elements)
    }

    /// The share of nonzeros that found no slot.
    pub fn residual_share(&self) -> f64 {
        share(self.num_residual, self.num_nonzeros())
    }

    /// Dummies for each surplus nonzero in a slot.
    pub fn dummy_share(&self) -> f64 {
        share(self.num_dummies, self.num_surplus)
    }

    /// All bytes that are stored.
    pub fn stored_bytes(&self) -> u64 {
        self.tile_bytes + self.other_bytes
    }

    /// Stored bytes for each element of the matrix; 2 when dense.
    pub fn bytes_per_element(&self) -> f64 {
        share(self.stored_bytes(), self.num_elements)
    }
}

/// `part / whole`, where nothing of nothing is nothing.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl fmt::Display for ThreeLayerStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_nonzeros = |part| 100.0 * share(part, self.num_nonzeros());
        write!(
            f,
            "{:.1} % sparse; of the nonzeros {:.2} % in two of four, {:.2} % in free slots, {:.2} % residual; {} dummies; {:.3} bytes an element",
            100.0 * self.sparsity(),
            of_nonzeros(self.num_first),
            of_nonzeros(self.num_surplus),
            of_nonzeros(self.num_residual),
            self.num_dummies,
            self.bytes_per_element()
        )
    }
}
