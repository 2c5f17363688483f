//! X, bias and Y of a launch, on a device or in the simulator.

use kernels_gpu::linear::{Configuration, Output};

use super::{Linear, LinearError, LinearOperand, Pieces};
use crate::formats::{Axis, Layout};
use crate::ops::Placed;
use crate::ops::dense_launch::{is_aligned, swizzle};
use crate::tensor_map::{DevicePtr, L2Promotion, TensorElement, TensorMapSpec};

/// The operands beside the weights.
#[derive(Clone, Copy)]
pub(crate) struct Operands {
    pub(crate) x: Placed,
    /// The bias and how many elements it has.
    pub(crate) bias: Option<(DevicePtr, usize)>,
    pub(crate) y: Placed,
}

impl Operands {
    /// Whether they are the problem's.
    pub(crate) fn check(&self, problem: &Linear) -> Result<(), LinearError> {
        for (operand, placed, columns) in
            [(LinearOperand::X, self.x, problem.num_inputs), (LinearOperand::Y, self.y, problem.num_outputs)]
        {
            let shape = placed.shape;
            if shape.layout != Layout::RowMajor || placed.dtype != problem.dtype {
                return Err(LinearError::Layout { operand, dtype: problem.dtype });
            }
            let sizes = [(Axis::Row, problem.num_tokens, shape.num_rows), (Axis::Column, columns, shape.num_cols)];
            if let Some((axis, expected, found)) = sizes.into_iter().find(|(_, expected, found)| expected != found) {
                return Err(LinearError::Shape { operand, axis, expected: expected as u64, found: found as u64 });
            }
        }
        match self.bias {
            Some((_, found)) if found != problem.num_outputs => {
                Err(LinearError::Bias { expected: problem.num_outputs as u64, found: found as u64 })
            }
            _ => Ok(()),
        }
    }

    /// Whether tensor copies can read X where it is.
    pub(crate) fn reads_in_place(&self) -> bool {
        is_aligned(self.x)
    }

    /// The tensor map of X for a kernel: boxes of columns and tokens. With K = 0 there is no X; `zeros` are 16 bytes of them.
    pub(crate) fn x_map<A>(&self, configuration: &Configuration<A>, zeros: DevicePtr) -> TensorMapSpec<2> {
        let size = self.x.dtype.size_bytes() as u64;
        let shape = self.x.shape;
        let (address, dims, line) = if shape.num_cols == 0 {
            (zeros, [16 / size, 1], 16)
        } else {
            let line = shape.leading_dimension as u64 * size;
            (self.x.address, [shape.num_cols as u64, shape.num_rows as u64], line)
        };
        TensorMapSpec {
            element: TensorElement::from(self.x.dtype),
            address,
            dims,
            strides_bytes: [size, line],
            box_dims: configuration.x_box,
            element_strides: [1; 2],
            swizzle: swizzle(configuration.x_swizzle),
            l2_promotion: L2Promotion::Bytes256,
        }
    }

    /// Where sums go, as the kernel is told.
    pub(crate) fn output(&self, pieces: &Pieces, workspace: DevicePtr, counters: DevicePtr) -> Output {
        let bias = self.bias.map_or(DevicePtr(0), |(bias, _)| bias);
        // SAFETY: nothing is read here; that the bias lives and stays as it is is a promise of whoever launches.
        let bias = unsafe { bias.array() };
        Output {
            y: self.y.address.as_mut_ptr(),
            leading_dimension: self.y.shape.leading_dimension as u64,
            num_outputs: self.y.shape.num_cols as u32,
            num_tokens: self.y.shape.num_rows as u32,
            bias,
            workspace: workspace.as_mut_ptr(),
            counters: counters.as_mut_ptr(),
            slots: pieces.num_slots,
            row_blocks: pieces.row_blocks,
        }
    }
}
