//! Plans.

use super::*;
use crate::bf16;
use crate::formats::{Csr, RowOrder, Wcsr};

fn matrix(shape: WindowShape) -> Wcsr<bf16> {
    let csr = Csr::try_new(3, 40, vec![0, 2, 2, 3], vec![0, 39, 17], vec![bf16::ONE; 3]).expect("a matrix");
    csr.to_wcsr(shape).expect("a shape on offer")
}

fn problem(num_cols: usize) -> WcsrSpmm {
    let matrix = matrix(WindowShape { rows: 64, group: 8 });
    WcsrSpmm::new(&matrix.view(), num_cols, Dtype::Bf16, Layout::RowMajor, Layout::RowMajor)
}

#[test]
fn tiles_are_as_wide_as_what_they_save() {
    let name = |num_cols, rows| {
        let matrix = matrix(WindowShape { rows, group: 8 });
        let problem = WcsrSpmm::new(&matrix.view(), num_cols, Dtype::F32, Layout::RowMajor, Layout::ColumnMajor);
        problem.plan(&matrix.view(), 132).expect("a plan").configuration().spec.name
    };
    assert_eq!(name(1, 64), "wcsr_bf16_64x8_n64");
    assert_eq!(name(64, 64), "wcsr_bf16_64x8_n64");
    assert_eq!(name(65, 64), "wcsr_bf16_64x8_n128");
    assert_eq!(name(4096, 64), "wcsr_bf16_64x8_n128");
    assert_eq!(name(192, 128), "wcsr_bf16_128x8_n256");
    assert_eq!(name(320, 128), "wcsr_bf16_128x8_n128");
    assert_eq!(name(512, 128), "wcsr_bf16_128x8_n256");
    assert_eq!(name(7, 8), "wcsr_bf16_8x8_n64");
    assert_eq!(name(128, 16), "wcsr_bf16_16x8_n128");
}

#[test]
fn refusals_are_sentences() {
    let sentence = |problem: WcsrSpmm| problem.check().expect_err("refused").to_string();
    assert_eq!(problem(1).check(), Ok(()));
    assert_eq!(sentence(WcsrSpmm { dtype: Dtype::F64, ..problem(1) }), "the WCSR kernels take bf16 and f16, not f64");
    assert_eq!(
        sentence(WcsrSpmm { window: WindowShape { rows: 32, group: 1 }, ..problem(1) }),
        "no kernel multiplies windows of 32x1"
    );
    assert_eq!(
        sentence(WcsrSpmm { b_layout: Layout::ColumnMajor, ..problem(1) }),
        "the WCSR kernels read B by rows: give it row-major"
    );
}

#[test]
fn a_width_that_no_kernel_has_is_refused() {
    let matrix = matrix(WindowShape { rows: 64, group: 8 });
    let error = problem(5).plan_with(&matrix.view(), 132, TileWidth::Columns(96)).unwrap_err();
    assert_eq!(error.to_string(), "no kernel for windows of 64x8 has tiles of 96 columns");
    assert!(problem(5).plan_with(&matrix.view(), 132, TileWidth::Columns(128)).is_ok());
}

#[test]
fn a_plan_serves_what_it_was_made_for() {
    let (planned, other) = (matrix(WindowShape { rows: 64, group: 8 }), matrix(WindowShape { rows: 128, group: 8 }));
    assert_eq!(problem(5).plan(&other.view(), 132).unwrap_err(), PlanError::NotPlanned { operand: Operand::A });
    let plan = problem(5).plan(&planned.view(), 132).expect("a plan");
    assert_eq!((plan.num_tiles(), plan.num_splits(), plan.workspace_bytes()), (1, 0, 0));
    assert_eq!(
        plan.to_string(),
        "wcsr_bf16_64x8_n64: 1 tiles of 64x64 on 1 workers, 0 of them parts, 6 stages of 64 columns, imbalance 1.00"
    );
}

#[test]
fn a_plan_for_rows_in_an_order_serves_such_rows() {
    let shape = WindowShape { rows: 64, group: 8 };
    let own = matrix(shape);
    let in_order = |rows: Vec<u32>| {
        let order = RowOrder::try_new(rows).expect("a permutation");
        Wcsr::from_csr_ordered(own.to_csr().view(), shape, order).expect("as many rows")
    };
    let (reversed, turned) = (in_order(vec![2, 1, 0]), in_order(vec![1, 2, 0]));
    let plan = problem(5).plan(&reversed.view(), 132).expect("a plan");
    assert_eq!(
        plan.to_string(),
        "wcsr_bf16_64x8_n64: 1 tiles of 64x64 on 1 workers, 0 of them parts, 6 stages of 64 columns, imbalance 1.00, \
         rows of C put back in their own order"
    );
    let not_planned = Err(PlanError::NotPlanned { operand: Operand::A });
    assert_eq!(plan.check_sparse(&reversed.view()), Ok(()));
    assert_eq!(plan.check_sparse(&turned.view()), Ok(()));
    assert_eq!(plan.check_sparse(&own.view()), not_planned);
    let plan = problem(5).plan(&own.view(), 132).expect("a plan");
    assert_eq!(plan.check_sparse(&reversed.view()), not_planned);
}

#[test]
fn an_order_of_other_rows_is_refused() {
    let own = matrix(WindowShape { rows: 64, group: 8 });
    for rows in [vec![1, 0], vec![3, 2, 1, 0]] {
        let order = RowOrder::try_new(rows).expect("a permutation");
        let error = problem(5).plan(&WcsrView { order: Some(&order), ..own.view() }, 132).unwrap_err();
        let places = order.rows().len();
        assert_eq!(error.to_string(), format!("an order of {places} rows is none for the 3 rows of A"));
    }
}
