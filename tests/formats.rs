//! Formats: every invariant has a matrix that breaks it, every conversion is compared bit for bit.

use std::collections::BTreeMap;
use std::sync::Arc;

use hopper_sparse::formats::{
    AnyBcsr, Axis, Bcsr, BcsrPattern, BlockShape, Coo, Csr, CsrPattern, Dense, FillStatistics, FormatError, Layout,
};
use hopper_sparse::{bf16, f16};
use proptest::prelude::*;

const BEYOND_32_BITS: usize = 1 << 32;

/// The bits of each value, so that -0.0 and NaN compare as what they are.
fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn coo_refuses_what_breaks_an_invariant() {
    let too_large = |axis| FormatError::SizeTooLarge { axis, size: BEYOND_32_BITS as u64 };
    assert_eq!(Coo::<f32>::new(BEYOND_32_BITS, 1), Err(too_large(Axis::Row)));
    assert_eq!(Coo::<f32>::new(1, BEYOND_32_BITS), Err(too_large(Axis::Column)));
    assert!(Coo::<f32>::new(BEYOND_32_BITS - 1, BEYOND_32_BITS - 1).is_ok());
    let length = |array, found| FormatError::Length { array, expected: 1, found };
    assert_eq!(Coo::try_new(2, 2, vec![0], vec![], vec![1.0]), Err(length("col_indices", 0)));
    assert_eq!(Coo::try_new(2, 2, vec![0], vec![1], vec![1.0, 2.0]), Err(length("values", 2)));
    let range = |axis, index, size, entry| FormatError::IndexOutOfRange { axis, index, size, entry };
    assert_eq!(Coo::try_new(2, 3, vec![0, 2], vec![0, 0], vec![1.0, 2.0]), Err(range(Axis::Row, 2, 2, 1)));
    assert_eq!(Coo::try_new(2, 3, vec![0, 1], vec![3, 0], vec![1.0, 2.0]), Err(range(Axis::Column, 3, 3, 0)));
    let mut coo = Coo::new(2, 3).expect("a small matrix");
    coo.push(1, 2, 1.0_f32).expect("in range");
    assert_eq!(coo.push(2, 0, 1.0), Err(range(Axis::Row, 2, 2, 1)));
    assert_eq!(coo.push(0, 3, 1.0), Err(range(Axis::Column, 3, 3, 1)));
    assert_eq!(coo.num_entries(), 1);
}

#[test]
fn csr_refuses_what_breaks_an_invariant() {
    let refusal = |rows, cols, offsets: &[u64], columns: &[u32]| {
        CsrPattern::try_new(rows, cols, offsets.to_vec(), columns.to_vec()).expect_err("an invariant is broken")
    };
    assert_eq!(
        refusal(BEYOND_32_BITS, 1, &[0], &[]),
        FormatError::SizeTooLarge { axis: Axis::Row, size: BEYOND_32_BITS as u64 }
    );
    assert_eq!(
        refusal(0, BEYOND_32_BITS, &[0], &[]),
        FormatError::SizeTooLarge { axis: Axis::Column, size: BEYOND_32_BITS as u64 }
    );
    assert_eq!(refusal(2, 2, &[0, 0], &[]), FormatError::Length { array: "row_offsets", expected: 3, found: 2 });
    assert_eq!(refusal(0, 0, &[], &[]), FormatError::Length { array: "row_offsets", expected: 1, found: 0 });
    assert_eq!(refusal(1, 2, &[1, 1], &[0]), FormatError::FirstOffset { found: 1 });
    assert_eq!(refusal(2, 2, &[0, 2, 1], &[0]), FormatError::OffsetsDecrease { row: 1, begin: 2, end: 1 });
    assert_eq!(refusal(1, 2, &[0, 2], &[0]), FormatError::LastOffset { expected: 1, found: 2 });
    assert_eq!(
        refusal(2, 2, &[0, 1, 2], &[0, 2]),
        FormatError::IndexOutOfRange { axis: Axis::Column, index: 2, size: 2, entry: 1 }
    );
    assert_eq!(refusal(1, 3, &[0, 2], &[2, 1]), FormatError::ColumnsNotIncreasing { row: 0, previous: 2, found: 1 });
    assert_eq!(refusal(1, 3, &[0, 2], &[1, 1]), FormatError::ColumnsNotIncreasing { row: 0, previous: 1, found: 1 });
    assert_eq!(
        Csr::try_new(1, 1, vec![0, 1], vec![0], vec![1.0_f32, 2.0]),
        Err(FormatError::Length { array: "values", expected: 1, found: 2 })
    );
}

#[test]
fn bcsr_refuses_what_breaks_an_invariant() {
    type Pattern = BcsrPattern<64, 16>;
    let refusal = |rows, cols, offsets: &[u64], columns: &[u32]| {
        Pattern::try_new(rows, cols, offsets.to_vec(), columns.to_vec()).expect_err("an invariant is broken")
    };
    assert_eq!(
        refusal(BEYOND_32_BITS, 1, &[0], &[]),
        FormatError::SizeTooLarge { axis: Axis::Row, size: BEYOND_32_BITS as u64 }
    );
    // 65 rows are two block rows, 17 columns two block columns.
    assert_eq!(refusal(65, 17, &[0, 0], &[]), FormatError::Length { array: "row_offsets", expected: 3, found: 2 });
    assert_eq!(refusal(64, 17, &[1, 1], &[0]), FormatError::FirstOffset { found: 1 });
    assert_eq!(refusal(65, 17, &[0, 2, 1], &[0]), FormatError::OffsetsDecrease { row: 1, begin: 2, end: 1 });
    assert_eq!(refusal(64, 17, &[0, 2], &[0]), FormatError::LastOffset { expected: 1, found: 2 });
    assert_eq!(
        refusal(64, 17, &[0, 1], &[2]),
        FormatError::IndexOutOfRange { axis: Axis::Column, index: 2, size: 2, entry: 0 }
    );
    assert_eq!(refusal(64, 17, &[0, 2], &[1, 1]), FormatError::ColumnsNotIncreasing { row: 0, previous: 1, found: 1 });
    let pattern = Arc::new(Pattern::try_new(65, 17, vec![0, 1, 2], vec![0, 1]).expect("a good pattern"));
    assert_eq!(
        Bcsr::from_parts(Arc::clone(&pattern), vec![0.0_f32; 64 * 16]),
        Err(FormatError::Length { array: "values", expected: 2048, found: 1024 })
    );
    let mut values = vec![0.0_f32; 2048];
    values[1024] = 1.0;
    assert!(Bcsr::from_parts(Arc::clone(&pattern), values.clone()).is_ok(), "row 64, column 16 is inside");
    values[1025] = f32::NAN;
    assert_eq!(
        Bcsr::from_parts(Arc::clone(&pattern), values.clone()),
        Err(FormatError::PaddingNotZero { row: 64, col: 17 })
    );
    values[1025] = 0.0;
    values[1024 + 16] = 1.0;
    assert_eq!(Bcsr::from_parts(pattern, values), Err(FormatError::PaddingNotZero { row: 65, col: 16 }));
}

#[test]
fn block_shapes_are_read_and_refused() {
    for shape in BlockShape::ALL {
        assert_eq!(BlockShape::parse(&shape.to_string()), Ok(shape));
    }
    assert_eq!("64X128".parse(), Ok(BlockShape { rows: 64, cols: 128 }));
    assert_eq!(BlockShape::parse("32x32"), Err(FormatError::BlockShapeNotOffered { rows: 32, cols: 32 }));
    for text in ["", "x", "64", "64x", "64x64x64", "-64x64", "64*64", "99999999999999999999x64"] {
        assert_eq!(BlockShape::parse(text), Err(FormatError::BlockShapeSyntax), "{text:?}");
    }
    let sentence = BlockShape::parse("8x8").expect_err("not offered").to_string();
    assert!(sentence.starts_with("blocks of 8x8 are not offered") && sentence.contains("128x64"), "{sentence}");
    assert_eq!(
        AnyBcsr::from_csr(empty(1, 1).view(), BlockShape { rows: 0, cols: 0 }),
        Err(FormatError::BlockShapeNotOffered { rows: 0, cols: 0 })
    );
}

fn empty(num_rows: usize, num_cols: usize) -> Csr<f64> {
    Coo::new(num_rows, num_cols).expect("a small matrix").to_csr()
}

#[test]
fn empty_matrices_pass_through_every_conversion() {
    for (rows, cols) in [(0, 0), (0, 5), (5, 0), (3, 4), (200, 1)] {
        let csr = empty(rows, cols);
        assert_eq!((csr.num_rows(), csr.num_cols(), csr.num_entries()), (rows, cols, 0));
        assert_eq!(csr.to_coo().to_csr(), csr);
        assert_eq!(csr.transpose().transpose(), csr);
        for shape in BlockShape::ALL {
            let blocks = AnyBcsr::from_csr(csr.view(), shape).expect("nothing to hold");
            assert_eq!(blocks.num_blocks(), 0);
            assert_eq!(blocks.to_csr(), csr);
            assert_eq!(blocks.to_dense(), csr.to_dense());
            let statistics = FillStatistics::of(csr.view(), shape);
            assert_eq!((statistics.num_blocks, statistics.fill, statistics.block_density), (0, 0.0, 0.0));
        }
    }
}

#[test]
fn the_widest_matrix_is_held() {
    let size = BEYOND_32_BITS - 1;
    let csr = Csr::try_new(1, size, vec![0, 2], vec![0, u32::MAX - 1], vec![1.0_f32, 2.0]).expect("a wide row");
    let blocks = Bcsr::<f32, 64, 16>::from_csr(csr.view()).expect("two blocks");
    assert_eq!(blocks.num_blocks(), 2);
    assert_eq!(blocks.to_csr(), csr);
}

#[test]
fn what_memory_cannot_hold_is_a_sentence() {
    // 2^20 x (2^32 - 1) x 8 bytes: more than an address has bits for.
    let rows = 1 << 20;
    let matrix = Csr::<f64>::try_new(rows, BEYOND_32_BITS - 1, vec![0; rows + 1], vec![], vec![]).expect("no entry");
    let refusal = matrix.to_dense().expect_err("2^55 bytes");
    assert!(refusal.to_string().ends_with("bytes of memory are wanted, and cannot be had"), "{refusal}");
}

#[test]
fn duplicates_add_up_in_their_order_and_are_rounded_once() {
    // In f32 steps 2^24 + 1 + 1 sticks at 2^24; rounded once it is 2^24 + 2.
    let mut coo = Coo::new(2, 2).expect("a small matrix");
    for value in [16_777_216.0_f32, 1.0, 1.0] {
        coo.push(1, 0, value).expect("in range");
    }
    coo.push(0, 1, 5.0).expect("in range");
    let csr = coo.to_csr();
    assert_eq!((csr.row_offsets(), csr.col_indices()), ([0, 1, 2].as_slice(), [1, 0].as_slice()));
    assert_eq!(csr.values(), [5.0, 16_777_218.0]);
}

#[test]
fn values_that_are_easily_lost_are_kept() {
    let payload = f64::from_bits(0x7ff8_dead_beef_0001);
    let values = vec![-0.0, 0.0, payload, f64::INFINITY, f64::MIN_POSITIVE / 8.0];
    let csr = Coo::try_new(3, 70, vec![2, 0, 2, 1, 0], vec![69, 3, 1, 0, 0], values).expect("in range").to_csr();
    let expected = [f64::MIN_POSITIVE / 8.0, 0.0, f64::INFINITY, payload, -0.0];
    assert_eq!(bits(csr.values()), bits(&expected));
    assert_eq!(bits(csr.transpose().transpose().values()), bits(&expected));
    // Blocks lose the explicit +0.0, and nothing else.
    let back = Bcsr::<f64, 64, 32>::from_csr(csr.view()).expect("small").to_csr();
    assert_eq!(bits(back.values()), bits(&[expected[0], expected[2], expected[3], expected[4]]));
    assert_eq!(back.row_offsets(), [0, 1, 2, 4]);
}

#[test]
fn patterns_are_shared_and_values_replaced() {
    let csr = Csr::try_new(2, 2, vec![0, 1, 2], vec![1, 0], vec![1.0_f64, 1e-9]).expect("good");
    let other = csr.with_values(vec![bf16::ONE, bf16::ZERO]).expect("two values");
    assert!(Arc::ptr_eq(csr.pattern(), other.pattern()));
    assert_eq!(other.num_entries(), 2, "a zero stays an entry");
    assert!(matches!(csr.with_values(vec![1.0_f32]), Err(FormatError::Length { array: "values", .. })));
    assert_eq!(csr.cast::<f16>().values(), [f16::ONE, f16::ZERO]);
    assert_eq!(csr.map_values(|value| -value).values(), [-1.0, -1e-9]);

    let blocks = Bcsr::<f64, 64, 64>::from_csr(csr.view()).expect("small");
    let rebuilt = blocks.rebuild(csr.map_values(|value| value * 2.0).view()).expect("same entries");
    assert!(Arc::ptr_eq(blocks.pattern(), rebuilt.pattern()));
    assert_eq!(rebuilt.to_csr().values(), [2.0, 2e-9]);
    assert!(matches!(blocks.rebuild(empty(2, 3).view()), Err(FormatError::OtherSize { found_cols: 3, .. })));
    let wide = Csr::try_new(1, 200, vec![0, 1], vec![150], vec![1.0]).expect("good");
    let elsewhere = Csr::try_new(1, 200, vec![0, 1], vec![10], vec![1.0]).expect("good");
    assert_eq!(
        Bcsr::<f64, 64, 64>::from_csr(wide.view()).expect("small").rebuild(elsewhere.view()),
        Err(FormatError::OutsidePattern { row: 0, col: 10 })
    );
}

#[test]
fn fill_statistics_count_blocks() {
    // Two entries in block (0, 0), one in (0, 1), one in (1, 1) of 64x16 blocks; 70 x 40 has 2 x 3 blocks.
    let csr = Csr::try_new(
        70,
        40,
        (0..=70).map(|row| [0, 3, 4][usize::from(row > 0) + usize::from(row > 64)]).collect(),
        vec![0, 15, 16, 31],
        vec![1.0_f32; 4],
    )
    .expect("good");
    let statistics = FillStatistics::of(csr.view(), BlockShape { rows: 64, cols: 16 });
    assert_eq!((statistics.num_blocks, statistics.num_entries), (3, 4));
    assert_eq!(statistics.fill, 4.0 / (3.0 * 1024.0));
    assert_eq!(statistics.block_density, 0.5);
    assert_eq!(BcsrPattern::<64, 16>::from_csr(csr.view()).fill_statistics(4), statistics);
}

/// A matrix as a map: the plainest form there is.
fn sparse_matrix() -> impl Strategy<Value = (usize, usize, Vec<(usize, usize, f64)>)> {
    (1..300_usize, 1..300_usize).prop_flat_map(|(rows, cols)| {
        let entry = (0..rows, 0..cols, prop_oneof![-2.0..2.0_f64, Just(0.0), Just(-0.0), Just(f64::INFINITY)]);
        (Just(rows), Just(cols), prop::collection::vec(entry, 0..400))
    })
}

fn to_coo(rows: usize, cols: usize, entries: &[(usize, usize, f64)]) -> Coo<f64> {
    let mut coo = Coo::new(rows, cols).expect("a small matrix");
    for &(row, col, value) in entries {
        coo.push(row, col, value).expect("in range");
    }
    coo
}

proptest! {
    #[test]
    fn coo_to_csr_is_the_map((rows, cols, entries) in sparse_matrix()) {
        let mut map = BTreeMap::new();
        for &(row, col, value) in &entries {
            map.entry((row, col)).and_modify(|sum| *sum += value).or_insert(value);
        }
        let csr = to_coo(rows, cols, &entries).try_to_csr().expect("small");
        let found: Vec<_> = (0..rows)
            .flat_map(|row| {
                let (columns, values) = csr.view().row(row);
                columns.iter().zip(values).map(move |(&col, &value)| ((row, col as usize), value.to_bits()))
            })
            .collect();
        let expected: Vec<_> = map.into_iter().map(|(place, value)| (place, value.to_bits())).collect();
        prop_assert_eq!(found, expected);
        let (pattern, values) = (csr.pattern(), csr.values());
        let checked = CsrPattern::try_new(rows, cols, pattern.row_offsets().to_vec(), pattern.col_indices().to_vec());
        prop_assert_eq!(&checked.expect("to_csr keeps the invariants"), &**pattern);
        let back = csr.to_coo().to_csr();
        prop_assert_eq!(bits(back.values()), bits(values));
        prop_assert_eq!(back.pattern(), pattern);
    }

    #[test]
    fn blocks_hold_what_csr_held((rows, cols, entries) in sparse_matrix(), shape in 0..8_usize) {
        let csr = to_coo(rows, cols, &entries).to_csr();
        let blocks = AnyBcsr::from_csr(csr.view(), BlockShape::ALL[shape]).expect("small");
        let view = blocks.view();
        let again = AnyBcsr::try_new(
            rows, cols, view.block, view.row_offsets.to_vec(), view.col_indices.to_vec(), view.values.to_vec(),
        );
        prop_assert!(again.is_ok(), "from_csr keeps the invariants: {:?}", again.err());
        prop_assert_eq!(FillStatistics::of(csr.view(), view.block).num_blocks, view.num_blocks() as u64);
        let kept: Vec<_> = csr.values().iter().map(|value| value.to_bits()).filter(|&bits| bits != 0).collect();
        prop_assert_eq!(bits(blocks.to_csr().values()), kept);
        // Compared as text, because infinities add up to NaN.
        let (a, b): (Dense<f64>, Dense<f64>) = (csr.to_dense().expect("small"), blocks.to_dense().expect("small"));
        prop_assert_eq!(format!("{a:?}"), format!("{b:?}"));
    }

    #[test]
    fn transposing_swaps_indices((rows, cols, entries) in sparse_matrix()) {
        let swapped: Vec<_> = entries.iter().map(|&(row, col, value)| (col, row, value)).collect();
        let (direct, transposed) =
            (to_coo(cols, rows, &swapped).to_csr(), to_coo(rows, cols, &entries).to_csr().transpose());
        prop_assert_eq!(direct.pattern(), transposed.pattern());
        prop_assert_eq!(bits(direct.values()), bits(transposed.values()));
    }
}

#[test]
fn many_rows_are_split_and_joined_without_a_seam() {
    // Enough entries for several tasks, with a duplicate in every row and empty rows between.
    let (rows, cols) = (40_000, 97);
    let mut coo = Coo::new(rows, cols).expect("a small matrix");
    for step in 0..5_usize {
        for row in (0..rows).rev().filter(|row| row % 3 != 0) {
            let col = (row * 31 + [0, 7, 0, 50, 7][step] * 13) % cols;
            coo.push(row, col, (step + 1) as f32).expect("in range");
        }
    }
    let csr = coo.to_csr();
    let full_rows = rows - rows.div_ceil(3);
    assert_eq!(csr.num_entries(), full_rows * 3);
    assert_eq!(csr.values().iter().sum::<f32>(), full_rows as f32 * 15.0);
    let mut sorted: Vec<f32> = csr.view().row(1).1.to_vec();
    sorted.sort_by(f32::total_cmp);
    assert_eq!(sorted, [4.0, 4.0, 7.0]);
    let blocks = Bcsr::<f32, 128, 16>::from_csr(csr.view()).expect("small");
    assert_eq!(blocks.to_csr(), csr);
    assert_eq!(
        csr.to_dense().expect("small"),
        Dense::from_vec(dense_of(&coo), rows, cols, Layout::RowMajor).expect("the right length")
    );
}

fn dense_of(coo: &Coo<f32>) -> Vec<f32> {
    let mut data = vec![0.0; coo.num_rows() * coo.num_cols()];
    for ((&row, &col), &value) in coo.row_indices().iter().zip(coo.col_indices()).zip(coo.values()) {
        data[row as usize * coo.num_cols() + col as usize] += value;
    }
    data
}
