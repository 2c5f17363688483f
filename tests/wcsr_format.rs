//! Windowed rows: every invariant has a matrix that breaks it, every conversion is compared bit for bit.

use std::sync::Arc;

use hopper_sparse::Dtype;
use hopper_sparse::formats::{
    Axis, Coo, Csr, CsrPattern, FormatError, PANEL_COLS, RowOrder, Wcsr, WcsrPattern, WcsrView, WindowShape,
    WindowStatistics,
};
use hopper_sparse::generate::banded;
use hopper_sparse::reference::SparseRows;
use hopper_sparse::{bf16, f16};
use proptest::prelude::*;

const W8: WindowShape = WindowShape { rows: 8, group: 1 };
const W8X8: WindowShape = WindowShape { rows: 8, group: 8 };
const W64: WindowShape = WindowShape { rows: 64, group: 1 };
const BEYOND_32_BITS: usize = 1 << 32;

/// The bits of each value, so that -0.0 and NaN compare as what they are.
fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn reversed(num_rows: usize) -> RowOrder {
    RowOrder::try_new((0..num_rows as u32).rev().collect()).expect("a permutation")
}

/// A matrix whose rows hold these columns, each entry a value of its own.
fn of_rows(num_cols: usize, rows: &[&[u32]]) -> Csr<f64> {
    let mut row_offsets = vec![0];
    for row in rows {
        row_offsets.push(row_offsets[row_offsets.len() - 1] + row.len() as u64);
    }
    let col_indices = rows.concat();
    let values = (1..=col_indices.len()).map(|value| value as f64).collect();
    Csr::try_new(rows.len(), num_cols, row_offsets, col_indices, values).expect("a good matrix")
}

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
fn an_order_is_a_permutation() {
    let order = RowOrder::try_new(vec![2, 0, 1]).expect("a permutation");
    assert_eq!((order.rows(), order.places()), ([2, 0, 1].as_slice(), [1, 2, 0].as_slice()));
    assert!(RowOrder::try_new(vec![]).is_ok());
    assert_eq!(
        RowOrder::try_new(vec![0, 2]),
        Err(FormatError::IndexOutOfRange { axis: Axis::Row, index: 2, size: 2, entry: 1 })
    );
    assert_eq!(RowOrder::try_new(vec![1, 0, 1]), Err(FormatError::RowRepeated { row: 1, first: 0, second: 2 }));
    let csr = of_rows(4, &[&[0], &[1]]);
    let refusal = FormatError::Length { array: "rows", expected: 2, found: 3 };
    assert_eq!(Wcsr::from_csr_ordered(csr.view(), W8, order.clone()), Err(refusal.clone()));
    assert_eq!(WcsrPattern::from_csr_ordered(csr.pattern(), W8, order.clone()), Err(refusal.clone()));
    assert_eq!(WcsrPattern::try_new(2, 4, W8, vec![0, 0], vec![], Some(order)), Err(refusal));
}

/// Groups of panels, padded with `padding`.
fn padded(groups: &[u32], length: usize, padding: u32) -> Vec<u32> {
    let mut groups = groups.to_vec();
    groups.resize(length, padding);
    groups
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

#[test]
fn a_small_matrix_lies_where_the_format_says() {
    let csr = of_rows(20, &[&[3, 17], &[], &[0, 3]]);
    let wcsr = csr.to_wcsr(W8).expect("small");
    assert_eq!(wcsr.pattern().window_offsets(), [0, 1]);
    assert_eq!(wcsr.pattern().groups(), padded(&[0, 3, 17], 16, 20));
    let mut expected = vec![0.0; 128];
    (expected[1], expected[2], expected[32], expected[33]) = (1.0, 2.0, 3.0, 4.0);
    assert_eq!(wcsr.values(), expected);
    let groups = csr.to_wcsr(W8X8).expect("small");
    assert_eq!((groups.pattern().window_offsets(), groups.pattern().groups()), ([0, 1].as_slice(), [0, 2].as_slice()));
    let mut expected = vec![0.0; 128];
    (expected[3], expected[9], expected[32], expected[35]) = (1.0, 2.0, 3.0, 4.0);
    assert_eq!(groups.values(), expected);
    let ordered = Wcsr::from_csr_ordered(csr.view(), W8X8, reversed(3)).expect("small");
    let mut expected = vec![0.0; 128];
    (expected[35], expected[41], expected[0], expected[3]) = (1.0, 2.0, 3.0, 4.0);
    assert_eq!(ordered.values(), expected);
    assert_eq!(ordered.view().rows(), Some([2, 1, 0].as_slice()));
    assert_eq!(ordered.to_csr(), csr);
}

#[test]
fn the_widest_matrix_is_held() {
    let size = BEYOND_32_BITS - 1;
    let csr = of_rows(size, &[&[0, u32::MAX - 1], &[7, 1 << 31]]);
    for shape in WindowShape::ALL {
        let wcsr = csr.to_wcsr(shape).expect("few panels");
        assert_eq!(wcsr.to_csr(), csr);
        let last = wcsr.pattern().groups().len() - 1;
        let padding = size.div_ceil(shape.group) as u32;
        // Columns 0, 7, 2^31 and the last: padding behind them, or groups of which 0 and 7 share one.
        assert_eq!(wcsr.pattern().groups()[last], padding);
        assert!(wcsr.view().check().is_ok());
        assert_eq!(WindowStatistics::of(csr.pattern(), shape), wcsr.pattern().window_statistics(4));
        let elsewhere = of_rows(size, &[&[1 << 30], &[]]);
        assert_eq!(wcsr.rebuild(elsewhere.view()), Err(FormatError::OutsidePattern { row: 0, col: 1 << 30 }));
    }
}

#[test]
fn what_memory_cannot_hold_is_a_sentence() {
    // One panel of 128 x 16 f64 for each of 2^32 - 1 windows would be 2^55 bytes: the dense matrix is as large.
    let rows = 1 << 20;
    let matrix = Csr::<f64>::try_new(rows, BEYOND_32_BITS - 1, vec![0; rows + 1], vec![], vec![]).expect("no entry");
    let refusal = matrix.to_wcsr(W64).expect("nothing to hold").to_dense().expect_err("2^55 bytes");
    assert!(refusal.to_string().ends_with("bytes of memory are wanted, and cannot be had"), "{refusal}");
}

#[test]
fn values_that_are_easily_lost_are_kept() {
    let payload = f64::from_bits(0x7ff8_dead_beef_0001);
    let values = vec![-0.0, 0.0, payload, f64::INFINITY, f64::MIN_POSITIVE / 8.0];
    let csr = Coo::try_new(3, 70, vec![2, 0, 2, 1, 0], vec![69, 3, 1, 0, 0], values).expect("in range").to_csr();
    for shape in WindowShape::ALL {
        let back = csr.to_wcsr(shape).expect("small").to_csr();
        // The explicit +0.0 is lost, and nothing else.
        assert_eq!(bits(back.values()), bits(&[f64::MIN_POSITIVE / 8.0, f64::INFINITY, payload, -0.0]));
        assert_eq!(back.row_offsets(), [0, 1, 2, 4]);
    }
}

#[test]
fn patterns_are_shared_and_values_replaced() {
    let csr = of_rows(200, &[&[1, 150], &[0]]);
    for order in [None, Some(reversed(2))] {
        let wcsr = match order {
            None => csr.to_wcsr(W64),
            Some(order) => Wcsr::from_csr_ordered(csr.view(), W64, order),
        };
        let wcsr = wcsr.expect("small");
        let rebuilt = wcsr.rebuild(csr.map_values(|value| value * 2.0).view()).expect("same entries");
        assert!(Arc::ptr_eq(wcsr.pattern(), rebuilt.pattern()));
        assert_eq!(rebuilt.to_csr().values(), [2.0, 4.0, 6.0]);
        // Row 1 may have an entry wherever its window stores a column.
        assert!(wcsr.rebuild(of_rows(200, &[&[], &[150]]).view()).is_ok());
        for col in [2, 149, 151, 199] {
            let outside = of_rows(200, &[&[], &[col]]);
            assert_eq!(wcsr.rebuild(outside.view()), Err(FormatError::OutsidePattern { row: 1, col: col.into() }));
        }
        assert!(matches!(
            wcsr.rebuild(of_rows(3, &[&[], &[]]).view()),
            Err(FormatError::OtherSize { expected_cols: 200, found_cols: 3, .. })
        ));
        assert_eq!(wcsr.cast::<bf16>().to_csr().values(), [1.0, 2.0, 3.0].map(bf16::from_f32));
        let shared = wcsr.with_values(vec![f16::ONE; 64 * PANEL_COLS]);
        assert!(matches!(shared, Err(FormatError::PaddingNotZero { .. })), "padding is checked");
    }
}

#[test]
fn empty_matrices_pass_through_every_conversion() {
    for (rows, cols) in [(0, 0), (0, 5), (5, 0), (3, 4), (200, 1)] {
        let csr = Coo::<f64>::new(rows, cols).expect("a small matrix").to_csr();
        for shape in WindowShape::ALL {
            let wcsr = Wcsr::from_csr_ordered(csr.view(), shape, reversed(rows)).expect("nothing to hold");
            assert_eq!((wcsr.num_panels(), wcsr.pattern().num_windows()), (0, rows.div_ceil(shape.rows)));
            assert_eq!((wcsr.to_csr(), wcsr.to_dense()), (csr.clone(), csr.to_dense()));
            let statistics = WindowStatistics::of(csr.pattern(), shape);
            assert_eq!((statistics.num_panels, statistics.max_panels, statistics.num_columns), (0, 0, 0));
            assert_eq!((statistics.fill(), statistics.fetched_per_entry()), (0.0, 0.0));
            assert_eq!(statistics, wcsr.pattern().window_statistics(0));
        }
    }
}

#[test]
fn statistics_are_what_a_count_by_hand_says() {
    // Nine rows of 20 columns: the first window stores 0, 7, 8 and 19, the second 19 alone.
    let rows: [&[u32]; 9] = [&[0, 7], &[], &[8], &[], &[], &[], &[7, 19], &[], &[19]];
    let csr = of_rows(20, &rows);
    let statistics = WindowStatistics::of(csr.pattern(), W8);
    let counted = (statistics.num_windows, statistics.num_panels, statistics.num_columns, statistics.max_panels);
    assert_eq!((counted, statistics.num_entries), ((2, 2, 5, 1), 6));
    assert_eq!((statistics.fill(), statistics.fetched_per_entry()), (6.0 / 256.0, 5.0 / 6.0));
    assert_eq!(statistics.num_bytes(Dtype::Bf16), 2 * (128 * 2 + 16 * 4) + 3 * 8);
    // By groups of eight all 20 columns of the first window, and 16..20 of the second.
    let statistics = WindowStatistics::of(csr.pattern(), W8X8);
    assert_eq!((statistics.num_panels, statistics.num_columns, statistics.max_panels), (3, 24, 2));
    assert_eq!(statistics.num_bytes(Dtype::F64), 3 * (128 * 8 + 2 * 4) + 3 * 8);
    // Backwards the first window holds rows 8 to 1, the second row 0.
    let statistics = WindowStatistics::of_ordered(csr.pattern(), W8, &reversed(9));
    assert_eq!((statistics.num_panels, statistics.num_columns), (2, 5));
}

/// What is stored of a row inside of the matrix.
fn stored_row(view: &WcsrView<'_, f64>, row: usize) -> Vec<(usize, u64)> {
    let mut stored = Vec::new();
    view.for_each_entry(row, |col, value| stored.push((col, value.to_bits())));
    stored
}

/// Checks all that must hold of a matrix in one shape and order.
fn check_windows(csr: &Csr<f64>, shape: WindowShape, order: Option<RowOrder>) {
    let statistics = match &order {
        None => WindowStatistics::of(csr.pattern(), shape),
        Some(order) => WindowStatistics::of_ordered(csr.pattern(), shape, order),
    };
    let wcsr = match order.clone() {
        None => csr.to_wcsr(shape),
        Some(order) => Wcsr::from_csr_ordered(csr.view(), shape, order),
    }
    .expect("small");
    let (view, pattern) = (wcsr.view(), wcsr.pattern());
    assert_eq!(view.check(), Ok(()));
    let (offsets, groups) = (view.window_offsets.to_vec(), view.groups.to_vec());
    let checked = WcsrPattern::try_new(csr.num_rows(), csr.num_cols(), shape, offsets, groups, order.clone());
    assert_eq!(checked.as_ref(), Ok(&**pattern), "building keeps the invariants");
    assert_eq!(statistics, pattern.window_statistics(csr.num_entries() as u64));
    assert_eq!(statistics.num_panels, wcsr.num_panels() as u64);
    let held = size_of_val(view.values) + size_of_val(view.groups) + size_of_val(view.window_offsets);
    assert_eq!(statistics.num_bytes(Dtype::F64), held as u128);
    let kept = |csr: &Csr<f64>| -> Vec<(u32, u64)> {
        let entries = csr.col_indices().iter().copied().zip(bits(csr.values()));
        entries.filter(|&(_, bits)| bits != 0).collect()
    };
    assert_eq!(kept(&wcsr.to_csr()), kept(csr));
    assert_eq!(format!("{:?}", wcsr.to_dense()), format!("{:?}", csr.to_dense()), "as text, for NaN");
    let again = wcsr.rebuild(csr.view()).expect("the same entries");
    assert_eq!(bits(again.values()), bits(wcsr.values()));
    // The rows, by a plain union.
    let mut num_columns = 0;
    for window in 0..pattern.num_windows() {
        let places = window * shape.rows..((window + 1) * shape.rows).min(csr.num_rows());
        let rows: Vec<usize> =
            places.map(|place| order.as_ref().map_or(place, |order| order.rows()[place] as usize)).collect();
        let mut union: Vec<usize> = Vec::new();
        for &row in &rows {
            let groups = csr.view().row(row).0.iter().map(|&col| col as usize / shape.group * shape.group);
            union.extend(groups.flat_map(|col| (col..col + shape.group).filter(|&col| col < csr.num_cols())));
        }
        union.sort_unstable();
        union.dedup();
        num_columns += union.len() as u64;
        for &row in &rows {
            let (columns, values) = csr.view().row(row);
            let value = |col| columns.binary_search(&(col as u32)).map_or(0, |at| values[at].to_bits());
            let expected: Vec<_> = union.iter().map(|&col| (col, value(col))).collect();
            assert_eq!(stored_row(&view, row), expected, "row {row} in windows of {shape}");
        }
    }
    assert_eq!(statistics.num_columns, num_columns);
}

#[test]
fn every_shape_holds_odd_matrices() {
    let full: Vec<u32> = (0..301).collect();
    let mut mostly_empty = vec![[].as_slice(); 130];
    (mostly_empty[0], mostly_empty[64], mostly_empty[129]) = (&full[5..6], &full, &full[300..]);
    let single: Vec<&[u32]> = (0..131).map(|row| if row % 3 == 0 { &full[..1] } else { &full[..0] }).collect();
    let matrices = [
        of_rows(301, &mostly_empty),
        of_rows(301, &[&full]),
        of_rows(1, &single),
        of_rows(1, &[&[0]]),
        of_rows(17, &[&[16], &[8], &[0]]),
        of_rows(301, &[full.as_slice(); 9]),
    ];
    for csr in &matrices {
        for shape in WindowShape::ALL {
            check_windows(csr, shape, None);
            check_windows(csr, shape, Some(reversed(csr.num_rows())));
        }
    }
}

#[test]
fn many_windows_are_split_and_joined_without_a_seam() {
    // Enough entries for several tasks, columns far apart, and empty rows between.
    let (rows, cols) = (14_000_u32, 90_000_000_u32);
    let mut coo = Coo::new(rows as usize, cols as usize).expect("a small matrix");
    for row in (0..rows).filter(|row| row % 3 != 0) {
        let spread = if row < 7_000 { 1 } else { 1 << 11 };
        for step in 0..5_u32 {
            coo.push(row as usize, ((row / 7 + step * 997) % 40_000 * spread) as usize, f64::from(row + step))
                .expect("in");
        }
    }
    let csr = coo.to_csr();
    for shape in WindowShape::ALL {
        let order =
            RowOrder::try_new((0..rows).map(|place| place * 9 % rows).collect()).expect("9 and 14,000 share no factor");
        for wcsr in [csr.to_wcsr(shape), Wcsr::from_csr_ordered(csr.view(), shape, order.clone())] {
            let wcsr = wcsr.expect("some megabytes");
            assert_eq!(wcsr.view().check(), Ok(()));
            assert_eq!(wcsr.to_csr(), csr);
        }
        let built = WcsrPattern::from_csr_ordered(csr.pattern(), shape, order.clone()).expect("good");
        let statistics = WindowStatistics::of_ordered(csr.pattern(), shape, &order);
        assert_eq!(statistics, built.window_statistics(csr.num_entries() as u64));
    }
}

/// A matrix of up to 300 rows and columns, and an order of its rows.
fn sparse_matrix() -> impl Strategy<Value = (Csr<f64>, RowOrder)> {
    (1..300_usize, 1..300_usize).prop_flat_map(|(rows, cols)| {
        let entry = (0..rows, 0..cols, prop_oneof![-2.0..2.0_f64, Just(0.0), Just(-0.0), Just(f64::NAN)]);
        let order = Just((0..rows as u32).collect::<Vec<_>>()).prop_shuffle();
        (prop::collection::vec(entry, 0..400), order).prop_map(move |(entries, order)| {
            let mut coo = Coo::new(rows, cols).expect("a small matrix");
            for (row, col, value) in entries {
                coo.push(row, col, value).expect("in range");
            }
            (coo.to_csr(), RowOrder::try_new(order).expect("a permutation"))
        })
    })
}

proptest! {
    #[test]
    fn windows_hold_what_csr_held((csr, order) in sparse_matrix(), shape in 0..WindowShape::ALL.len()) {
        check_windows(&csr, WindowShape::ALL[shape], None);
        check_windows(&csr, WindowShape::ALL[shape], Some(order));
    }

    #[test]
    fn a_compacting_order_is_a_permutation_and_better((csr, _) in sparse_matrix(), shape in 0..WindowShape::ALL.len()) {
        let shape = WindowShape::ALL[shape];
        if let Some(order) = RowOrder::compacting(csr.pattern(), shape) {
            prop_assert_eq!(&RowOrder::try_new(order.rows().to_vec()).expect("a permutation"), &order);
            let own = WindowStatistics::of(csr.pattern(), shape);
            let found = WindowStatistics::of_ordered(csr.pattern(), shape, &order);
            prop_assert!((found.num_panels, found.num_columns) < (own.num_panels, own.num_columns));
            check_windows(&csr, shape, Some(order));
        }
    }

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

#[test]
fn a_compacting_order_puts_rows_together_that_share_columns() {
    // Three kinds of rows by turns, each kind with columns of its own: windows of one kind store 20 columns, not 60.
    let kinds = [0, 20, 40].map(|first| (first..first + 20).collect::<Vec<u32>>());
    let rows: Vec<&[u32]> = (0..96).map(|row| kinds[row % 3].as_slice()).collect();
    let csr = of_rows(60, &rows);
    let order = RowOrder::compacting(csr.pattern(), W8).expect("a better one");
    let found = WindowStatistics::of_ordered(csr.pattern(), W8, &order);
    assert_eq!((found.num_panels, found.num_columns), (24, 240));
    assert_eq!(WindowStatistics::of(csr.pattern(), W8).num_columns, 720);
    // Already together, nothing is better.
    let sorted: Vec<&[u32]> = (0..96).map(|row| kinds[row / 32].as_slice()).collect();
    assert_eq!(RowOrder::compacting(of_rows(60, &sorted).pattern(), W8), None);
    for empty in [of_rows(5, &[]), of_rows(5, &[&[], &[]])] {
        assert_eq!(RowOrder::compacting(empty.pattern(), W64), None);
    }
}

#[test]
fn a_compacting_order_is_the_same_on_any_number_of_threads() {
    let band = banded(9000, 16, 1);
    let shuffled: Vec<u32> = (0..9000).map(|row| row * 4567 % 9000).collect();
    let mut coo = Coo::new(9000, 9000).expect("small");
    for (place, &row) in shuffled.iter().enumerate() {
        band.view()
            .row(row as usize)
            .0
            .iter()
            .for_each(|&col| coo.push(place, col as usize, 1.0_f32).expect("in range"));
    }
    let csr = coo.to_csr();
    let fill = |order: &RowOrder| WindowStatistics::of_ordered(csr.pattern(), W64, order).fill();
    let orders = [1, 3].map(|num_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads).build().expect("threads");
        pool.install(|| RowOrder::compacting(csr.pattern(), W64)).expect("a better one")
    });
    assert_eq!(orders[0], orders[1]);
    assert!(fill(&orders[0]) > 15.0 * WindowStatistics::of(csr.pattern(), W64).fill(), "the band is found again");
}

#[test]
fn a_pattern_alone_is_that_of_its_matrix() {
    let csr = of_rows(40, &[&[1, 30], &[2]]);
    let pattern: &CsrPattern = csr.pattern();
    let alone = WcsrPattern::from_csr(pattern, W8).expect("small");
    assert_eq!(&alone, &**csr.to_wcsr(W8).expect("small").pattern());
    assert_eq!((alone.num_rows(), alone.num_cols(), alone.window(), alone.order()), (2, 40, W8, None));
}
