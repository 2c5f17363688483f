use super::*;
use crate::formats::Csr;
use crate::generate::GeneratorSpec;
use crate::ops::Operand;

fn plan<T: Element>(num_cols: usize, b: Layout) -> CsrPlan {
    let spec = GeneratorSpec::parse("uniform:300x200,0.05").expect("a specification");
    let a: Csr<T> = spec.generate().expect("a matrix").cast();
    let view = a.view();
    CsrSpmm::new(&view, num_cols, T::DTYPE, b, Layout::RowMajor).plan(&view).expect("a plan")
}

#[test]
fn plans_are_sentences() {
    assert_eq!(
        plan::<half::bf16>(128, Layout::RowMajor).to_string(),
        "csr_bf16: 38x1 blocks, 16 thread(s) to a row, each 8 columns by one load"
    );
    assert_eq!(
        plan::<half::f16>(1000, Layout::ColumnMajor).to_string(),
        "csr_f16: 75x8 blocks, 32 thread(s) to a row, each 4 columns by single loads"
    );
    assert_eq!(
        plan::<f32>(1, Layout::RowMajor).to_string(),
        "csr_f32: 3x1 blocks, 1 thread(s) to a row, each 1 column"
    );
    assert_eq!(plan::<f32>(0, Layout::RowMajor).to_string(), "csr_f32: nothing to compute");
}

#[test]
fn plans_say_how_rows_are_shared_out() {
    let a: Csr<f32> =
        GeneratorSpec::parse("uniform:40x1000,0.5").expect("a specification").generate().expect("a matrix").cast();
    let problem = CsrSpmm::new(&a.view(), 64, Dtype::F32, Layout::RowMajor, Layout::RowMajor);
    let sharing = RowSharing { order: RowOrder::ByLength, ..RowSharing::default() };
    let plan = problem.plan_with(&a.view(), sharing).expect("a plan");
    let num_parts: u64 = a.row_offsets().windows(2).map(|row| (row[1] - row[0]).div_ceil(256)).sum();
    assert_eq!(
        plan.to_string(),
        format!(
            "csr_f32: {}x1 blocks, 16 thread(s) to a row, each 4 columns by one load; 40 long row(s) in {num_parts} parts of up \
             to 256 entries, added up in 1 pass(es); rows by length",
            num_parts.div_ceil(8)
        )
    );
    assert_eq!(plan.num_workspace_bytes(), num_parts * 64 * 4);
    let whole =
        problem.plan_with(&a.view(), RowSharing { split: RowSplit::NEVER, ..RowSharing::default() }).expect("a plan");
    assert_eq!(whole.to_string(), "csr_f32: 5x1 blocks, 16 thread(s) to a row, each 4 columns by one load");
    assert_eq!((whole.num_workspace_bytes(), whole.num_parts(), whole.is_ordered()), (0, 0, false));
}

#[test]
fn a_less_aligned_b_takes_narrower_loads() {
    let problem = *plan::<half::bf16>(128, Layout::RowMajor).problem();
    let columns = |alignment_bytes| problem.geometry(alignment_bytes, 300).map(|geometry| geometry.columns);
    assert_eq!(columns(256), Some(Columns::Packed8));
    assert_eq!(columns(8), Some(Columns::Packed4));
    assert_eq!(columns(4), Some(Columns::Packed2));
    assert_eq!(columns(2), Some(Columns::Spread4));
}

#[test]
fn refusals_are_sentences() {
    let problem = *plan::<half::bf16>(10, Layout::RowMajor).problem();
    let said = |problem: CsrSpmm| problem.check().expect_err("a refusal").to_string();
    let wide = CsrSpmm { dtype: Dtype::F64, output: Dtype::F64, ..problem };
    assert_eq!(said(wide), "the CSR kernels take bf16, f16 and f32, not f64");
    let other = CsrSpmm { output: Dtype::F16, ..problem };
    assert_eq!(said(other), "the CSR kernels write bf16 or f32 from bf16, not f16");
    let large = CsrSpmm { num_rows: u32::MAX as usize, ..problem };
    assert_eq!(said(large), "a matrix with an axis of 4294967295 is too large for the device: at most 4294966271");
    let narrowed = CsrSpmm { dtype: Dtype::F32, output: Dtype::Bf16, ..problem };
    assert_eq!(said(narrowed), "the CSR kernels write f32 from f32, not bf16");
}

#[test]
fn another_matrix_is_refused() {
    let problem = *plan::<half::bf16>(10, Layout::RowMajor).problem();
    let a: Csr<half::bf16> =
        GeneratorSpec::parse("uniform:300x201,0.05").expect("a specification").generate().expect("a matrix").cast();
    let error = problem.plan(&a.view()).expect_err("A has 201 columns, not 200");
    assert_eq!(error, PlanError::NotPlanned { operand: Operand::A });
}
