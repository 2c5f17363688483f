//! Exactness at every sparsity, and masks that want to break it.

use super::strip::{Walk, first_group, last_group};
use super::*;
use crate::formats::Csr;
use crate::{bf16, f16};

/// A generator of bits, the same each time.
struct Bits(u64);

impl Bits {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 24
    }
}

fn matrix(rows: usize, cols: usize, is_set: impl Fn(usize, usize, u64) -> bool) -> Dense<bf16> {
    let mut bits = Bits(rows as u64 * 7 + cols as u64);
    let mut dense = Dense::zeros(rows, cols, Layout::RowMajor);
    for row in 0..rows {
        for col in 0..cols {
            let random = bits.next();
            if is_set(row, col, random % 1000) {
                dense.set(row, col, bf16::from_bits(0x3c00 | (random >> 10 & 0x3ff) as u16));
            }
        }
    }
    dense
}

fn round_trip(dense: &Dense<bf16>) -> Bitmap<bf16> {
    let bitmap = Bitmap::from_dense(dense.view()).unwrap();
    let bits = |dense: &Dense<bf16>| dense.data().iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&bitmap.to_dense().unwrap()), bits(dense));
    let set = dense.data().iter().filter(|value| value.to_f32() != 0.0).count();
    assert_eq!(bitmap.num_nonzeros(), set as u64);
    let csr = Csr::from_row_major(dense.data(), dense.num_rows(), dense.num_cols()).unwrap();
    assert_eq!(Bitmap::from_csr(csr.view()).unwrap(), bitmap);
    let parts = (bitmap.masks().to_vec(), bitmap.values().to_vec());
    assert_eq!(Bitmap::from_parts(dense.num_rows(), dense.num_cols(), parts.0, parts.1).unwrap(), bitmap);
    for strip in 0..bitmap.num_strips() {
        never_apart(bitmap.strip_masks(strip));
    }
    bitmap
}

/// No unit needs more groups than the ring has room for, with room to spare.
fn never_apart(masks: &[u32]) {
    let mut walk = Walk::new(masks);
    while let Some(unit) = walk.next() {
        let (first, last) = (first_group(&unit.positions), last_group(walk.arrived()));
        assert!(last - first < 14, "unit {}: groups {first} to {last}", unit.index);
    }
}

#[test]
fn every_sparsity_and_ragged_shapes() {
    for (index, (rows, cols)) in
        [(16, 256), (1, 1), (130, 300), (17, 1000), (40, 0), (0, 40), (200, 513)].into_iter().enumerate()
    {
        for density in [0, 1, 100, 300, 500, 700, 999, 1000] {
            round_trip(&matrix(rows, cols, |_, _, random| random < density + index as u64));
        }
    }
}

#[test]
fn adversarial_masks() {
    let one_row = round_trip(&matrix(32, 4096, |row, _, _| row == 5));
    assert!(one_row.statistics().num_realignments > 0, "the lanes of one row run away from all others");
    round_trip(&matrix(32, 4096, |row, col, _| (row == 5) != (col >= 2048 && row == 9)));
    round_trip(&matrix(32, 2048, |_, col, random| col % 128 > 40 && random < 500));
    round_trip(&matrix(64, 1024, |_, col, _| col % 4 < 2));
    round_trip(&matrix(16, 8192, |row, col, _| row % 8 == 3 && col % 8 / 2 == 1));
}

#[test]
fn signs_of_zero_and_not_a_number() {
    let mut dense = Dense::zeros(16, 64, Layout::ColumnMajor);
    dense.set(1, 2, f16::NEG_ZERO);
    dense.set(3, 4, f16::NAN);
    dense.set(5, 6, f16::NEG_INFINITY);
    dense.set(7, 8, f16::from_bits(1));
    let bitmap = Bitmap::from_dense(dense.view()).unwrap();
    let back = bitmap.to_dense().unwrap();
    assert_eq!(bitmap.num_nonzeros(), 3);
    assert_eq!(back.get(1, 2).to_bits(), 0);
    assert_eq!(back.get(3, 4).to_bits(), f16::NAN.to_bits());
    assert_eq!(back.get(5, 6), f16::NEG_INFINITY);
    assert_eq!(back.get(7, 8).to_bits(), 1);
}

#[test]
fn parts_that_are_none() {
    let bitmap = Bitmap::from_dense(matrix(20, 300, |_, _, random| random < 500).view()).unwrap();
    let (masks, values) = (bitmap.masks().to_vec(), bitmap.values().to_vec());
    let refused = |masks: Vec<u32>, values: Vec<bf16>| Bitmap::from_parts(20, 300, masks, values).unwrap_err();
    assert!(matches!(refused(masks[1..].to_vec(), values.clone()), FormatError::Length { array: "masks", .. }));
    assert!(matches!(refused(masks.clone(), values[1..].to_vec()), FormatError::Length { array: "values", .. }));
    let mut beyond = masks;
    *beyond.last_mut().unwrap() |= 1 << 31;
    assert!(matches!(refused(beyond, values), FormatError::PaddingNotZero { .. }));
}

#[test]
fn half_of_the_weights_take_little_more_than_half() {
    // As Wanda prunes: exactly half of each row.
    let dense = {
        let mut dense = matrix(256, 7168, |_, _, _| true);
        let mut bits = Bits(5);
        for row in 0..256 {
            let mut left = 3584;
            for col in 0..7168 {
                if bits.next() % (7168 - col as u64) < left {
                    left -= 1;
                    dense.set(row, col, bf16::ZERO);
                }
            }
        }
        dense
    };
    let statistics = round_trip(&dense).statistics();
    assert!(statistics.bytes_per_element < 1.18, "{statistics:?}");
}
