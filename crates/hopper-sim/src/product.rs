//! Products of warp groups: how descriptors name 16-bit operands in shared memory, and what D becomes.
//!
//! Operands are counted in elements: `mn` is the row of A or the column of B, `k` the other index. PTX ISA 9.7.15.5.1.

use half::{bf16, f16};
use hopper_std::sim::MmaType;

use crate::fragments;
use crate::tensor_map::TensorSwizzle;

/// Rows of A and D.
pub(crate) const M: usize = 64;

/// Elements of K that A holds: all of a dense product, half of a sparse one.
const STORED_K: usize = 16;

/// Bytes of an element.
const ELEMENT: u32 = 2;

/// Which index runs along contiguous memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Major {
    /// K: the transpose immediate is 0.
    K,
    /// M or N: the transpose immediate is 1.
    Mn,
}

impl Major {
    /// By the transpose immediate.
    pub(crate) const fn new(mn_major: bool) -> Self {
        if mn_major { Self::Mn } else { Self::K }
    }
}

/// The fields of a 64-bit matrix descriptor, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// Where the operand begins.
    pub(crate) start: u32,
    /// The leading byte offset.
    pub(crate) leading: u32,
    /// The stride byte offset.
    pub(crate) stride: u32,
    /// The base offset, 0 to 7.
    pub(crate) base_offset: u32,
    /// The layout.
    pub(crate) swizzle: TensorSwizzle,
}

impl Descriptor {
    /// The fields of `bits`.
    pub(crate) const fn decode(bits: u64) -> Self {
        const fn field(bits: u64, from: u32) -> u32 {
            ((bits >> from) as u32 & 0x3fff) << 4
        }
        Self {
            start: field(bits, 0),
            leading: field(bits, 16),
            stride: field(bits, 32),
            base_offset: (bits >> 49) as u32 & 7,
            swizzle: match bits >> 62 {
                0 => TensorSwizzle::None,
                1 => TensorSwizzle::B128,
                2 => TensorSwizzle::B64,
                _ => TensorSwizzle::B32,
            },
        }
    }
}

/// The shared address of element (`mn`, `k`) of the operand that `descriptor` names.
///
/// - K-major, swizzled: lines of one span hold K of one `mn`; eight lines are an atom, `stride` bytes from atom to atom.
/// - MN-major, swizzled: lines of one span hold MN of one `k`; `stride` bytes from eight lines to the next eight, `leading`
///   bytes from one span of MN to the next.
/// - Not swizzled: core matrices of eight lines of 16 bytes; K-major, `leading` bytes from one to the next along K and
///   `stride` along MN, and MN-major the other way round.
pub(crate) const fn operand_address(descriptor: Descriptor, major: Major, mn: u32, k: u32) -> u32 {
    let Descriptor { start, leading, stride, swizzle, .. } = descriptor;
    // `along` runs in the contiguous direction, `line` across.
    let (along, line) = match major {
        Major::K => (k, mn),
        Major::Mn => (mn, k),
    };
    let offset = match (swizzle.span_bytes(), major) {
        (None, Major::K) => along / 8 * leading + line / 8 * stride + line % 8 * 16 + along % 8 * ELEMENT,
        (None, Major::Mn) => along / 8 * stride + line / 8 * leading + line % 8 * 16 + along % 8 * ELEMENT,
        (Some(span), Major::K) => line / 8 * stride + line % 8 * span + along * ELEMENT,
        (Some(span), Major::Mn) => {
            let of_span = span / ELEMENT;
            along / of_span * leading + line / 8 * stride + line % 8 * span + along % of_span * ELEMENT
        }
    };
    swizzle.apply(start + offset)
}

/// An operand in shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    /// Where it lies.
    pub(crate) descriptor: Descriptor,
    /// How.
    pub(crate) major: Major,
}

impl Operand {
    /// An operand, by its descriptor and its transpose immediate.
    pub(crate) const fn new(descriptor: u64, mn_major: bool) -> Self {
        Self { descriptor: Descriptor::decode(descriptor), major: Major::new(mn_major) }
    }

    /// Whether `num_mn` by `num_k` elements can be read by this descriptor.
    fn check(&self, name: &str, num_mn: u32, num_k: u32) -> Result<(), String> {
        let Descriptor { start, base_offset, swizzle, .. } = self.descriptor;
        let Some(span) = swizzle.span_bytes() else { return Ok(()) };
        if base_offset != 0 {
            return Err(format!(
                "the descriptor of {name} has the base offset {base_offset}: only atoms at multiples of {} bytes are modelled",
                8 * span
            ));
        }
        let line = start % (8 * span);
        if line >= span {
            return Err(format!(
                "the descriptor of {name} begins at {start:#x}, in line {} of an atom of eight: swizzled operands begin in \
                 the first line, at a multiple of {} bytes and less than {span} further",
                line / span,
                8 * span
            ));
        }
        let bytes = match self.major {
            Major::K => num_k * ELEMENT,
            Major::Mn => (num_mn * ELEMENT).min(span),
        };
        if line + bytes > span {
            return Err(format!(
                "the descriptor of {name} begins at {start:#x}, {line} bytes into a line of {span}, and reads {bytes} bytes of \
                 each line"
            ));
        }
        Ok(())
    }

    /// Adds the addresses of the 16-byte units that hold `num_mn` by `num_k` elements.
    fn units(&self, num_mn: u32, num_k: u32, units: &mut Vec<u32>) {
        let (num_along, num_lines) = match self.major {
            Major::K => (num_k, num_mn),
            Major::Mn => (num_mn, num_k),
        };
        for line in 0..num_lines {
            for along in (0..num_along).step_by(8) {
                let (mn, k) = match self.major {
                    Major::K => (line, along),
                    Major::Mn => (along, line),
                };
                units.push(operand_address(self.descriptor, self.major, mn, k));
            }
        }
    }
}

/// The left operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Left<'a> {
    /// In shared memory.
    Shared(Operand),
    /// Four registers of each of the 128 threads.
    Registers(&'a [[u32; 4]]),
}

/// Which of four elements of K each two stored values of A are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metadata<'a> {
    /// The word of each of the 128 threads; half of them are read.
    pub(crate) words: &'a [u32],
    /// Which half: 0 lanes 0 and 1 of each four, 1 lanes 2 and 3.
    pub(crate) selector: u32,
}

impl Metadata<'_> {
    /// The four bits of group `group` (columns 4 `group` to 4 `group` + 3) of `row`: the places of its two values.
    /// PTX ISA 9.7.15.6.1.
    fn code(&self, row: usize, group: usize) -> u32 {
        let lane = row % 8 * 4 + 2 * self.selector as usize + group / 4;
        let word = self.words[row / 16 * 32 + lane];
        word >> (16 * (row / 8 % 2) + 4 * (group % 4)) & 15
    }

    /// The columns of group `group` of `row` that its two values belong to.
    fn columns(&self, row: usize, group: usize) -> Result<[usize; 2], String> {
        let code = self.code(row, group);
        let [first, second] = [(code & 3) as usize, (code >> 2) as usize];
        if first == second {
            return Err(format!(
                "the metadata of row {row}, columns {} to {}, is {code:#x}, which gives both values the same place",
                4 * group,
                4 * group + 3
            ));
        }
        Ok([4 * group + first, 4 * group + second])
    }
}

/// One product of a warp group: D (64 x `n`) = A (64 x K) B (K x `n`) + D; K is 16, or 32 where A is sparse.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product<'a> {
    /// The type of A and B.
    pub(crate) element: MmaType,
    /// A.
    pub(crate) a: Left<'a>,
    /// B.
    pub(crate) b: Operand,
    /// Columns.
    pub(crate) n: u32,
    /// Whether D's former values count: not where this is 0.
    pub(crate) scale_d: u32,
    /// Of a sparse product: the places of A's values.
    pub(crate) sparse: Option<Metadata<'a>>,
}

impl Product<'_> {
    /// Elements of K, those of B.
    pub(crate) const fn k(&self) -> u32 {
        if self.sparse.is_some() { 32 } else { 16 }
    }

    /// Whether the instruction accepts its operands; the metadata's codes apart.
    ///
    /// # Errors
    /// A sentence that says what it does not accept.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !self.n.is_multiple_of(8) || !(8..=256).contains(&self.n) {
            return Err(format!("N is {}, not a multiple of 8 from 8 to 256", self.n));
        }
        if let Some(metadata) = self.sparse.filter(|metadata| metadata.selector > 1) {
            return Err(format!("the metadata selector is {}, not 0 or 1", metadata.selector));
        }
        if let Left::Shared(a) = self.a {
            a.check("A", M as u32, STORED_K as u32)?;
        }
        self.b.check("B", self.n, self.k())
    }

    /// The shared memory that it reads, as addresses and byte counts, multiples of 16, that ascend and do not touch.
    ///
    /// # Errors
    /// As [`Product::check`].
    pub(crate) fn operand_ranges(&self) -> Result<Vec<(u32, u32)>, String> {
        self.check()?;
        let mut units = Vec::new();
        if let Left::Shared(a) = self.a {
            a.units(M as u32, STORED_K as u32, &mut units);
        }
        self.b.units(self.n, self.k(), &mut units);
        units.sort_unstable();
        units.dedup();
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for unit in units {
            match ranges.last_mut() {
                Some((start, bytes)) if *start + *bytes == unit => *bytes += 16,
                _ => ranges.push((unit, 16)),
            }
        }
        Ok(ranges)
    }

    /// Carries it out on `d`, row-major, 64 x `n`. `read` gives the 16-bit element at a shared address.
    ///
    /// Products of two elements are exact in fp32; they are added to D in fp32 in the order of K.
    ///
    /// # Errors
    /// As [`Product::check`], and where the metadata gives two values the same place. `d` is as it was then.
    ///
    /// # Panics
    /// Where `d` has not 64 x `n` elements.
    pub(crate) fn multiply(&self, read: &mut dyn FnMut(u32) -> u16, d: &mut [f32]) -> Result<(), String> {
        self.check()?;
        let n = self.n as usize;
        assert_eq!(d.len(), M * n, "D has 64 rows of N");
        // Each value of A with the row of B that it meets.
        let mut a = [[(0, 0.0); STORED_K]; M];
        for (row, values) in a.iter_mut().enumerate() {
            for (col, value) in values.iter_mut().enumerate() {
                let bits = match self.a {
                    Left::Shared(Operand { descriptor, major }) => {
                        read(operand_address(descriptor, major, row as u32, col as u32))
                    }
                    Left::Registers(registers) => fragments::a_element(registers, row, col),
                };
                let k = match self.sparse {
                    None => col,
                    Some(metadata) => metadata.columns(row, col / 2)?[col % 2],
                };
                *value = (k, to_f32(self.element, bits));
            }
        }
        let mut b = vec![0.0; self.k() as usize * n];
        for (k, line) in b.chunks_exact_mut(n).enumerate() {
            for (col, value) in line.iter_mut().enumerate() {
                let address = operand_address(self.b.descriptor, self.b.major, col as u32, k as u32);
                *value = to_f32(self.element, read(address));
            }
        }
        for (row, values) in d.chunks_exact_mut(n).zip(&a) {
            if self.scale_d == 0 {
                row.fill(0.0);
            }
            for &(k, value) in values {
                for (d, b) in row.iter_mut().zip(&b[k * n..]) {
                    *d += value * b;
                }
            }
        }
        Ok(())
    }
}

fn to_f32(element: MmaType, bits: u16) -> f32 {
    match element {
        MmaType::Bf16 => bf16::from_bits(bits).to_f32(),
        MmaType::F16 => f16::from_bits(bits).to_f32(),
    }
}

#[cfg(test)]
mod tests {
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
            for piece in map.pieces(at, shared) {
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
                        let address = operand_address(descriptor, Major::K, row, k);
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
                        let address = operand_address(descriptor, Major::Mn, col, k);
                        assert_eq!(u32::from(*memory.at(address)), expected, "{swizzle:?} {col} {k}");
                    }
                }
            }
        }
    }

    #[test]
    fn core_matrices_without_a_swizzle() {
        let descriptor = Descriptor::decode(bits(256, 512, 128, TensorSwizzle::None));
        assert_eq!(operand_address(descriptor, Major::K, 3, 5), 256 + 3 * 16 + 10);
        assert_eq!(operand_address(descriptor, Major::K, 8, 0), 256 + 128);
        assert_eq!(operand_address(descriptor, Major::K, 0, 8), 256 + 512);
        assert_eq!(operand_address(descriptor, Major::Mn, 5, 3), 256 + 3 * 16 + 10);
        assert_eq!(operand_address(descriptor, Major::Mn, 8, 0), 256 + 128);
        assert_eq!(operand_address(descriptor, Major::Mn, 0, 8), 256 + 512);
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
            (MmaType::Bf16, 8, false, false, false, 0),
            (MmaType::F16, 64, true, true, false, 1),
            (MmaType::Bf16, 256, false, true, true, 1),
            (MmaType::F16, 24, true, false, true, 0),
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
        for (selector, b_mn) in [(0, false), (1, true)] {
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
            let left = Operand::new(bits(32, 16, 1024, TensorSwizzle::B128), false);
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
            (TensorSwizzle::B128, 32, false, true),
            (TensorSwizzle::B64, 0, true, false),
            (TensorSwizzle::B32, 0, false, false),
            (TensorSwizzle::None, 16, true, false),
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
            let units: Vec<u32> =
                ranges.iter().flat_map(|&(start, bytes)| (start..start + bytes).step_by(16)).collect();
            assert_eq!(units, read.into_iter().collect::<Vec<_>>());
            assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0));
        }
    }

    #[test]
    fn what_is_refused() {
        let good = Operand::new(bits(0, 16, 1024, TensorSwizzle::B128), false);
        let product = |a, b, n| Product { element: MmaType::Bf16, a: Left::Shared(a), b, n, scale_d: 0, sparse: None };
        assert!(product(good, good, 64).check().is_ok());
        assert!(product(good, good, 12).check().unwrap_err().contains("N is 12"));
        assert!(product(good, good, 264).check().unwrap_err().contains("N is 264"));
        let third_line = Operand::new(bits(256, 16, 1024, TensorSwizzle::B128), false);
        assert!(product(third_line, good, 64).check().unwrap_err().contains("in line 2 of an atom"));
        let over_the_end = Operand::new(bits(112, 16, 1024, TensorSwizzle::B128), false);
        assert!(product(good, over_the_end, 64).check().unwrap_err().contains("112 bytes into a line of 128"));
        let mid_line = Operand::new(bits(32, 16, 1024, TensorSwizzle::B128), true);
        assert!(product(good, mid_line, 64).check().is_err());
        assert!(product(good, mid_line, 48).check().is_ok());
        let based = Operand::new(bits(0, 16, 1024, TensorSwizzle::B128) | 1 << 49, false);
        assert!(product(based, good, 64).check().unwrap_err().contains("base offset"));
        // 32 elements of K do not fit in a line of 32 bytes.
        let narrow = Operand::new(bits(0, 16, 256, TensorSwizzle::B32), false);
        let words = [0x4444_4444; 128];
        let sparse = Product { sparse: Some(Metadata { words: &words, selector: 0 }), ..product(good, narrow, 64) };
        assert!(sparse.check().unwrap_err().contains("64 bytes of each line"));
        let selector = Product { sparse: Some(Metadata { words: &words, selector: 2 }), ..product(good, good, 64) };
        assert!(selector.check().unwrap_err().contains("selector"));
    }
}
