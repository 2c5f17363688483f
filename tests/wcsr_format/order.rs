//! Orders of rows: permutations, and those that make unions smaller.

use hopper_sparse::formats::{Axis, Coo, FormatError, RowOrder, Wcsr, WcsrPattern, WindowShape, WindowStatistics};
use hopper_sparse::generate::banded;
use proptest::prelude::*;

use super::{W8, W64, check_windows, of_rows, sparse_matrix};

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

proptest! {
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
}
