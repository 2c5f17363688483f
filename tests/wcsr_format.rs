//! Windowed rows: every conversion is compared bit for bit, every row with a plain union.

#[path = "wcsr_format/order.rs"]
mod order;
#[path = "wcsr_format/refusals.rs"]
mod refusals;

use std::sync::Arc;

use hopper_sparse::Dtype;
use hopper_sparse::formats::{
    Coo, Csr, CsrPattern, Dense, FormatError, Layout, PANEL_COLS, RowOrder, Wcsr, WcsrPattern, WcsrView, WindowShape,
    WindowStatistics,
};
use hopper_sparse::reference::{self, SparseRows};
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

/// Groups of panels, padded with `padding`.
fn padded(groups: &[u32], length: usize, padding: u32) -> Vec<u32> {
    let mut groups = groups.to_vec();
    groups.resize(length, padding);
    groups
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
}

#[test]
fn the_reference_reads_rows_in_their_own_order() {
    let csr = of_rows(9, &[&[0, 8], &[], &[3, 4], &[8]]);
    let wcsr = Wcsr::from_csr_ordered(csr.view(), W8X8, reversed(4)).expect("small");
    let b = Dense::from_vec((0..18).map(f64::from).collect(), 9, 2, Layout::RowMajor).expect("18 elements");
    let c = Dense::<f64>::zeros(4, 2, Layout::RowMajor);
    let expected = reference::spmm(1.0, &csr.view(), b.view(), 0.0, c.view()).expect("shapes agree");
    let found = reference::spmm(1.0, &wcsr.view(), b.view(), 0.0, c.view()).expect("shapes agree");
    assert_eq!(found.values(), expected.values());
    assert_eq!(expected.values().data()[..2], [32.0, 35.0]);
}

#[test]
fn a_pattern_alone_is_that_of_its_matrix() {
    let csr = of_rows(40, &[&[1, 30], &[2]]);
    let pattern: &CsrPattern = csr.pattern();
    let alone = WcsrPattern::from_csr(pattern, W8).expect("small");
    assert_eq!(&alone, &**csr.to_wcsr(W8).expect("small").pattern());
    assert_eq!((alone.num_rows(), alone.num_cols(), alone.window(), alone.order()), (2, 40, W8, None));
}
