//! Each constraint, kept and violated, and the sentence of the violation.

use super::*;

/// A row-major 1000 x 300 bf16 matrix with 304 elements from row to row, in boxes of 128 rows of 64.
const MATRIX: TensorMapSpec<2> = TensorMapSpec {
    element: TensorElement::Bf16,
    address: DevicePtr(0x7f00_0000_0100),
    dims: [300, 1000],
    strides_bytes: [2, 608],
    box_dims: [64, 128],
    element_strides: [1, 1],
    swizzle: TensorMapSwizzle::Bytes128,
    l2_promotion: L2Promotion::Bytes256,
};

#[track_caller]
fn refuses(spec: TensorMapSpec<2>, sentence: &str) {
    let error = spec.check().expect_err(sentence);
    assert_eq!(error.to_string(), format!("a tensor map cannot be made: {sentence}"));
}

#[test]
fn a_padded_matrix_is_accepted() {
    assert_eq!(MATRIX.check(), Ok(()));
    assert_eq!(MATRIX.box_bytes(), 16_384);
}

#[test]
fn addresses_are_aligned_to_16_bytes() {
    refuses(
        TensorMapSpec { address: DevicePtr(0x108), ..MATRIX },
        "the address is 0x108, but must be a multiple of 16",
    );
}

#[test]
fn dimensions_are_1_to_2_to_the_32() {
    assert_eq!(TensorMapSpec { dims: [1, 1 << 32], ..MATRIX }.check(), Ok(()));
    refuses(
        TensorMapSpec { dims: [0, 1000], ..MATRIX },
        "the number of elements along dimension 0 is 0, but must be 1 to 4294967296",
    );
    refuses(
        TensorMapSpec { dims: [300, (1 << 32) + 1], ..MATRIX },
        "the number of elements along dimension 1 is 4294967297, but must be 1 to 4294967296",
    );
}

#[test]
fn strides_are_multiples_of_16_below_2_to_the_40() {
    refuses(
        TensorMapSpec { strides_bytes: [2, 600], ..MATRIX },
        "the stride of dimension 1 in bytes is 600, but must be a multiple of 16",
    );
    refuses(
        TensorMapSpec { strides_bytes: [4, 608], ..MATRIX },
        "the stride of dimension 0 in bytes is 4, but must be 2",
    );
    assert_eq!(TensorMapSpec { strides_bytes: [2, (1 << 40) - 16], ..MATRIX }.check(), Ok(()));
    refuses(
        TensorMapSpec { strides_bytes: [2, 1 << 40], ..MATRIX },
        "the stride of dimension 1 in bytes is 1099511627776, but must be 16 to 1099511627760",
    );
}

#[test]
fn boxes_have_at_most_256_elements_a_side_and_rows_of_16_bytes() {
    refuses(
        TensorMapSpec { box_dims: [64, 257], ..MATRIX },
        "the number of elements of the box along dimension 1 is 257, but must be 1 to 256",
    );
    refuses(
        TensorMapSpec { box_dims: [60, 128], ..MATRIX },
        "the length of the box along dimension 0 in bytes is 120, but must be a multiple of 16",
    );
}

#[test]
fn box_rows_fit_the_swizzle() {
    for (swizzle, span) in
        [(TensorMapSwizzle::Bytes32, 32), (TensorMapSwizzle::Bytes64, 64), (TensorMapSwizzle::Bytes128, 128)]
    {
        let fitting = TensorMapSpec { box_dims: [span / 2, 8], swizzle, ..MATRIX };
        assert_eq!(fitting.check(), Ok(()));
        refuses(
            TensorMapSpec { box_dims: [span, 8], ..fitting },
            &format!("the length of the box along dimension 0 in bytes is {}, but must be 16 to {span}", 2 * span),
        );
    }
    let plain = TensorMapSpec { box_dims: [256, 8], swizzle: TensorMapSwizzle::None, ..MATRIX };
    assert_eq!(plain.check(), Ok(()));
}

#[test]
fn element_strides_are_1_to_8() {
    refuses(
        TensorMapSpec { element_strides: [1, 9], ..MATRIX },
        "the element stride of dimension 1 is 9, but must be 1 to 8",
    );
}
