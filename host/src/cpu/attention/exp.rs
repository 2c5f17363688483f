//! Powers of 2 that a compiler can vectorise.

use crate::cpu::simd::InstructionSet;

/// 2^x for x up to 0, to about an ulp; 0 from 2^-126 down, NaN for NaN.
#[inline(always)]
pub(super) fn exp2<I: InstructionSet>(x: f32) -> f32 {
    // ln(2)^k / k!, from k = 7 down to 1: on [-1/2, 1/2] what is left out is under 2^-27.
    const COEFFICIENTS: [f32; 7] =
        [1.525_273_4e-5, 1.540_353e-4, 1.333_355_8e-3, 9.618_129e-3, 5.550_411e-2, 2.402_265e-1, 6.931_472e-1];
    // Beside 1.5 x 2^23 a number has no place for a fraction: adding it rounds.
    const ROUNDER: f32 = 12_582_912.0;
    const LEAST: f32 = -126.0;
    let bounded = if x < LEAST { LEAST } else { x };
    let rounded = bounded + ROUNDER;
    let fraction = bounded - (rounded - ROUNDER);
    let mut power = COEFFICIENTS[0];
    for coefficient in &COEFFICIENTS[1..] {
        power = I::multiply_add(power, fraction, *coefficient);
    }
    power = I::multiply_add(power, fraction, 1.0);
    // The whole part, from the sum's last bits to the exponent's place.
    let whole = f32::from_bits((rounded.to_bits() << 23).wrapping_add(127 << 23));
    if x < LEAST { 0.0 } else { power * whole }
}

/// The hyperbolic tangent, to about an ulp of 1.
#[inline(always)]
pub(super) fn tanh<I: InstructionSet>(x: f32) -> f32 {
    let power = exp2::<I>(-2.0 * core::f32::consts::LOG2_E * x.abs());
    ((1.0 - power) / (1.0 + power)).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::simd::{Path, Vectorised};

    struct Compare;

    impl Vectorised for Compare {
        #[inline(always)]
        fn run<I: InstructionSet>(self) {
            for step in 0..126_000 {
                let x = step as f32 * -1e-3;
                let exact = f64::from(x).exp2();
                assert!((f64::from(exp2::<I>(x)) / exact - 1.0).abs() < 2e-7, "2^{x}: {}", exp2::<I>(x));
                let (x, found) = (x + 63.0, tanh::<I>(x + 63.0));
                assert!((f64::from(found) - f64::from(x).tanh()).abs() < 2.5e-7, "tanh {x}: {found}");
            }
            assert_eq!([-127.0, -1e9, f32::NEG_INFINITY].map(exp2::<I>), [0.0; 3]);
            assert_eq!([0.0, -1.0, -126.0].map(exp2::<I>), [1.0, 0.5, f32::MIN_POSITIVE]);
            assert!(exp2::<I>(f32::NAN).is_nan() && tanh::<I>(f32::NAN).is_nan());
            assert_eq!([0.0, f32::INFINITY, f32::NEG_INFINITY].map(tanh::<I>), [0.0, 1.0, -1.0]);
        }
    }

    #[test]
    fn powers_and_tangents_are_close_on_every_path() {
        for path in Path::ALL.iter().filter(|path| path.is_supported()) {
            path.run(Compare);
        }
    }
}
