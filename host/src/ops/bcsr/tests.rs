use super::*;
use crate::formats::{AnyBcsr, Csr};
use crate::generate::GeneratorSpec;
use half::bf16;

fn matrix(spec: &str) -> Csr<bf16> {
    GeneratorSpec::parse(spec).expect("a specification").generate().expect("a matrix").cast()
}

fn plan(spec: &str, block: &str, num_cols: usize, b: Layout) -> BcsrPlan {
    let block = BlockShape::parse(block).expect("a block shape");
    let a = AnyBcsr::from_csr(matrix(spec).view(), block).expect("a conversion");
    let view = a.view();
    BcsrSpmm::new(&view, num_cols, Dtype::Bf16, b, Layout::RowMajor).plan(&view, 132).expect("a plan")
}

#[test]
fn kernels_by_problem() {
    let blocks = "blocks:512x512,64x64,0.3";
    for (block, num_cols, layout, name) in [
        ("128x64", 4096, Layout::RowMajor, "bcsr_bf16_128x64_row_n256_c2"),
        ("128x64", 4096, Layout::ColumnMajor, "bcsr_bf16_128x64_col_n256_c2"),
        ("128x64", 512, Layout::RowMajor, "bcsr_bf16_128x64_row_n256"),
        ("128x64", 1200, Layout::RowMajor, "bcsr_bf16_128x64_row_n256"),
        ("128x128", 960, Layout::RowMajor, "bcsr_bf16_128x64_row_n256_c2"),
        ("128x32", 960, Layout::RowMajor, "bcsr_bf16_128x32_row_n256"),
        ("128x32", 1, Layout::RowMajor, "bcsr_bf16_128x32_row_n64"),
        ("128x16", 128, Layout::ColumnMajor, "bcsr_bf16_128x16_col_n64"),
        ("64x64", 129, Layout::RowMajor, "bcsr_bf16_64x64_row_n128"),
        ("64x64", 512, Layout::RowMajor, "bcsr_bf16_64x64_row_n512"),
        ("64x16", 300, Layout::ColumnMajor, "bcsr_bf16_64x16_col_n512"),
    ] {
        assert_eq!(plan(blocks, block, num_cols, layout).configuration().spec.name, name);
    }
}

#[test]
fn padding_lies_outside() {
    let plan = plan("uniform:300x300,0.02", "64x16", 32, Layout::RowMajor);
    let group = plan.configuration.group;
    assert_eq!(group, 4);
    assert_eq!(plan.blocks.len() % group, 0);
    let (inside, outside): (Vec<&[u32; 2]>, Vec<&[u32; 2]>) =
        plan.blocks.iter().partition(|entry| (entry[0] as usize) < plan.num_blocks);
    assert_eq!(inside.len(), plan.num_blocks);
    assert!(inside.iter().enumerate().all(|(index, entry)| index == entry[0] as usize && entry[1] < 19));
    assert!(outside.iter().all(|entry| **entry == [plan.num_blocks as u32, 19]));
}

#[test]
fn wide_blocks_are_two_of_64() {
    let plan = plan("blocks:256x256,128x128,1.0", "128x128", 64, Layout::RowMajor);
    assert_eq!(plan.blocks, [[0, 0], [1, 1], [2, 2], [3, 3], [4, 0], [5, 1], [6, 2], [7, 3]]);
}

#[test]
fn refusals_are_sentences() {
    let problem = BcsrSpmm {
        num_rows: 10,
        num_inner: 10,
        num_cols: 10,
        block: BlockShape { rows: 128, cols: 64 },
        dtype: Dtype::F64,
        output: Dtype::F64,
        b_layout: Layout::RowMajor,
        c_layout: Layout::RowMajor,
    };
    let said = |problem: BcsrSpmm| problem.check().expect_err("a refusal").to_string();
    assert_eq!(said(problem), "the BCSR kernels take bf16 and f16, not f64");
    let problem = BcsrSpmm { dtype: Dtype::Bf16, output: Dtype::F16, ..problem };
    assert_eq!(said(problem), "the BCSR kernels write bf16 or f32 from bf16, not f16");
    let problem = BcsrSpmm { output: Dtype::Bf16, num_cols: 1 << 31, ..problem };
    assert_eq!(said(problem), "a matrix with an axis of 2147483648 is too large for the device: at most 2147482623");
}

#[test]
fn another_matrix_is_refused() {
    let problem = *plan("uniform:300x200,0.05", "64x16", 10, Layout::RowMajor).problem();
    for (spec, block) in [("uniform:300x201,0.05", "64x16"), ("uniform:300x200,0.05", "64x32")] {
        let block = BlockShape::parse(block).expect("a block shape");
        let a = AnyBcsr::from_csr(matrix(spec).view(), block).expect("a conversion");
        let error = problem.plan(&a.view(), 132).expect_err("A has another size or other blocks");
        assert_eq!(error, PlanError::NotPlanned { operand: Operand::A });
    }
}
