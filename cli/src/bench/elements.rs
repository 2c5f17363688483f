//! Arrays whose element type is chosen at run time.

use bytemuck::{cast_slice, cast_slice_mut};
use half::{bf16, f16};
use hopper_sparse::{Dtype, Element};
use rayon::prelude::*;

/// An array of elements of one type.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// bfloat16.
    Bf16(Vec<bf16>),
    /// IEEE binary16.
    F16(Vec<f16>),
    /// IEEE binary32.
    F32(Vec<f32>),
}

/// Evaluates `$body` with `$slice` bound to the typed vector inside an [`Elements`].
macro_rules! with_elements {
    ($elements:expr, $slice:ident => $body:expr) => {
        match $elements {
            Elements::Bf16($slice) => $body,
            Elements::F16($slice) => $body,
            Elements::F32($slice) => $body,
        }
    };
}
/// Evaluates `$body` with the type alias `$name` standing for the element type of a [`Dtype`].
macro_rules! with_dtype {
    ($dtype:expr, $name:ident => $body:expr) => {
        match $dtype {
            hopper_sparse::Dtype::Bf16 => {
                type $name = half::bf16;
                $body
            }
            hopper_sparse::Dtype::F16 => {
                type $name = half::f16;
                $body
            }
            hopper_sparse::Dtype::F32 | hopper_sparse::Dtype::F64 => {
                type $name = f32;
                $body
            }
        }
    };
}
pub(crate) use with_dtype;

impl Elements {
    /// `len` elements, each `value(index)` rounded to `dtype`; computed in parallel.
    ///
    /// Workloads hold no f64, which a workload file cannot name: it is stored as f32.
    pub fn from_fn(dtype: Dtype, len: usize, value: impl Fn(usize) -> f32 + Sync) -> Self {
        fn fill<T: Element>(len: usize, value: impl Fn(usize) -> f32 + Sync) -> Vec<T> {
            (0..len).into_par_iter().with_min_len(1 << 14).map(|index| T::from_f32(value(index))).collect()
        }
        match dtype {
            Dtype::Bf16 => Self::Bf16(fill(len, value)),
            Dtype::F16 => Self::F16(fill(len, value)),
            Dtype::F32 | Dtype::F64 => Self::F32(fill(len, value)),
        }
    }

    /// `len` elements whose bytes are all ones: a NaN in every type, and what device memory is poisoned with.
    pub fn poisoned(dtype: Dtype, len: usize) -> Self {
        match dtype {
            Dtype::Bf16 => Self::Bf16(vec![bf16::from_bits(u16::MAX); len]),
            Dtype::F16 => Self::F16(vec![f16::from_bits(u16::MAX); len]),
            Dtype::F32 | Dtype::F64 => Self::F32(vec![f32::from_bits(u32::MAX); len]),
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        with_elements!(self, values => values.len())
    }

    /// The type of the elements.
    pub fn dtype(&self) -> Dtype {
        match self {
            Self::Bf16(_) => Dtype::Bf16,
            Self::F16(_) => Dtype::F16,
            Self::F32(_) => Dtype::F32,
        }
    }

    /// The elements as what they are.
    ///
    /// # Panics
    /// Where `T` is not their type: [`with_dtype`] chooses it.
    pub fn as_slice<T: Element>(&self) -> &[T] {
        assert_eq!(self.dtype(), T::DTYPE, "the elements are of another type");
        cast_slice(self.as_bytes())
    }

    /// The same, to write.
    ///
    /// # Panics
    /// Where `T` is not their type.
    pub fn as_slice_mut<T: Element>(&mut self) -> &mut [T] {
        assert_eq!(self.dtype(), T::DTYPE, "the elements are of another type");
        cast_slice_mut(self.as_bytes_mut())
    }

    /// One element, exact.
    #[cfg(test)]
    pub fn get(&self, index: usize) -> f64 {
        with_elements!(self, values => values[index].to_f64())
    }

    /// The elements at these positions, in their order.
    pub fn gather(&self, positions: &[usize]) -> Self {
        match self {
            Self::Bf16(values) => Self::Bf16(positions.iter().map(|&position| values[position]).collect()),
            Self::F16(values) => Self::F16(positions.iter().map(|&position| values[position]).collect()),
            Self::F32(values) => Self::F32(positions.iter().map(|&position| values[position]).collect()),
        }
    }

    /// How many elements are not a number.
    pub fn count_nan(&self) -> usize {
        fn count<T: Element>(values: &[T]) -> usize {
            values.par_iter().with_min_len(1 << 16).filter(|value| value.to_f32().is_nan()).count()
        }
        with_elements!(self, values => count(values))
    }

    /// The elements' bytes, as they lie in memory.
    pub fn as_bytes(&self) -> &[u8] {
        with_elements!(self, values => cast_slice(values))
    }

    /// The same bytes, to write.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        with_elements!(self, values => cast_slice_mut(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poison_is_nan_in_every_type() {
        for dtype in [Dtype::Bf16, Dtype::F16, Dtype::F32] {
            let poison = Elements::poisoned(dtype, 5);
            assert_eq!(poison.count_nan(), 5, "{dtype}");
            assert!(poison.as_bytes().iter().all(|&byte| byte == 0xff));
        }
    }

    #[test]
    fn values_are_rounded_to_their_type() {
        let third = 1.0_f32 / 3.0;
        let elements = Elements::from_fn(Dtype::Bf16, 2, |_| third);
        assert_eq!(elements.get(1), f64::from(bf16::from_f32(third).to_f32()));
        assert_eq!(elements.len(), 2);
        assert_eq!(elements.count_nan(), 0);
    }
}
