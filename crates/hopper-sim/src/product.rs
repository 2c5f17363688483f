//! Products of warp groups: how descriptors name 16-bit operands in shared memory, and what D becomes.
//!
//! Operands are counted in elements: `mn` is the row of A or the column of B, `k` the other index. PTX ISA 9.7.15.5.1.

use half::{bf16, f16};
use hopper_std::sim::{MmaMajor, MmaType};

use crate::fragments;
use crate::tensor_map::TensorSwizzle;

/// Rows of A and D.
pub(crate) const M: usize = 64;

/// Elements of K that A holds: all of a dense product, half of a sparse one.
const STORED_K: usize = 16;

/// Bytes of an element.
const ELEMENT: u32 = 2;

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
pub(crate) const fn operand_address(descriptor: Descriptor, major: MmaMajor, mn: u32, k: u32) -> u32 {
    let Descriptor { start, leading, stride, swizzle, .. } = descriptor;
    // `along` runs in the contiguous direction, `line` across.
    let (along, line) = match major {
        MmaMajor::K => (k, mn),
        MmaMajor::Mn => (mn, k),
    };
    let offset = match (swizzle.span_bytes(), major) {
        (None, MmaMajor::K) => along / 8 * leading + line / 8 * stride + line % 8 * 16 + along % 8 * ELEMENT,
        (None, MmaMajor::Mn) => along / 8 * stride + line / 8 * leading + line % 8 * 16 + along % 8 * ELEMENT,
        (Some(span), MmaMajor::K) => line / 8 * stride + line % 8 * span + along * ELEMENT,
        (Some(span), MmaMajor::Mn) => {
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
    pub(crate) major: MmaMajor,
}

impl Operand {
    /// An operand, by its descriptor and how it lies.
    pub(crate) const fn new(descriptor: u64, major: MmaMajor) -> Self {
        Self { descriptor: Descriptor::decode(descriptor), major }
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
            MmaMajor::K => num_k * ELEMENT,
            MmaMajor::Mn => (num_mn * ELEMENT).min(span),
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
            MmaMajor::K => (num_k, num_mn),
            MmaMajor::Mn => (num_mn, num_k),
        };
        for line in 0..num_lines {
            for along in (0..num_along).step_by(8) {
                let (mn, k) = match self.major {
                    MmaMajor::K => (line, along),
                    MmaMajor::Mn => (along, line),
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
    /// The products of one instruction are added up exactly, and to D; what lies beyond the last bit of fp32 is cut off. The
    /// PTX ISA leaves the precision open; this accounts for the errors seen on an H200.
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
        let mut sums = vec![0.0; n];
        for (row, values) in d.chunks_exact_mut(n).zip(&a) {
            if self.scale_d == 0 {
                row.fill(0.0);
            }
            for (sum, d) in sums.iter_mut().zip(&*row) {
                *sum = f64::from(*d);
            }
            for &(k, value) in values {
                let value = f64::from(value);
                for (sum, b) in sums.iter_mut().zip(&b[k * n..]) {
                    *sum += value * f64::from(*b);
                }
            }
            for (d, sum) in row.iter_mut().zip(&sums) {
                *d = cut(*sum);
            }
        }
        Ok(())
    }
}

/// The nearest number of fp32 that is not farther from zero.
fn cut(exact: f64) -> f32 {
    let nearest = exact as f32;
    if nearest.is_finite() && f64::from(nearest).abs() > exact.abs() {
        f32::from_bits(nearest.to_bits() - 1)
    } else {
        nearest
    }
}

fn to_f32(element: MmaType, bits: u16) -> f32 {
    match element {
        MmaType::Bf16 => bf16::from_bits(bits).to_f32(),
        MmaType::F16 => f16::from_bits(bits).to_f32(),
    }
}

#[cfg(test)]
mod tests;
