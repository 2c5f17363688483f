//! The types of elements, and how a reduction adds them.

use half::{bf16, f16};

/// The type of a tensor's elements: what a reduction adds, and how many bytes an element has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorElement {
    /// 8 bits.
    U8,
    /// 16-bit integers.
    U16,
    /// 32-bit integers.
    U32,
    /// binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// binary32.
    F32,
    /// binary64.
    F64,
}

impl TensorElement {
    /// Bytes of one element.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// Adds `source` to `destination`, element by element, as a reducing store does: each sum rounded to the type.
///
/// # Errors
/// A sentence, where no reduction adds such elements.
///
/// # Panics
/// Where both have not as many bytes, or part of an element.
pub(crate) fn add(element: TensorElement, destination: &mut [u8], source: &[u8]) -> Result<(), String> {
    fn each<const BYTES: usize>(to: &mut [u8], from: &[u8], sum: impl Fn([u8; BYTES], [u8; BYTES]) -> [u8; BYTES]) {
        let (to, to_rest) = to.as_chunks_mut();
        let (from, from_rest) = from.as_chunks();
        assert!(to.len() == from.len() && to_rest.is_empty() && from_rest.is_empty(), "as many whole elements");
        for (to, from) in to.iter_mut().zip(from) {
            *to = sum(*to, *from);
        }
    }
    match element {
        TensorElement::U8 | TensorElement::U16 => {
            return Err(format!("no reduction adds elements of the type {element:?}"));
        }
        TensorElement::U32 => {
            each(destination, source, |a, b| u32::from_le_bytes(a).wrapping_add(u32::from_le_bytes(b)).to_le_bytes())
        }
        TensorElement::F16 => each(destination, source, |a, b| {
            // A sum of two such numbers in binary32 is rounded so far beyond the type that rounding again does no harm.
            f16::from_f32(f16::from_le_bytes(a).to_f32() + f16::from_le_bytes(b).to_f32()).to_le_bytes()
        }),
        TensorElement::Bf16 => each(destination, source, |a, b| {
            bf16::from_f64(bf16::from_le_bytes(a).to_f64() + bf16::from_le_bytes(b).to_f64()).to_le_bytes()
        }),
        TensorElement::F32 => {
            each(destination, source, |a, b| (f32::from_le_bytes(a) + f32::from_le_bytes(b)).to_le_bytes());
        }
        TensorElement::F64 => {
            each(destination, source, |a, b| (f64::from_le_bytes(a) + f64::from_le_bytes(b)).to_le_bytes());
        }
    }
    Ok(())
}
