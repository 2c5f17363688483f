//! Pruning: how many weights go, which ones, and that they are zero to the bit.

use hopper_sparse::prune::{Pattern, PruneError, by_norms, magnitude, wanda};
use hopper_sparse::{Element, bf16, f16};

/// Weights of both signs without a visible order; no zero among them.
fn weights<T: Element>(num_rows: usize, num_cols: usize) -> Vec<T> {
    (0..num_rows * num_cols)
        .map(|index| {
            let mixed = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            T::from_f64((mixed % 4001) as f64 - 2000.5)
        })
        .collect()
}

fn num_zeros<T: Element>(weights: &[T]) -> usize {
    weights.iter().filter(|weight| weight.to_f64() == 0.0).count()
}

fn each_row_loses_its_share<T: Element>() {
    for (num_rows, num_cols) in [(1, 1), (3, 7), (17, 64), (5, 1000)] {
        let norms: Vec<f32> = (0..num_cols).map(|col| 0.25 + (col % 9) as f32).collect();
        for sparsity in [0.0, 0.3, 0.5, 0.7, 1.0] {
            let mut pruned = weights::<T>(num_rows, num_cols);
            wanda(&mut pruned, num_cols, &norms, sparsity).unwrap();
            let removed = (num_cols as f64 * sparsity) as usize;
            for (row, before) in pruned.chunks(num_cols).zip(weights::<T>(num_rows, num_cols).chunks(num_cols)) {
                assert_eq!(num_zeros(row), removed, "{num_rows} x {num_cols} at {sparsity}");
                let score = |col: usize| before[col].to_f32().abs() * norms[col];
                let of = |is_kept: bool| (0..num_cols).filter(move |&col| (row[col].to_f64() != 0.0) == is_kept);
                let most_removed = of(false).map(score).fold(0.0, f32::max);
                let least_kept = of(true).map(score).fold(f32::INFINITY, f32::min);
                assert!(most_removed <= least_kept, "{most_removed} went and {least_kept} stayed");
                assert!(of(true).all(|col| row[col] == before[col]), "a weight that stays was changed");
            }
        }
    }
}

#[test]
fn wanda_removes_the_same_share_of_each_row() {
    each_row_loses_its_share::<f32>();
    each_row_loses_its_share::<f16>();
    each_row_loses_its_share::<bf16>();
}

#[test]
fn equal_scores_go_from_the_left() {
    let mut row = [2.0_f32, -1.0, 1.0, -1.0, 1.0];
    wanda(&mut row, 5, &[1.0; 5], 0.4).unwrap();
    assert_eq!(row, [2.0, 0.0, 0.0, -1.0, 1.0]);
    let mut matrix = [1.0_f32, 1.0, 1.0, 1.0, 1.0, 0.5];
    magnitude(&mut matrix, 2, Pattern::Matrix { sparsity: 0.5 }).unwrap();
    assert_eq!(matrix, [0.0, 0.0, 1.0, 1.0, 1.0, 0.0]);
}

#[test]
fn zeros_of_both_signs_go_first_and_nan_last() {
    let mut row = [f32::NAN, 1.0, -0.0, f32::NEG_INFINITY, 0.0, 2.0];
    magnitude(&mut row, 6, Pattern::Rows { sparsity: 0.5 }).unwrap();
    assert!(row[0].is_nan());
    assert_eq!(row[1..].iter().map(|weight| weight.to_bits()).collect::<Vec<_>>(), {
        [0.0, 0.0, f32::NEG_INFINITY, 0.0, 2.0_f32].map(f32::to_bits)
    });
    let mut row = [-f32::NAN, f32::INFINITY, 3.0, 4.0];
    wanda(&mut row, 4, &[1.0; 4], 0.75).unwrap();
    assert!(row[0].is_nan() && row[1..] == [0.0; 3], "{row:?}");
}

#[test]
fn a_dead_column_goes_whole() {
    let mut pruned = weights::<f32>(8, 16);
    let norms: Vec<f32> = (0..16).map(|col| if col % 2 == 0 { 0.0 } else { 1.0 }).collect();
    wanda(&mut pruned, 16, &norms, 0.5).unwrap();
    for row in pruned.chunks(16) {
        assert!(row.iter().enumerate().all(|(col, weight)| (*weight == 0.0) == (col % 2 == 0)), "{row:?}");
    }
}

#[test]
fn a_matrix_loses_its_share_wherever_it_is() {
    // Many tasks, rows of unlike size, and scores that agree in their upper bits.
    let (num_rows, num_cols) = (600, 1001);
    let mut pruned: Vec<f32> = weights::<f32>(num_rows, num_cols);
    pruned
        .iter_mut()
        .enumerate()
        .for_each(|(index, weight)| *weight = (1.0 + weight.abs() * 1e-6) * (1 + index / num_cols) as f32);
    let before = pruned.clone();
    for sparsity in [0.0, 0.37, 0.5, 1.0] {
        let mut pruned = before.clone();
        magnitude(&mut pruned, num_cols, Pattern::Matrix { sparsity }).unwrap();
        assert_eq!(num_zeros(&pruned), (before.len() as f64 * sparsity) as usize);
        let mut order: Vec<usize> = (0..before.len()).collect();
        order.sort_by(|&one, &other| before[one].total_cmp(&before[other]).then(one.cmp(&other)));
        assert!(order[..num_zeros(&pruned)].iter().all(|&index| pruned[index] == 0.0), "others went at {sparsity}");
    }
    pruned.reverse();
    magnitude(&mut pruned, num_cols, Pattern::Matrix { sparsity: 0.5 }).unwrap();
    let of_row = |row: &[f32]| num_zeros(row);
    assert!(of_row(&pruned[..num_cols]) < of_row(&pruned[pruned.len() - num_cols..]), "rows are balanced");
}

#[test]
fn two_of_four_stay() {
    for num_cols in [1, 2, 3, 4, 5, 6, 7, 64] {
        let mut pruned = weights::<bf16>(9, num_cols);
        magnitude(&mut pruned, num_cols, Pattern::TwoOfFour).unwrap();
        for group in pruned.chunks(num_cols).flat_map(|row| row.chunks(4)) {
            assert_eq!(group.len() - num_zeros(group), group.len().min(2), "{num_cols} columns");
        }
    }
    let mut row = [1.0_f32, 2.0, 3.0, 4.0, 9.0, 8.0, 7.0];
    by_norms(&mut row, 7, &[9.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0], Pattern::TwoOfFour).unwrap();
    assert_eq!(row, [1.0, 0.0, 0.0, 4.0, 0.0, 8.0, 7.0]);
}

#[test]
fn bad_requests_change_nothing() {
    let mut row = [1.0_f32, 2.0, 3.0, 4.0];
    let rows = |sparsity| Pattern::Rows { sparsity };
    assert_eq!(magnitude(&mut row, 4, rows(1.5)), Err(PruneError::Sparsity { found: 1.5 }));
    assert!(matches!(magnitude(&mut row, 4, Pattern::Matrix { sparsity: f64::NAN }), Err(PruneError::Sparsity { .. })));
    assert_eq!(magnitude(&mut row, 3, rows(0.5)), Err(PruneError::Length { num_cols: 3, found: 4 }));
    assert_eq!(magnitude(&mut row, 0, rows(0.5)), Err(PruneError::Length { num_cols: 0, found: 4 }));
    assert_eq!(wanda(&mut row, 4, &[1.0; 3], 0.5), Err(PruneError::NumNorms { expected: 4, found: 3 }));
    let error = wanda(&mut row, 4, &[1.0, 1.0, -2.0, 1.0], 0.5).unwrap_err();
    assert_eq!(error.to_string(), "the norm of column 2 is -2, but a norm is finite and not negative");
    assert_eq!(row, [1.0, 2.0, 3.0, 4.0]);
    for pattern in [rows(0.5), Pattern::Matrix { sparsity: 0.5 }, Pattern::TwoOfFour] {
        magnitude::<f32>(&mut [], 0, pattern).unwrap();
        magnitude::<f32>(&mut [], 7, pattern).unwrap();
    }
}
