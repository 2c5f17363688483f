//! Shapes that must agree.

use super::{Operand, PlanError};
use crate::formats::Axis;

/// A matrix' numbers of rows and columns.
pub(crate) type Shape = (usize, usize);

/// Checks that C = alpha A B + beta C is defined for matrices of these shapes.
pub(crate) fn check_spmm_shapes(a: Shape, b: Shape, c: Shape) -> Result<(), PlanError> {
    let agree = |(operand, axis, found): (Operand, Axis, usize),
                 (other, other_axis, expected): (Operand, Axis, usize)| {
        if expected == found {
            return Ok(());
        }
        let (expected, found) = (expected as u64, found as u64);
        Err(PlanError::ShapeMismatch { operand, axis, expected, found, other, other_axis })
    };
    agree((Operand::B, Axis::Row, b.0), (Operand::A, Axis::Column, a.1))?;
    agree((Operand::C, Axis::Row, c.0), (Operand::A, Axis::Row, a.0))?;
    agree((Operand::C, Axis::Column, c.1), (Operand::B, Axis::Column, b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_disagreement_is_a_sentence() {
        assert_eq!(check_spmm_shapes((2, 3), (3, 4), (2, 4)), Ok(()));
        for (a, b, c, sentence) in [
            ((2, 3), (5, 4), (2, 4), "B has 5 rows, but A has 3 columns"),
            ((2, 3), (3, 4), (1, 4), "C has 1 rows, but A has 2 rows"),
            ((2, 3), (3, 4), (2, 9), "C has 9 columns, but B has 4 columns"),
        ] {
            let error = check_spmm_shapes(a, b, c).expect_err("the shapes disagree");
            assert_eq!(error.to_string(), sentence);
        }
    }
}
