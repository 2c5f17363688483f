//! Every invariant has a matrix that breaks it.

use std::sync::Arc;

use hopper_sparse::formats::{Axis, FormatError, RowOrder, Wcsr, WcsrPattern, WcsrView, WindowShape};
use proptest::prelude::*;

use super::{BEYOND_32_BITS, W8, W8X8, of_rows, padded, sparse_matrix, stored_row};

#[test]
fn shapes_are_read_and_refused() {
    for shape in WindowShape::ALL {
        assert!(shape.is_offered());
        assert_eq!(WindowShape::parse(&shape.to_string()), Ok(shape));
    }
    assert_eq!("128X8".parse(), Ok(WindowShape { rows: 128, group: 8 }));
    assert_eq!(WindowShape::parse("32x1"), Err(FormatError::WindowShapeNotOffered { rows: 32, group: 1 }));
    for text in ["", "x", "64", "64x", "64x8x8", "-64x8", "64*8", "99999999999999999999x8"] {
        assert_eq!(WindowShape::parse(text), Err(FormatError::WindowShapeSyntax), "{text:?}");
    }
    let sentence = WindowShape::parse("64x2").expect_err("not offered").to_string();
    assert!(
        sentence.starts_with("windows of 64 rows by groups of 2 columns") && sentence.contains("128x8"),
        "{sentence}"
    );
    for shape in [WindowShape { rows: 0, group: 0 }, WindowShape { rows: 24, group: 1 }] {
        let refusal = FormatError::WindowShapeNotOffered { rows: shape.rows as u64, group: shape.group as u64 };
        assert_eq!(of_rows(1, &[&[0]]).to_wcsr(shape), Err(refusal.clone()));
        assert_eq!(WcsrPattern::try_new(0, 0, shape, vec![0], vec![], None), Err(refusal));
    }
}

#[test]
fn patterns_that_break_an_invariant_are_refused() {
    let refusal = |rows, cols, shape, offsets: &[u64], groups: Vec<u32>| {
        WcsrPattern::try_new(rows, cols, shape, offsets.to_vec(), groups, None).expect_err("an invariant is broken")
    };
    let too_large = |axis| FormatError::SizeTooLarge { axis, size: BEYOND_32_BITS as u64 };
    assert_eq!(refusal(BEYOND_32_BITS, 1, W8, &[0], vec![]), too_large(Axis::Row));
    assert_eq!(refusal(1, BEYOND_32_BITS, W8, &[0], vec![]), too_large(Axis::Column));
    let length = |array, expected, found| FormatError::Length { array, expected, found };
    assert_eq!(refusal(9, 2, W8, &[0, 0], vec![]), length("window_offsets", 3, 2));
    assert_eq!(refusal(0, 2, W8, &[], vec![]), length("window_offsets", 1, 0));
    assert_eq!(refusal(8, 2, W8, &[1, 1], vec![]), FormatError::FirstOffset { found: 1 });
    assert_eq!(
        refusal(9, 20, W8, &[0, 2, 1], padded(&[0], 16, 20)),
        FormatError::OffsetsDecrease { row: 1, begin: 2, end: 1 }
    );
    assert_eq!(refusal(8, 20, W8, &[0, 1], vec![0; 15]), length("groups", 16, 15));
    assert_eq!(refusal(8, 20, W8X8, &[0, 1], vec![0; 16]), length("groups", 2, 16));
    assert_eq!(refusal(8, 20, W8, &[0, u64::MAX], vec![0; 16]), length("groups", u64::MAX, 16));
    assert_eq!(
        refusal(8, 20, W8, &[0, 1], padded(&[0, 21], 16, 20)),
        FormatError::GroupOutOfRange { entry: 1, group: 21, num_groups: 20 }
    );
    // 20 columns are three groups of eight, and 3 is padding.
    assert_eq!(
        refusal(16, 20, W8X8, &[0, 1, 2], vec![0, 1, 2, 4]),
        FormatError::GroupOutOfRange { entry: 3, group: 4, num_groups: 3 }
    );
    let order = |window, previous, found| FormatError::GroupsNotIncreasing { window, previous, found };
    assert_eq!(refusal(8, 20, W8, &[0, 1], padded(&[5, 5], 16, 20)), order(0, 5, 5));
    assert_eq!(refusal(9, 20, W8X8, &[0, 0, 1], vec![2, 1]), order(1, 2, 1));
    assert_eq!(refusal(8, 20, W8X8, &[0, 1], vec![3, 1]), order(0, 3, 1));
    assert_eq!(refusal(8, 20, W8X8, &[0, 2], vec![0, 3, 3, 3]), FormatError::PanelOfPadding { window: 0 });
    assert_eq!(refusal(9, 20, W8X8, &[0, 0, 1], vec![3, 3]), FormatError::PanelOfPadding { window: 1 });
    assert_eq!(refusal(8, 20, W8, &[0, 1], padded(&[19, 20, 20, 0], 16, 20)), order(0, 20, 0));
    assert!(WcsrPattern::try_new(16, 20, W8X8, vec![0, 1, 2], vec![0, 2, 1, 3], None).is_ok());
}

#[test]
fn values_outside_of_the_matrix_must_be_zero() {
    // Ten rows in two windows; columns 8..12 in a group that reaches to 16, and a panel of one group and padding.
    let order = RowOrder::try_new(vec![9, 8, 7, 6, 5, 4, 3, 2, 0, 1]).expect("a permutation");
    let pattern = WcsrPattern::try_new(10, 12, W8X8, vec![0, 1, 2], vec![0, 1, 1, 2], Some(order)).expect("good");
    let pattern = Arc::new(pattern);
    let with = |at: usize, value: f32| {
        let mut values = vec![0.0_f32; 256];
        values[at] = value;
        Wcsr::from_parts(Arc::clone(&pattern), values)
    };
    let refusal = |row, col| Err(FormatError::PaddingNotZero { row, col });
    assert_eq!(
        Wcsr::from_parts(Arc::clone(&pattern), vec![0.0_f32; 255]),
        Err(FormatError::Length { array: "values", expected: 256, found: 255 })
    );
    for inside in [0, 11, 16, 7 * 16 + 11, 128, 128 + 16 + 3] {
        assert!(with(inside, 1.0).is_ok(), "{inside}");
    }
    assert_eq!(with(16 + 12, f32::NAN), refusal(8, 12));
    assert_eq!(with(7 * 16 + 15, 1.0), refusal(2, 15));
    assert_eq!(with(128 + 4, 1.0), refusal(0, 12));
    assert_eq!(with(128 + 16 + 8, f32::INFINITY), refusal(1, 16));
    assert_eq!(with(128 + 32, 1.0), refusal(10, 8));
    assert_eq!(with(255, f32::NAN), refusal(15, 23));
    assert!(with(255, -0.0).is_ok(), "-0.0 is a zero");
}

proptest! {
    /// One change to one array: refused, or again a matrix that keeps every promise.
    #[test]
    fn changed_arrays_are_refused_or_sound(
        (csr, order) in sparse_matrix(),
        shape in 0..WindowShape::ALL.len(),
        array in 0..5_usize,
        at in any::<prop::sample::Index>(),
        number in prop_oneof![0..40_u64, any::<u64>()],
    ) {
        let shape = WindowShape::ALL[shape];
        let wcsr = Wcsr::from_csr_ordered(csr.view(), shape, order).expect("small");
        let view = wcsr.view();
        let (mut offsets, mut groups) = (view.window_offsets.to_vec(), view.groups.to_vec());
        let mut values = view.values.to_vec();
        match array {
            0 => *at.get_mut(&mut offsets) = number,
            1 if !groups.is_empty() => *at.get_mut(&mut groups) = number as u32,
            2 if !values.is_empty() => *at.get_mut(&mut values) = f64::NAN,
            3 => groups.truncate(at.index(groups.len() + 1)),
            _ => values.truncate(at.index(values.len() + 1)),
        }
        let changed = WcsrView { window_offsets: &offsets, groups: &groups, values: &values, ..view };
        match changed.check() {
            Err(refusal) => prop_assert!(!refusal.to_string().is_empty()),
            Ok(()) => {
                prop_assert!(array < 3 || values.len() == view.values.len());
                for row in 0..csr.num_rows() {
                    let stored = stored_row(&changed, row);
                    prop_assert!(stored.is_sorted_by(|a, b| a.0 < b.0));
                    prop_assert!(stored.iter().all(|&(col, _)| col < csr.num_cols()));
                }
            }
        }
    }
}
