//! Damaged files: whatever stands in them, a reader returns.

use hopper_sparse::formats::{AnyBcsr, BlockShape, RowOrder, Wcsr, WindowShape};
use hopper_sparse::generate::uniform;
use hopper_sparse::io::Existing;
use hopper_sparse::io::matrix_market::{ComplexPolicy, ExplicitZeros, ReadOptions, read, read_bytes};
use hopper_sparse::io::packed::{bcsr_from_bytes, csr_from_bytes, save_bcsr, save_csr, save_wcsr, wcsr_from_bytes};

const ROUNDS: u64 = 4000;

/// A xorshift generator: the same damage in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

/// Pieces that mean something to a reader.
const PIECES: [&[u8]; 16] = [
    b"%",
    b"\n",
    b"\r\n",
    b" ",
    b"-",
    b"0",
    b"4294967296",
    b"18446744073709551615",
    b"99999999999999999999",
    b"nan",
    b"1e999",
    b"symmetric",
    b"array",
    b"pattern",
    b"\xff\xfe",
    b"{\"",
];

/// Changes one to four places: flips, removals, insertions, repetitions, cuts.
fn damage(random: &mut Random, sample: &[u8]) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.below(256) as u8,
            2 => drop(bytes.drain(at..(at + random.below(9)).min(bytes.len()))),
            3 => drop(bytes.splice(at..at, PIECES[random.below(PIECES.len())].iter().copied())),
            4 => {
                let piece = bytes[at..(at + random.below(40)).min(bytes.len())].to_vec();
                let to = random.below(bytes.len());
                drop(bytes.splice(to..to, piece));
            }
            _ => bytes.truncate(bytes.len().max(1) - random.below(bytes.len().min(30))),
        }
    }
    bytes
}

const TEXTS: [&str; 5] = [
    "%%MatrixMarket matrix coordinate real general\n% c\n3 4 5\n1 1 1.0\n2 3 -2.5e-3\n3 4 inf\n1 2 0\n1 1 7\n",
    "%%MatrixMarket matrix coordinate pattern symmetric\n4 4 3\n2 1\n4 3\n4 4\n",
    "%%MatrixMarket matrix coordinate integer skew-symmetric\r\n3 3 2\r\n2 1 -7\r\n3 1 12\r\n",
    "%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 1 0\n2 1 5 -6\n",
    "%%MatrixMarket matrix array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n",
];

/// Reads text with every choice of options; counts what was taken.
fn read_text(text: &[u8]) -> usize {
    let mut taken = 0;
    for zeros in [ExplicitZeros::Keep, ExplicitZeros::Drop] {
        for complex in [ComplexPolicy::Refuse, ComplexPolicy::RealPart] {
            match read_bytes::<f32>(text, &ReadOptions { zeros, complex }) {
                Ok(loaded) => {
                    taken += 1;
                    assert!(loaded.matrix.row_indices().iter().all(|&row| row < loaded.header.num_rows));
                    assert!(loaded.matrix.col_indices().iter().all(|&col| col < loaded.header.num_cols));
                }
                Err((_, error)) => assert!(!error.to_string().is_empty()),
            }
        }
    }
    taken
}

#[test]
fn damaged_matrix_market_is_read_or_refused() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut taken = 0;
    for round in 0..ROUNDS {
        let sample = TEXTS[round as usize % TEXTS.len()].as_bytes();
        taken += read_text(&damage(&mut random, sample));
    }
    assert!(taken > 100 && taken < 4 * ROUNDS as usize, "{taken} taken: the damage is too great or too small");
}

#[test]
fn damaged_gzip_is_read_or_refused() {
    use std::io::Write;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.mtx.gz");
    let mut random = Random(0xfeed_beef_0bad_cafe);
    for round in 0..ROUNDS / 4 {
        // The damage is done to the compressed bytes, or to the text before.
        let sample = TEXTS[round as usize % TEXTS.len()].as_bytes();
        let text = if round % 2 == 0 { sample.to_vec() } else { damage(&mut random, sample) };
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&text).expect("into memory");
        let whole = encoder.finish().expect("into memory");
        let bytes = if round % 2 == 0 { damage(&mut random, &whole) } else { whole };
        std::fs::write(&path, bytes).expect("written");
        if let Err(error) = read::<f64>(&path, &ReadOptions::default()) {
            assert!(error.to_string().contains("a.mtx.gz"), "{error}");
        }
    }
}

#[test]
fn damaged_packed_matrices_are_loaded_or_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let csr = uniform(90, 50, 0.01, 0);
    let blocks = AnyBcsr::from_csr(csr.view(), BlockShape { rows: 64, cols: 16 }).expect("small");
    let (csr_path, blocks_path) = (folder.path().join("csr"), folder.path().join("blocks"));
    save_csr(&csr_path, csr.view(), Existing::Refuse).expect("saved");
    save_bcsr(&blocks_path, blocks.view(), Existing::Refuse).expect("saved");
    let order = RowOrder::try_new((0..90).rev().collect()).expect("a permutation");
    let windows = Wcsr::from_csr_ordered(csr.view(), WindowShape { rows: 8, group: 8 }, order).expect("small");
    let windows_path = folder.path().join("windows");
    save_wcsr(&windows_path, windows.view(), Existing::Refuse).expect("saved");
    let samples = [csr_path, blocks_path, windows_path].map(|path| std::fs::read(path).expect("read"));
    let mut random = Random(0x0dd0_5eed_1234_5678);
    let mut refused = 0;
    for round in 0..ROUNDS {
        // Most damage to the header, which is short beside the blocks.
        let sample = &samples[round as usize % samples.len()];
        let header = sample.len().min(400);
        let mut bytes = damage(&mut random, &sample[..header]);
        bytes.extend_from_slice(&sample[header..]);
        let (as_csr, as_blocks) = (csr_from_bytes::<f32>(&bytes), bcsr_from_bytes::<f32>(&bytes));
        let as_windows = wcsr_from_bytes::<f32>(&bytes);
        for error in [as_csr.err(), as_blocks.err(), as_windows.err()].into_iter().flatten() {
            refused += 1;
            assert!(!error.to_string().is_empty());
        }
    }
    // Every file is refused as the two kinds that it is not.
    assert!(refused > 2 * ROUNDS, "{refused}");
}
