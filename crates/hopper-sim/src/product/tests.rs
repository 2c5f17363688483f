//! Operands that tensor copies bring, products of each kind, and what is refused.

use hopper_std::sim::MmaMajor::{K, Mn};

use super::*;
use crate::schedule::Random;
use crate::tensor_map::{TensorElement, TensorMap};

const SWIZZLES: [TensorSwizzle; 3] = [TensorSwizzle::B32, TensorSwizzle::B64, TensorSwizzle::B128];

fn bits(start: u32, leading: u32, stride: u32, swizzle: TensorSwizzle) -> u64 {
    let mode = match swizzle {
        TensorSwizzle::None => 0,
        TensorSwizzle::B128 => 1,
        TensorSwizzle::B64 => 2,
        TensorSwizzle::B32 => 3,
    };
    u64::from(start >> 4) | u64::from(leading >> 4) << 16 | u64::from(stride >> 4) << 32 | mode << 62
}

/// Shared memory, by 16-bit elements.
struct Memory(Vec<u16>);

impl Memory {
    fn new() -> Self {
        Self(vec![0xdead; 64 * 1024])
    }

    fn at(&mut self, address: u32) -> &mut u16 {
        assert!(address.is_multiple_of(2));
        &mut self.0[address as usize / 2]
    }

    /// Brings a box of a matrix whose elements are their own positions, as a tensor copy does.
    fn load(&mut self, map: &TensorMap, at: &[i32], shared: u32) {
        for piece in map.pieces(at, shared, crate::tensor_map::Way::Load) {
            for byte in (0..piece.bytes).step_by(2) {
                let from = piece.global.unwrap().wrapping_add(byte as usize).cast::<u16>();
                // SAFETY: the boxes of these tests lie inside of their matrices, which live.
                *self.at(piece.shared + byte) = unsafe { from.read() };
            }
        }
    }
}

/// A matrix of 16-bit elements, each its own position, 16-byte aligned.
fn positions(rows: usize, cols: usize) -> Vec<u128> {
    let mut words = vec![0; rows * cols / 8];
    for (index, element) in bytemuck::cast_slice_mut::<_, u16>(&mut words).iter_mut().enumerate() {
        *element = index as u16;
    }
    words
}

#[test]
fn fields_of_a_descriptor() {
    let bits = bits(0x1230, 16, 1024, TensorSwizzle::B128) | 5 << 49;
    let expected =
        Descriptor { start: 0x1230, leading: 16, stride: 1024, base_offset: 5, swizzle: TensorSwizzle::B128 };
    assert_eq!(Descriptor::decode(bits), expected);
    assert_eq!(Descriptor::decode(0x3fff).start, 0x3_fff0);
}

#[test]
fn k_major_reads_what_a_tensor_copy_brings() {
    for swizzle in SWIZZLES {
        let span = swizzle.span_bytes().unwrap();
        let cols = span / 2;
        let mut matrix = positions(128, 128);
        let base = matrix.as_mut_ptr().cast();
        let map = TensorMap::new(TensorElement::U16, base, &[128, 128], &[256], &[cols, 64], swizzle).unwrap();
        let mut memory = Memory::new();
        memory.load(&map, &[cols as i32, 8], 2048);
        for step in 0..cols / 16 {
            let descriptor = Descriptor::decode(bits(2048 + 32 * step, 16, 8 * span, swizzle));
            for row in 0..64 {
                for k in 0..16 {
                    let expected = (8 + row) * 128 + cols + 16 * step + k;
                    let address = operand_address(descriptor, K, row, k);
                    assert_eq!(u32::from(*memory.at(address)), expected, "{swizzle:?} {row} {k}");
                }
            }
        }
    }
}

#[test]
fn mn_major_reads_what_tensor_copies_bring() {
    for swizzle in SWIZZLES {
        let span = swizzle.span_bytes().unwrap();
        let cols = span / 2;
        let mut matrix = positions(64, 512);
        let base = matrix.as_mut_ptr().cast();
        let map = TensorMap::new(TensorElement::U16, base, &[512, 64], &[1024], &[cols, 64], swizzle).unwrap();
        let mut memory = Memory::new();
        let chunk_bytes = 64 * span;
        for chunk in 0..256 / cols {
            memory.load(&map, &[(32 + chunk * cols) as i32, 0], 1024 + chunk * chunk_bytes);
        }
        for step in 0..4 {
            let descriptor = Descriptor::decode(bits(1024 + 16 * span * step, chunk_bytes, 8 * span, swizzle));
            for col in 0..256 {
                for k in 0..16 {
                    let expected = (16 * step + k) * 512 + 32 + col;
                    let address = operand_address(descriptor, Mn, col, k);
                    assert_eq!(u32::from(*memory.at(address)), expected, "{swizzle:?} {col} {k}");
                }
            }
        }
    }
}

#[test]
fn core_matrices_without_a_swizzle() {
    let descriptor = Descriptor::decode(bits(256, 512, 128, TensorSwizzle::None));
    assert_eq!(operand_address(descriptor, K, 3, 5), 256 + 3 * 16 + 10);
    assert_eq!(operand_address(descriptor, K, 8, 0), 256 + 128);
    assert_eq!(operand_address(descriptor, K, 0, 8), 256 + 512);
    assert_eq!(operand_address(descriptor, Mn, 5, 3), 256 + 3 * 16 + 10);
    assert_eq!(operand_address(descriptor, Mn, 8, 0), 256 + 128);
    assert_eq!(operand_address(descriptor, Mn, 0, 8), 256 + 512);
}

fn small(random: &mut Random) -> f32 {
    random.below(17) as f32 - 8.0
}

fn half_bits(element: MmaType, value: f32) -> u16 {
    match element {
        MmaType::Bf16 => bf16::from_f32(value).to_bits(),
        MmaType::F16 => f16::from_f32(value).to_bits(),
    }
}

/// Puts `matrix` (`num_mn` x `num_k`) where `operand` reads it.
fn put(memory: &mut Memory, element: MmaType, operand: Operand, num_k: usize, matrix: &[f32]) {
    for (index, &value) in matrix.iter().enumerate() {
        let (mn, k) = ((index / num_k) as u32, (index % num_k) as u32);
        *memory.at(operand_address(operand.descriptor, operand.major, mn, k)) = half_bits(element, value);
    }
}

#[test]
fn products_with_each_kind_of_operand() {
    let mut random = Random::new(1);
    let swizzle = TensorSwizzle::B128;
    for (element, n, a_mn, b_mn, in_registers, scale_d) in [
        (MmaType::Bf16, 8, K, K, false, 0),
        (MmaType::F16, 64, Mn, Mn, false, 1),
        (MmaType::Bf16, 256, K, Mn, true, 1),
        (MmaType::F16, 24, Mn, K, true, 0),
    ] {
        let a: Vec<f32> = (0..64 * 16).map(|_| small(&mut random)).collect();
        let b: Vec<f32> = (0..n * 16).map(|_| small(&mut random)).collect();
        let before: Vec<f32> = (0..64 * n).map(|_| small(&mut random)).collect();
        let mut memory = Memory::new();
        let left = Operand::new(bits(0, 16, 1024, swizzle), a_mn);
        let right = Operand::new(bits(65536, 2048, 1024, swizzle), b_mn);
        put(&mut memory, element, left, 16, &a);
        put(&mut memory, element, right, 16, &b);
        let mut registers = vec![[0; 4]; 128];
        for row in 0..64 {
            for col in 0..16 {
                let place = fragments::a_place(row, col & !1);
                let bits = u32::from(half_bits(element, a[row * 16 + col]));
                registers[place.thread][place.register] |= bits << (16 * (col % 2));
            }
        }
        let a_operand = if in_registers { Left::Registers(&registers) } else { Left::Shared(left) };
        let product = Product { element, a: a_operand, b: right, n: n as u32, scale_d, sparse: None };
        let mut d = before.clone();
        product.multiply(&mut |address| *memory.at(address), &mut d).unwrap();
        for row in 0..64 {
            for col in 0..n {
                let sum: f32 = (0..16).map(|k| a[row * 16 + k] * b[col * 16 + k]).sum();
                let old = if scale_d == 0 { 0.0 } else { before[row * n + col] };
                assert_eq!(d[row * n + col], sum + old, "{row} {col}");
            }
        }
    }
}

/// The code of the two places of each group, the first in the low bits.
const CODES: [u32; 6] = [0x4, 0x8, 0x9, 0xc, 0xd, 0xe];

#[test]
fn metadata_words() {
    // Row 21 is warp 1, lanes 20 to 23, low halves; row 29 the high halves.
    let groups = [0xc, 0x9, 0x4, 0xe, 0x8, 0xd, 0xc, 0xe];
    for selector in [0, 1] {
        let mut words = [0xffff_ffff; 128];
        words[52 + 2 * selector] = 0x4444_e49c;
        words[53 + 2 * selector] = 0x4444_ecd8;
        let metadata = Metadata { words: &words, selector: selector as u32 };
        for (group, code) in groups.into_iter().enumerate() {
            assert_eq!(metadata.code(21, group), code);
            assert_eq!(metadata.code(29, group), 4);
        }
        assert_eq!(metadata.columns(21, 0).unwrap(), [0, 3]);
        assert_eq!(metadata.columns(21, 5).unwrap(), [21, 23]);
        assert_eq!(metadata.columns(29, 7).unwrap(), [28, 29]);
        assert!(metadata.columns(0, 0).unwrap_err().contains("row 0, columns 0 to 3, is 0xf"));
    }
}

#[test]
fn sparse_products() {
    let mut random = Random::new(2);
    for (selector, b_mn) in [(0, K), (1, Mn)] {
        let element = MmaType::Bf16;
        let n = 64;
        let stored: Vec<f32> = (0..64 * 16).map(|_| small(&mut random)).collect();
        let b: Vec<f32> = (0..n * 32).map(|_| small(&mut random)).collect();
        let mut words = vec![0xffff_ffff_u32; 128];
        let mut dense = vec![0.0; 64 * 32];
        for row in 0..64 {
            for group in 0..8 {
                let code = CODES[random.below(6)];
                let word = &mut words[row / 16 * 32 + row % 8 * 4 + 2 * selector as usize + group / 4];
                let shift = 16 * (row / 8 % 2) + 4 * (group % 4);
                *word = *word & !(15 << shift) | code << shift;
                dense[row * 32 + 4 * group + (code & 3) as usize] = stored[row * 16 + 2 * group];
                dense[row * 32 + 4 * group + (code >> 2) as usize] = stored[row * 16 + 2 * group + 1];
            }
        }
        let mut memory = Memory::new();
        let left = Operand::new(bits(32, 16, 1024, TensorSwizzle::B128), K);
        let right = Operand::new(bits(65536, 4096, 1024, TensorSwizzle::B128), b_mn);
        put(&mut memory, element, left, 16, &stored);
        put(&mut memory, element, right, 32, &b);
        let sparse = Some(Metadata { words: &words, selector });
        let product = Product { element, a: Left::Shared(left), b: right, n: n as u32, scale_d: 0, sparse };
        let mut d = vec![f32::NAN; 64 * n];
        product.multiply(&mut |address| *memory.at(address), &mut d).unwrap();
        for row in 0..64 {
            for col in 0..n {
                let sum: f32 = (0..32).map(|k| dense[row * 32 + k] * b[col * 32 + k]).sum();
                assert_eq!(d[row * n + col], sum, "{row} {col}");
            }
        }
    }
}

#[test]
fn ranges_are_what_is_read() {
    for (swizzle, start, a_mn, b_mn) in [
        (TensorSwizzle::B128, 32, K, Mn),
        (TensorSwizzle::B64, 0, Mn, K),
        (TensorSwizzle::B32, 0, K, K),
        (TensorSwizzle::None, 16, Mn, K),
    ] {
        let a = Operand::new(bits(start, 2048, 1024, swizzle), a_mn);
        let b = Operand::new(bits(32768, 4096, 1024, swizzle), b_mn);
        let product = Product { element: MmaType::F16, a: Left::Shared(a), b, n: 128, scale_d: 0, sparse: None };
        let ranges = product.operand_ranges().unwrap();
        let mut read = std::collections::BTreeSet::new();
        let note = &mut |address| {
            read.insert(address / 16 * 16);
            0
        };
        product.multiply(note, &mut [0.0; 64 * 128]).unwrap();
        let units: Vec<u32> = ranges.iter().flat_map(|&(start, bytes)| (start..start + bytes).step_by(16)).collect();
        assert_eq!(units, read.into_iter().collect::<Vec<_>>());
        assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0));
    }
}

#[test]
fn what_is_refused() {
    let good = Operand::new(bits(0, 16, 1024, TensorSwizzle::B128), K);
    let product = |a, b, n| Product { element: MmaType::Bf16, a: Left::Shared(a), b, n, scale_d: 0, sparse: None };
    assert!(product(good, good, 64).check().is_ok());
    assert!(product(good, good, 12).check().unwrap_err().contains("N is 12"));
    assert!(product(good, good, 264).check().unwrap_err().contains("N is 264"));
    let third_line = Operand::new(bits(256, 16, 1024, TensorSwizzle::B128), K);
    assert!(product(third_line, good, 64).check().unwrap_err().contains("in line 2 of an atom"));
    let over_the_end = Operand::new(bits(112, 16, 1024, TensorSwizzle::B128), K);
    assert!(product(good, over_the_end, 64).check().unwrap_err().contains("112 bytes into a line of 128"));
    let mid_line = Operand::new(bits(32, 16, 1024, TensorSwizzle::B128), Mn);
    assert!(product(good, mid_line, 64).check().is_err());
    assert!(product(good, mid_line, 48).check().is_ok());
    let based = Operand::new(bits(0, 16, 1024, TensorSwizzle::B128) | 1 << 49, K);
    assert!(product(based, good, 64).check().unwrap_err().contains("base offset"));
    // 32 elements of K do not fit in a line of 32 bytes.
    let narrow = Operand::new(bits(0, 16, 256, TensorSwizzle::B32), K);
    let words = [0x4444_4444; 128];
    let sparse = Product { sparse: Some(Metadata { words: &words, selector: 0 }), ..product(good, narrow, 64) };
    assert!(sparse.check().unwrap_err().contains("64 bytes of each line"));
    let selector = Product { sparse: Some(Metadata { words: &words, selector: 2 }), ..product(good, good, 64) };
    assert!(selector.check().unwrap_err().contains("selector"));
}
