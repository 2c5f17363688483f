//! Three layers: every mask comes back bit for bit, by the layer it belongs to and at the bytes that it should take.

use hopper_sparse::formats::{Dense, FormatError, Layout, ThreeLayer, ThreeLayerParts, TileFault};
use hopper_sparse::{HalfElement, bf16, f16};
use kernels_gpu::three_layer::layout::{HEADER_AT, NIBBLES_AT, TILE_COLS, TILE_ROWS, WARPS};
use proptest::prelude::*;

/// A small generator: the tests need many bits, not good ones.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    /// True with this probability.
    fn hits(&mut self, probability: f64) -> bool {
        f64::from(self.next()) < probability * f64::from(1_u32 << 31)
    }

    /// Any 16 bits but a zero's.
    fn nonzero(&mut self) -> u16 {
        loop {
            let bits = self.next() as u16;
            if bits & 0x7fff != 0 {
                return bits;
            }
        }
    }
}

/// A matrix with nonzeros of random bits where `mask` says so, and zeros of both signs elsewhere.
fn matrix<T: HalfElement>(
    (rows, cols): (usize, usize),
    seed: u64,
    mut mask: impl FnMut(usize, usize, &mut Random) -> bool,
) -> Dense<T> {
    let mut random = Random(seed);
    let mut data = Vec::with_capacity(rows * cols);
    for row in 0..rows {
        for col in 0..cols {
            let bits = if mask(row, col, &mut random) { random.nonzero() } else { (random.next() as u16) & 0x8000 };
            data.push(T::from_bits(bits));
        }
    }
    Dense::from_vec(data, rows, cols, Layout::RowMajor).expect("as many as there are")
}

/// The bits of each element, zeros without a sign.
fn bits<T: HalfElement>(dense: &Dense<T>) -> Vec<u16> {
    dense.data().iter().map(|value| value.to_bits()).map(|bits| if bits & 0x7fff == 0 { 0 } else { bits }).collect()
}

/// Encodes, decodes and compares; the parts are a matrix again.
fn round_trip<T: HalfElement + PartialEq>(dense: &Dense<T>) -> ThreeLayer<T> {
    let encoded = ThreeLayer::from_dense(dense.view()).expect("it fits");
    assert_eq!(bits(&encoded.to_dense().expect("it fits")), bits(dense));
    let by_columns = dense.view().to_dense(Layout::ColumnMajor);
    assert!(
        parts(&ThreeLayer::from_dense(by_columns.view()).expect("it fits")) == parts(&encoded),
        "the layout matters"
    );
    let again = ThreeLayer::<T>::try_new(dense.num_rows(), dense.num_cols(), to_parts(&encoded)).expect("it is valid");
    assert!(parts(&again) == parts(&encoded));
    let nonzeros = bits(dense).iter().filter(|&&bits| bits != 0).count() as u64;
    assert_eq!(encoded.statistics().num_nonzeros(), nonzeros);
    encoded
}

fn parts<T>(matrix: &ThreeLayer<T>) -> [&[u32]; 4] {
    [matrix.tile_offsets(), matrix.words(), matrix.residual_offsets(), matrix.residual()]
}

fn to_parts<T>(matrix: &ThreeLayer<T>) -> ThreeLayerParts {
    let [tile_offsets, words, residual_offsets, residual] = parts(matrix).map(<[u32]>::to_vec);
    ThreeLayerParts { tile_offsets, words, residual_offsets, residual }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_shape_and_sparsity((rows, cols) in (0_usize..300, 0_usize..300), tenths in 0_u32..=10, seed in any::<u64>()) {
        let density = f64::from(tenths) / 10.0;
        round_trip(&matrix::<bf16>((rows, cols), seed, |_, _, random| random.hits(density)));
    }

    #[test]
    fn csr_is_the_same(seed in any::<u64>(), density in 0.0_f64..=1.0) {
        let dense = matrix::<f16>((140, 270), seed, |_, _, random| random.hits(density));
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in 0..140 {
            for (col, &value) in dense.data()[row * 270..][..270].iter().enumerate() {
                // Stored zeros, too.
                if value.to_bits() != 0 {
                    columns.push(col as u32);
                    values.push(value);
                }
            }
            offsets.push(columns.len() as u64);
        }
        let csr = hopper_sparse::formats::Csr::try_new(140, 270, offsets, columns, values).expect("a matrix");
        let encoded = ThreeLayer::from_csr(csr.view()).expect("it fits");
        prop_assert!(parts(&encoded) == parts(&ThreeLayer::from_dense(dense.view()).expect("it fits")));
    }
}

/// Masks that no random one resembles.
#[test]
fn adversarial_masks() {
    let shape = (2 * TILE_ROWS + 5, 3 * TILE_COLS + 7);
    let one_row = round_trip(&matrix::<bf16>(shape, 1, |row, _, _| row == 77));
    assert_eq!(one_row.statistics().num_residual, 0, "the other rows are all free");
    round_trip(&matrix::<f16>(shape, 2, |_, col, random| col % 5 != 0 && random.hits(0.6)));
    round_trip(&matrix::<bf16>(shape, 3, |row, col, _| row < TILE_ROWS && col < TILE_COLS));
    round_trip(&matrix::<bf16>(shape, 4, |row, _, _| row % 2 == 0));
    let one = round_trip(&matrix::<bf16>(shape, 5, |row, col, _| row == 130 && (200..203).contains(&col)));
    assert!(one.statistics().num_dummies > 0, "it is more than 15 groups from the first");
    let empty = round_trip(&matrix::<bf16>(shape, 6, |_, _, _| false));
    assert_eq!(empty.statistics().num_nonzeros(), 0);
}

/// One half of each tile dense, the other empty: as many entries as a tile can have.
#[test]
fn the_most_entries() {
    let half = round_trip(&matrix::<f16>((TILE_ROWS, TILE_COLS), 1, |row, _, _| row < TILE_ROWS / 2));
    let statistics = half.statistics();
    assert_eq!((statistics.num_first, statistics.num_surplus, statistics.num_residual), (4096, 4096, 0));
    let more = round_trip(&matrix::<f16>((TILE_ROWS, TILE_COLS), 2, |row, _, _| row < TILE_ROWS * 3 / 4));
    assert_eq!((more.statistics().num_surplus, more.statistics().num_residual), (2048, 4096));
}

/// Two of four: one layer, and no distances.
#[test]
fn exactly_two_of_four() {
    let (rows, cols) = (256, 256);
    let encoded = round_trip(&matrix::<bf16>((rows, cols), 7, |row, col, _| (col + row / 4 + col / 4) % 4 < 2));
    let statistics = encoded.statistics();
    assert_eq!(statistics.num_first, (rows * cols / 2) as u64);
    assert_eq!((statistics.num_surplus, statistics.num_dummies, statistics.num_residual), (0, 0, 0));
}

/// No slot anywhere but in the tiles that need none.
#[test]
fn all_dense() {
    let statistics = round_trip(&matrix::<bf16>((256, 130), 8, |_, _, _| true)).statistics();
    assert_eq!((statistics.num_surplus, statistics.num_residual), (0, 256 * 128 / 2));
}

#[test]
fn special_values_are_kept() {
    let specials = [0x7f80, 0xff80, 0x7fc1, 0xffff, 0x0001, 0x8001];
    let mut random = Random(3);
    let data = (0..128 * 128).map(|_| bf16::from_bits(specials[random.next() as usize % specials.len()])).collect();
    round_trip(&Dense::from_vec(data, 128, 128, Layout::RowMajor).expect("as many as there are"));
}

/// More columns than 16 bits count.
#[test]
fn columns_beyond_sixteen_bits() {
    let encoded = round_trip(&matrix::<bf16>((3, 70_000), 9, |_, col, random| col > 65_000 && random.hits(0.9)));
    assert_eq!(encoded.residual_offsets().len(), 3 * 2 + 1);
}

/// What is stored at the sparsities that count, with masks like those of Wanda: the same number in each row.
#[test]
fn bytes_and_shares() {
    let (rows, cols) = (256, 7168);
    for (sparsity, most_bytes) in [(0.5, 1.18), (0.6, 1.17), (0.7, 1.15)] {
        let mut random = Random(11);
        let mut data = vec![bf16::ZERO; rows * cols];
        for row in data.chunks_mut(cols) {
            let mut order: Vec<_> = (0..cols).map(|col| (random.next(), col)).collect();
            order.sort_unstable();
            for &(_, col) in &order[..(cols as f64 * (1.0 - sparsity)) as usize] {
                row[col] = bf16::from_bits(random.nonzero());
            }
        }
        let dense = Dense::from_vec(data, rows, cols, Layout::RowMajor).expect("as many as there are");
        let statistics = round_trip(&dense).statistics();
        println!("{statistics}, {:.4} dummies an entry", statistics.dummy_share());
        assert!((statistics.bytes_per_element() * 100.0).round() <= most_bytes * 100.0, "{statistics}");
        assert!(statistics.residual_share() < 0.01, "{statistics}");
        if sparsity == 0.5 {
            assert!(statistics.dummy_share() < 0.01, "{statistics}");
        }
    }
}

/// A broken word is refused, whichever it is.
#[test]
fn broken_tiles_are_refused() {
    let dense = matrix::<bf16>((TILE_ROWS, TILE_COLS), 12, |_, _, random| random.hits(0.45));
    let encoded = ThreeLayer::from_dense(dense.view()).expect("it fits");
    let refused = |change: &dyn Fn(&mut ThreeLayerParts)| {
        let mut parts = to_parts(&encoded);
        change(&mut parts);
        ThreeLayer::<bf16>::try_new(TILE_ROWS, TILE_COLS, parts).err()
    };
    let fault = |fault| Some(FormatError::Tile { tile: 0, fault });
    assert_eq!(refused(&|_| {}), None);
    assert_eq!(refused(&|parts| parts.words[HEADER_AT + 3] ^= 1), fault(TileFault::Header { warp: 3 }));
    assert_eq!(refused(&|parts| parts.words[4096] &= !0xf), fault(TileFault::Code { group: 0 }));
    assert_eq!(refused(&|parts| parts.words[NIBBLES_AT] &= !0xff), fault(TileFault::Distance { entry: 0 }));
    let too_many = refused(&|parts| parts.words[HEADER_AT + WARPS] = 5000);
    assert_eq!(too_many, fault(TileFault::NumEntries { most: 4096, found: 5000 }));
    assert!(matches!(
        refused(&|parts| parts.words[HEADER_AT + WARPS] -= 100),
        Some(FormatError::Tile { fault: TileFault::NumWords { .. }, .. })
    ));
    assert_eq!(refused(&|parts| parts.tile_offsets[0] = 1), Some(FormatError::FirstOffset { found: 1 }));
    let added = refused(&|parts| {
        parts.residual.push(200);
        parts.residual_offsets[TILE_ROWS] += 1;
    });
    assert!(matches!(added, Some(FormatError::IndexOutOfRange { index: 200, size: 128, .. })), "{added:?}");
}
