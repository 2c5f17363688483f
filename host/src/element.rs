//! Element types: what a matrix may hold, and how it is named.

use core::fmt;
use core::ops::{Add, Mul};

use bytemuck::Pod;
use half::slice::HalfFloatSliceExt as _;
use half::{bf16, f16};

/// The type of an element at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// bfloat16: 8 bits of exponent, 7 of mantissa.
    Bf16,
    /// IEEE binary16.
    F16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64; on the CPU only.
    F64,
}

impl Dtype {
    /// The size of one element, in bytes.
    pub const fn size_bytes(self) -> usize {
        match self {
            Self::Bf16 | Self::F16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// The name used on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The distance from 1 to the next larger value: 2^-7, 2^-10, 2^-23 or 2^-52.
    pub const fn epsilon(self) -> f64 {
        match self {
            Self::Bf16 => 1.0 / 128.0,
            Self::F16 => 1.0 / 1024.0,
            Self::F32 => f32::EPSILON as f64,
            Self::F64 => f64::EPSILON,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for half::bf16 {}
    impl Sealed for half::f16 {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A type that matrices are made of: [`struct@bf16`], [`struct@f16`], `f32` or `f64`.
pub trait Element: sealed::Sealed + Pod + Send + Sync + fmt::Debug + PartialEq + 'static {
    /// The type in which products of this type are added up: `f64` for `f64`, `f32` for all others.
    type Accumulator: Accumulator;
    /// The same type as a value.
    const DTYPE: Dtype;
    /// Zero.
    const ZERO: Self;
    /// Rounds to nearest, ties to even.
    fn from_f64(value: f64) -> Self;
    /// Exact for every element type.
    fn to_f64(self) -> f64;
    /// Rounds to nearest, ties to even.
    fn from_f32(value: f32) -> Self;
    /// Exact except for `f64`, which rounds.
    fn to_f32(self) -> f32;
}

/// A type in which products are added up: `f32` or `f64`.
pub trait Accumulator: Element<Accumulator = Self> + Add<Output = Self> + Mul<Output = Self> {
    /// Exact where `T::Accumulator` is this type.
    fn widen<T: Element>(value: T) -> Self;
    /// Rounds to nearest, ties to even.
    fn round_to<T: Element>(self) -> T;
    /// `self * factor + addend` rounded once; slow on a machine without that instruction.
    fn fused_multiply_add(self, factor: Self, addend: Self) -> Self;
}

impl Accumulator for f32 {
    #[inline(always)]
    fn widen<T: Element>(value: T) -> Self {
        value.to_f32()
    }
    #[inline(always)]
    fn round_to<T: Element>(self) -> T {
        T::from_f32(self)
    }
    #[inline(always)]
    fn fused_multiply_add(self, factor: Self, addend: Self) -> Self {
        self.mul_add(factor, addend)
    }
}

impl Accumulator for f64 {
    #[inline(always)]
    fn widen<T: Element>(value: T) -> Self {
        value.to_f64()
    }
    #[inline(always)]
    fn round_to<T: Element>(self) -> T {
        T::from_f64(self)
    }
    #[inline(always)]
    fn fused_multiply_add(self, factor: Self, addend: Self) -> Self {
        self.mul_add(factor, addend)
    }
}

macro_rules! element {
    ($type:ty, $dtype:ident, $accumulator:ty, $zero:expr, $from64:expr, $to64:expr, $from32:expr, $to32:expr) => {
        impl Element for $type {
            type Accumulator = $accumulator;
            const DTYPE: Dtype = Dtype::$dtype;
            const ZERO: Self = $zero;
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                $from64(value)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                $to64(self)
            }
            #[inline(always)]
            fn from_f32(value: f32) -> Self {
                $from32(value)
            }
            #[inline(always)]
            fn to_f32(self) -> f32 {
                $to32(self)
            }
        }
    };
}

element!(bf16, Bf16, f32, bf16::ZERO, bf16::from_f64, bf16::to_f64, bf16::from_f32, bf16::to_f32);
element!(f16, F16, f32, f16::ZERO, f16::from_f64, f16::to_f64, f16::from_f32, f16::to_f32);
element!(f32, F32, f32, 0.0, |v| v as f32, |v: f32| f64::from(v), |v| v, |v| v);
element!(f64, F64, f64, 0.0, |v| v, |v| v, |v: f32| f64::from(v), |v: f64| v as f32);

/// An element of 16 bits: [`struct@bf16`] or [`struct@f16`].
pub trait HalfElement: Element {
    /// Its bits.
    fn to_bits(self) -> u16;
    /// The element of these bits.
    fn from_bits(bits: u16) -> Self;
}

macro_rules! half_element {
    ($type:ty) => {
        impl HalfElement for $type {
            #[inline(always)]
            fn to_bits(self) -> u16 {
                <$type>::to_bits(self)
            }
            #[inline(always)]
            fn from_bits(bits: u16) -> Self {
                <$type>::from_bits(bits)
            }
        }
    };
}

half_element!(bf16);
half_element!(f16);

/// Each element as [`Element::to_f32`] has it, several at a time where the processor can. The slices are of one length.
pub(crate) fn widen_all<T: Element>(from: &[T], to: &mut [f32]) {
    match T::DTYPE {
        Dtype::Bf16 => bytemuck::cast_slice::<T, bf16>(from).convert_to_f32_slice(to),
        Dtype::F16 => bytemuck::cast_slice::<T, f16>(from).convert_to_f32_slice(to),
        Dtype::F32 | Dtype::F64 => to.iter_mut().zip(from).for_each(|(to, element)| *to = element.to_f32()),
    }
}
