//! Dense matrices, and tensors of tokens and heads, by address.

use crate::element::Dtype;
use crate::formats::{HeadsShape, HeadsStrides, Shape};
use crate::tensor_map::DevicePtr;

/// Where a dense matrix lies in the memory of a device, or of the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Of element (0, 0).
    pub(crate) address: DevicePtr,
    /// Rows, columns, and how they lie.
    pub(crate) shape: Shape,
    /// The type of the elements.
    pub(crate) dtype: Dtype,
}

/// Where Q, K, V or O of attention lies in the memory of a device, or of the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlacedHeads {
    /// Of the first row.
    pub(crate) address: DevicePtr,
    /// Sequences, tokens, heads, D.
    pub(crate) shape: HeadsShape,
    /// Between rows, in elements.
    pub(crate) strides: HeadsStrides,
    /// The type of the elements.
    pub(crate) dtype: Dtype,
}

impl Placed {
    /// The largest power of two that divides the address of every line.
    pub(crate) fn line_alignment(&self) -> u64 {
        let bits = self.address.0 | (self.shape.leading_dimension * self.dtype.size_bytes()) as u64;
        // Where both are 0 there is no element.
        1 << bits.trailing_zeros().min(63)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Layout;

    #[test]
    fn alignment_is_that_of_base_and_distance() {
        let alignment = |address, leading_dimension| {
            let shape = Shape { num_rows: 4, num_cols: 4, leading_dimension, layout: Layout::RowMajor };
            Placed { address: DevicePtr(address), shape, dtype: Dtype::Bf16 }.line_alignment()
        };
        assert_eq!(alignment(512, 128), 256);
        assert_eq!(alignment(512, 131), 2);
        assert_eq!(alignment(512, 132), 8);
        assert_eq!(alignment(516, 128), 4);
    }
}
