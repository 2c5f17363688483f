//! The arithmetic of [`convert`](super::convert), done by the CPU: bit for bit, but for `ex2`, of which both the CPU and
//! the device give an approximation.

/// Tells the machine, where there is one, that these values are used.
#[cfg_attr(feature = "sim", track_caller)]
pub(super) fn use_f32<const COUNT: usize>(values: [f32; COUNT]) {
    #[cfg(feature = "sim")]
    if let Some(machine) = crate::sim::try_machine() {
        for value in values {
            machine.use_f32(core::panic::Location::caller(), value);
        }
    }
}

/// The NaN of a 16-bit type that a conversion gives.
const NAN_16: u16 = 0x7fff;
/// The NaN that an operation on f32 gives.
const NAN_32: f32 = f32::from_bits(0x7fff_ffff);

/// `bits` without its lowest `count` bits, rounded to nearest, ties to even.
const fn round(bits: u32, count: u32) -> u32 {
    let half = 1 << (count - 1);
    let odd = bits >> count & 1;
    (bits + half - 1 + odd) >> count
}

/// Rounds to bfloat16. A carry out of the mantissa goes into the exponent, up to infinity.
pub(super) const fn bf16_from_f32(value: f32) -> u16 {
    if value.is_nan() {
        return NAN_16;
    }
    round(value.to_bits(), 16) as u16
}

/// Rounds to binary16.
pub(super) const fn f16_from_f32(value: f32) -> u16 {
    if value.is_nan() {
        return NAN_16;
    }
    let sign = (value.to_bits() >> 16 & 0x8000) as u16;
    let magnitude = value.to_bits() & 0x7fff_ffff;
    let exponent = magnitude >> 23;
    let rounded = if exponent >= 127 + 16 {
        0x7c00
    } else if exponent >= 127 - 14 {
        // Normal. A carry out of 65504 is infinity.
        round(magnitude - ((127 - 15) << 23), 13)
    } else if exponent >= 127 - 25 {
        // Subnormal: a multiple of 2^-24. The mantissa with its leading one is a multiple of 2^(exponent - 127 - 23).
        round(magnitude & 0x7f_ffff | 0x80_0000, 127 - 1 - exponent)
    } else {
        0
    };
    sign | rounded as u16
}

/// Widens binary16.
pub(super) const fn f32_from_f16(half: u16) -> f32 {
    let sign = (half as u32 & 0x8000) << 16;
    let (exponent, mantissa) = (half as u32 >> 10 & 0x1f, half as u32 & 0x3ff);
    let magnitude = match exponent {
        0 => (mantissa as f32 * f32::from_bits((127 - 24) << 23)).to_bits(),
        31 if mantissa != 0 => return NAN_32,
        31 => f32::INFINITY.to_bits(),
        _ => (exponent + 127 - 15) << 23 | mantissa << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// `.ftz`: zero, of the same sign, in place of a subnormal number.
pub(super) const fn flush(value: f32) -> f32 {
    if value.is_subnormal() { f32::from_bits(value.to_bits() & 0x8000_0000) } else { value }
}

/// The larger, where +0 is larger than -0; the other operand where one is NaN.
pub(super) const fn max(a: f32, b: f32) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => NAN_32,
        (true, false) => b,
        (false, true) => a,
        // Equal numbers differ in the sign of a zero at most.
        (false, false) if a == b => f32::from_bits(a.to_bits() & b.to_bits()),
        (false, false) => {
            if a > b {
                a
            } else {
                b
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number of the 16-bit type in increasing order, from `widen` of 0 to infinity: each, the middle between two
    /// and the neighbours of that middle must round as they should.
    fn rounds_to_nearest_even(infinity: u16, widen: fn(u16) -> f32, narrow: fn(f32) -> u16) {
        for bits in 0..infinity {
            let (value, next) = (widen(bits), widen(bits + 1));
            assert_eq!(narrow(value), bits);
            assert_eq!(narrow(-value), bits | 0x8000);
            // What would come after the largest number, were there another exponent.
            let next =
                if next.is_infinite() { f64::from(value) * 2.0 - f64::from(widen(bits - 1)) } else { next.into() };
            let middle = ((f64::from(value) + next) / 2.0) as f32;
            let even = if bits % 2 == 0 { bits } else { bits + 1 };
            assert_eq!(narrow(middle), even, "between {bits:#x} and the next");
            assert_eq!(narrow(middle.next_down()), bits);
            assert_eq!(narrow(middle.next_up()), bits + 1);
        }
        assert_eq!(narrow(f32::MAX), infinity);
        assert_eq!(narrow(f32::NEG_INFINITY), infinity | 0x8000);
        assert_eq!(narrow(f32::NAN), NAN_16);
    }

    #[test]
    fn every_bfloat16() {
        rounds_to_nearest_even(0x7f80, |bits| f32::from_bits(u32::from(bits) << 16), bf16_from_f32);
    }

    #[test]
    fn every_binary16() {
        rounds_to_nearest_even(0x7c00, f32_from_f16, f16_from_f32);
        assert_eq!(f32_from_f16(0x3555), 0.333_251_95);
        assert_eq!(f32_from_f16(1), 2f32.powi(-24));
        assert_eq!(f32_from_f16(0x8000).to_bits(), 0x8000_0000);
        assert_eq!(f32_from_f16(0xfc00), f32::NEG_INFINITY);
        assert!(f32_from_f16(0x7c01).is_nan());
    }

    #[test]
    fn maxima() {
        assert_eq!(max(1.0, 2.0), 2.0);
        assert_eq!(max(f32::NAN, -1.0), -1.0);
        assert_eq!(max(-1.0, f32::NAN), -1.0);
        assert_eq!(max(-0.0, 0.0).to_bits(), 0);
        assert_eq!(max(f32::NAN, f32::NAN).to_bits(), 0x7fff_ffff);
    }

    #[test]
    fn subnormals_flush() {
        assert_eq!(flush(-f32::from_bits(1)).to_bits(), 0x8000_0000);
        assert_eq!(flush(f32::MIN_POSITIVE), f32::MIN_POSITIVE);
    }
}
